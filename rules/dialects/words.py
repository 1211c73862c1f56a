"""The words on which a statement's result depends: who asks, in which session, when, and on chance.

This is the only such list. Leaks, recommendations, replays and lint read it (`rules/dialects/words.py`).

A row has the words of one kind in one dialect, and where they are documented. `FORMS` says how a word is
written. Names are regular expressions without groups, in the syntax of RE2.

In Python and in SQL with the same results. A word counts where it is called, never where it is a column after
a dot, an alias, a text or in a comment. In doubt it counts: the words of all dialects count in each of them,
where a function of that name may exist too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

import re2

from rules.conditions.sql import quote_text
from rules.dialects.text import without_text, without_text_sql


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
    CHANCE = "chance"


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

_IDENTITY, _SESSION, _TIME, _CHANCE = On

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
    Words(
        _POSTGRESQL,
        _CHANCE,
        _CALL,
        "random random_normal setseed nextval gen_random_uuid uuidv4 uuidv7 gen_random_bytes"
        r" uuid_generate_v\w+",
        "PostgreSQL 18 documentation, 9.3, 9.14, 9.17, pgcrypto and uuid-ossp",
    ),
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
        _CHANCE,
        _CALL,
        "random randstr uniform normal zipf uuid_string seq1 seq2 seq4 seq8",
        "docs.snowflake.com/sql-reference/functions-data-generation, 2026-11",
    ),
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
        _CHANCE,
        _CALL,
        "rand random randn randstr uniform uuid shuffle monotonically_increasing_id",
        "Apache Spark 4.1, ExpressionInfo: not deterministic",
    ),
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

#: The forms of a word that may be a column, or a table that is the same for all.
_DOUBTFUL: Final = frozenset({Form.COLUMN, Form.TABLE})

#: What comes before a word. No dot and no colon: there it is a column of a table, a function of a schema that
#: people made, or a member of JSON.
_ALONE: Final = r"(?:^\s*|[^\pL\pN_$#@.:\s]|[^.:\s]\s+)"

_BUILT_IN: Final = rf"(?:{_ALONE}|\b(?:pg_catalog|builtin)\s*\.\s*)"

_ANYWHERE: Final = r"(?:^|[^\pL\pN_$#@])"

_FROM: Final = r"\b(?:pg_catalog\s*\.\s*|(?:from|join)\s+(?:only\s+)?(?:pg_catalog\s*\.\s*)?)"

_START: Final = r"^[\s(]*"

#: What comes after a word that is not called, and is no table whose column follows.
_NO_CALL: Final = r"\s*(?:[^\pL\pN_$#@.\](\s]|\s[^.\](\s]|$)"

#: By form, what comes after a function. A word can be called too; in PostgreSQL, times have a precision.
_CALLED: Final = {Form.CALL: r"\s*\(", Form.EMPTY: r"\s*\(\s*\)"}

_CALLED_WORD: Final = r"\s*\(\s*[\d?]?\s*\)"

#: By form, what comes before a name that is not called, and after it.
_AROUND: Final = {
    Form.WORD: (_ALONE, _NO_CALL),
    Form.COLUMN: (_ALONE, _NO_CALL),
    Form.SCHEMA: (_ANYWHERE, r"\s*\."),
    # Behind another dollar sign, the rest is the end of a text.
    Form.MARK: (_ANYWHERE, r"(?:[^\pL\pN_$]|$)"),
    Form.TABLE: (_FROM, r"(?:[^\pL\pN_$#@(\s]|\s+[^(\s]|\s*$)"),
    Form.FIRST: (_START, r"\s"),
}

#: Quoted names that may be called, or are a schema or a table of the catalogue, lose their quotes. The others
#: are removed.
_QUOTED: Final = (
    (r'["`](\w+)["`](\s*[.(])', r"\1\2"),
    (r'["`](pg_\w+)["`]', r"\1"),
    (r'"(?:[^"]|"")*"|`(?:[^`]|``)*`', " "),
)

#: The parentheses at the end of a call.
_PARENTHESES: Final = r"\s*\([\s\d?)]*$"


def _names(words: Iterable[Words]) -> list[str]:
    return sorted({name for row in words for name in row.names.split()})


_COLUMNS: Final = _names(row for row in WORDS if row.form is Form.COLUMN)

_ALIASES: Final = _names(row for row in WORDS if row.form in {Form.WORD, Form.COLUMN})

#: Names that are no calls: an alias, and a table with the name of a word that is a likely name.
_NAMES: Final = (
    rf"(?i)\b(?:as\s+(?:{'|'.join(_ALIASES)})"
    rf"|(?:from|join|into|update|table|only)\s+(?:{'|'.join(_COLUMNS)}))\b"
)

#: Python's placeholder.
_PLACEHOLDER: Final = r"%\(\w+\)s"

_REMOVED: Final = (*_QUOTED, (_PLACEHOLDER, " "), (_NAMES, " "))


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns whose group is a word: of one that is called, and of the others, the doubtful last."""

    called: str
    others: tuple[str, ...]


def _patterns(on: frozenset[On]) -> _Patterns:
    found = {form: _names(row for row in WORDS if row.on in on and row.form is form) for form in Form}
    words = [name for name in found[Form.WORD] if name not in _COLUMNS]
    called = (
        ([*found[Form.WORD], *found[Form.COLUMN]], _CALLED_WORD),
        *((found[form], after) for form, after in _CALLED.items()),
    )
    inner = "|".join(f"(?:{'|'.join(names)}){after}" for names, after in called)
    others = {**found, Form.WORD: words}
    return _Patterns(
        f"(?i){_BUILT_IN}({inner})",
        tuple(
            f"(?i){before}({'|'.join(others[form])}){after}"
            for form, (before, after) in _AROUND.items()
            if others[form]
        ),
    )


_ASKS: Final = _patterns(frozenset({On.IDENTITY, On.SESSION}))

_WHEN: Final = _patterns(frozenset({On.TIME}))

_LUCK: Final = _patterns(frozenset({On.CHANCE}))

_DOUBTED: Final = f"(?i){'|'.join(_names(row for row in WORDS if row.form in _DOUBTFUL))}"

_compile: Final = cache(re2.compile)


def find_word(statement: str) -> str | None:
    """Return a word on which the result depends by who asks or by the session, as the statement writes it.

    A function has empty parentheses.
    """
    return _find(statement, _ASKS)


def find_certain_word(statement: str) -> str | None:
    """Return the word of `find_word`, or None if it may be a column, or a table that is the same for all."""
    word = find_word(statement)
    return None if word is None or _compile(_DOUBTED).fullmatch(word) else word


def find_time(statement: str) -> str | None:
    """Return a word on which the result depends by the time, as `find_word` does."""
    return _find(statement, _WHEN)


def find_chance(statement: str) -> str | None:
    """Return a word on which the result depends by chance, as `find_word` does."""
    return _find(statement, _LUCK)


def _find(statement: str, patterns: _Patterns) -> str | None:
    plain = without_text(statement)
    for pattern, instead in _REMOVED:
        plain = _compile(pattern).sub(instead, plain)
    if match := _compile(patterns.called).search(plain):
        return str(_compile(_PARENTHESES).sub("()", match[1]))
    found = (_compile(pattern).search(plain) for pattern in patterns.others)
    return next((str(match[1]) for match in found if match), None)


def word_sql(statement: str) -> str:
    """Return SQL for `find_word` of a column."""
    plain = without_text_sql(statement)
    for pattern, instead in _REMOVED:
        plain = f"regexp_replace({plain}, {quote_text(pattern)}, {quote_text(instead)}, 'g')"
    called, *others = (
        f"nullif(regexp_extract(text, {quote_text(pattern)}, 1), '')"
        for pattern in (_ASKS.called, *_ASKS.others)
    )
    called = f"regexp_replace({called}, {quote_text(_PARENTHESES)}, '()')"
    return f"list_transform([{plain}], lambda text: coalesce({', '.join((called, *others))}))[1]"


def is_certain_sql(word: str, adapter_type: str) -> str:
    """Return SQL for whether a word of `word_sql` is certain: it can be no column, and no table for all.

    In some dialects of the column ``adapter_type``, SQL reserves a word that is a likely column in another.
    """
    reserved = [
        f"({adapter_type} IS NOT DISTINCT FROM {quote_text(row.dialect)}"
        f" AND regexp_full_match({word}, {quote_text(f'(?i){name}')}))"
        for row in WORDS
        for name in row.names.split()
        if row.form is Form.WORD and name in _COLUMNS
    ]
    return f"({' OR '.join([f'NOT regexp_full_match({word}, {quote_text(_DOUBTED)})', *reserved])})"
