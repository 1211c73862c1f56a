"""The words of SQL on which a result depends: who asks, in which session, and when.

This is the only such list. Leaks, recommendations, replays and lint read it (`rules/dialects/depends.py`).

A row has the words of one kind in one dialect, and where they are documented. `FORMS` says how a word is
written. Names are regular expressions without groups, in the syntax of RE2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Dialect(StrEnum):
    """The kinds of warehouses, as in ``adapterType``. Functions of `OTHER` come with federated statements."""

    POSTGRESQL = "postgresql"
    SNOWFLAKE = "snowflake"
    DATABRICKS = "databricks"
    OTHER = "other"


class On(StrEnum):
    """What a result depends on."""

    IDENTITY = "identity"
    SESSION = "session"
    TIME = "time"


class Form(StrEnum):
    """How a word is written.

    Attributes:
        CALL: a function, with parentheses: ``now()``.
        EMPTY: a function that takes no argument. With one it is another: ``unix_timestamp(x)``.
        WORD: SQL reads it as a function also without parentheses: ``CURRENT_USER``.
        COLUMN: the same, but a column of that name comes first: ``user``.
        SCHEMA: what is in it depends on who asks: ``information_schema.tables``.
        TABLE: a table of ``pg_catalog``, which needs no schema: ``pg_stat_activity``.
        FIRST: the statement begins with it: ``SHOW TABLES``.
        MARK: a mark that no name is part of: ``$region``.
    """

    CALL = "call"
    EMPTY = "empty"
    WORD = "word"
    COLUMN = "column"
    SCHEMA = "schema"
    TABLE = "table"
    FIRST = "first"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one dialect. ``source`` says which release or page they are from."""

    dialect: Dialect
    on: On
    form: Form
    names: str
    source: str


_PG: Final = "PostgreSQL 18.4, pg_proc and pg_get_keywords()"
_PG_CATALOG: Final = "PostgreSQL 18 documentation, 52 System Catalogs and 53 System Views"
_SF: Final = "docs.snowflake.com/sql-reference/functions-context, 2026-11"
_DB: Final = "docs.databricks.com/sql/language-manual/sql-ref-functions-builtin, 2026-11"
_SPARK: Final = "Apache Spark 4.1, FunctionRegistry and LiteralFunctionResolution"
_TSQL: Final = "learn.microsoft.com, Transact-SQL security and metadata functions, SQL Server 2022"
_VIEWS: Final = "2026-11: it shows each user what the user may see"
_POSTGRESQL, _SNOWFLAKE, _DATABRICKS, _OTHER = Dialect
_IDENTITY, _SESSION, _TIME = On
_CALL, _EMPTY, _WORD, _COLUMN, _SCHEMA, _TABLE, _FIRST, _MARK = Form

WORDS: Final = (
    # PostgreSQL
    Words(_POSTGRESQL, _IDENTITY, _WORD, "current_user current_role session_user system_user user", _PG),
    Words(_POSTGRESQL, _IDENTITY, _EMPTY, "getpgusername", _PG),
    Words(
        _POSTGRESQL, _IDENTITY, _CALL, r"pg_has_role has_\w+_privilege row_security_active pg_stat_\w+", _PG
    ),
    Words(_POSTGRESQL, _SESSION, _WORD, "current_catalog current_schema", _PG),
    Words(
        _POSTGRESQL,
        _SESSION,
        _EMPTY,
        "current_database current_query inet_client_addr inet_client_port inet_server_addr inet_server_port"
        " pg_backend_pid pg_client_encoding pg_my_temp_schema pg_show_all_settings pg_cursor"
        " pg_prepared_statement pg_listening_channels get_current_ts_config lastval txid_current"
        " txid_current_if_assigned txid_current_snapshot pg_current_xact_id pg_current_xact_id_if_assigned"
        " pg_current_snapshot pg_trigger_depth pg_replication_origin_session_is_setup",
        _PG,
    ),
    Words(
        _POSTGRESQL,
        _SESSION,
        _CALL,
        r"current_setting set_config current_schemas currval to_reg\w+ pg_\w+_is_visible"
        r" pg_is_other_temp_schema pg_replication_origin_session_progress pg_timezone_abbrevs_abbrevs",
        _PG,
    ),
    Words(
        _POSTGRESQL, _TIME, _WORD, "current_date current_time current_timestamp localtime localtimestamp", _PG
    ),
    Words(
        _POSTGRESQL,
        _TIME,
        _EMPTY,
        "now statement_timestamp transaction_timestamp clock_timestamp timeofday",
        _PG,
    ),
    # With two arguments it does not depend on the day, but no pattern counts arguments.
    Words(_POSTGRESQL, _TIME, _CALL, "age", _PG),
    Words(_POSTGRESQL, _IDENTITY, _SCHEMA, "information_schema", "PostgreSQL 18 documentation, 35.2"),
    Words(_POSTGRESQL, _SESSION, _TABLE, r"pg_\w+", _PG_CATALOG),
    Words(_POSTGRESQL, _SESSION, _FIRST, "show", "PostgreSQL 18 documentation, SHOW"),
    # Snowflake
    Words(_SNOWFLAKE, _IDENTITY, _WORD, "current_user", f"{_SF}: ANSI"),
    Words(
        _SNOWFLAKE,
        _IDENTITY,
        _EMPTY,
        "current_account current_account_name current_available_roles current_organization_name"
        " current_organization_user current_role current_role_type current_secondary_roles invoker_role"
        " invoker_share all_user_names",
        _SF,
    ),
    Words(
        _SNOWFLAKE,
        _IDENTITY,
        _CALL,
        r"is_(?:application_|database_|instance_)?role_in_session is_organization_user_group_in_session"
        r" is_(?:application_|database_)?role_activated is_(?:agent|group)_activated"
        " is_(?:group|user)_imported is_granted_to_invoker_role sys_context policy_context"
        " explain_privileges explain_grantable_privileges",
        _SF,
    ),
    Words(
        _SNOWFLAKE,
        _SESSION,
        _EMPTY,
        "current_client current_database current_ip_address current_schema current_schemas current_session"
        " current_statement current_transaction current_warehouse last_transaction"
        r" system\$current_user_task_name",
        _SF,
    ),
    Words(_SNOWFLAKE, _SESSION, _CALL, "getvariable last_query_id result_scan", _SF),
    Words(
        _SNOWFLAKE,
        _SESSION,
        _MARK,
        r"\$[A-Za-z_]\w*",
        "docs.snowflake.com/sql-reference/session-variables, 2026-11",
    ),
    Words(_SNOWFLAKE, _IDENTITY, _MARK, "@~", "docs.snowflake.com/user-guide, user stages, 2026-11"),
    Words(
        _SNOWFLAKE, _TIME, _WORD, "current_date current_time current_timestamp localtime localtimestamp", _SF
    ),
    Words(_SNOWFLAKE, _TIME, _EMPTY, "getdate sysdate systimestamp", _SF),
    Words(
        _SNOWFLAKE,
        _IDENTITY,
        _SCHEMA,
        "information_schema",
        f"docs.snowflake.com/sql-reference/info-schema, {_VIEWS}",
    ),
    Words(_SNOWFLAKE, _IDENTITY, _FIRST, "show", f"docs.snowflake.com/sql-reference/sql/show, {_VIEWS}"),
    # Databricks
    # A column of such a name comes first, but only ``user`` is a likely name.
    Words(_DATABRICKS, _IDENTITY, _WORD, "current_user session_user", _SPARK),
    Words(_DATABRICKS, _IDENTITY, _COLUMN, "user", _SPARK),
    Words(
        _DATABRICKS,
        _IDENTITY,
        _CALL,
        "is_member is_account_group_member current_recipient secret try_secret",
        _DB,
    ),
    Words(_DATABRICKS, _IDENTITY, _EMPTY, "current_oauth_custom_identity_claim list_secrets", _DB),
    Words(
        _DATABRICKS,
        _SESSION,
        _EMPTY,
        "current_catalog current_database current_metastore current_path current_schema current_timezone",
        _SPARK,
    ),
    Words(
        _DATABRICKS,
        _SESSION,
        _SCHEMA,
        r"system\s*\.\s*session",
        "docs.databricks.com/sql/language-manual/sql-ref-variables, 2026-11",
    ),
    Words(_DATABRICKS, _SESSION, _MARK, r"\$\{[^}]*\}", "Apache Spark 4.1, VariableSubstitution"),
    Words(_DATABRICKS, _TIME, _WORD, "current_date current_time current_timestamp", _SPARK),
    Words(_DATABRICKS, _TIME, _EMPTY, "now curdate getdate localtimestamp unix_timestamp", _SPARK),
    Words(
        _DATABRICKS,
        _IDENTITY,
        _SCHEMA,
        "information_schema",
        f"docs.databricks.com/sql/language-manual/sql-ref-information-schema, {_VIEWS}",
    ),
    Words(
        _DATABRICKS,
        _IDENTITY,
        _FIRST,
        "show",
        f"docs.databricks.com/sql/language-manual/sql-ref-syntax-aux-show-tables, {_VIEWS}",
    ),
    # Others
    Words(
        _OTHER,
        _IDENTITY,
        _CALL,
        "suser_name suser_sname user_name original_login is_srvrolemember is_rolemember",
        _TSQL,
    ),
    Words(_OTHER, _SESSION, _CALL, "context_info session_context current_session", _TSQL),
)
