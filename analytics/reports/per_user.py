"""Calls of functions that make a result depend on the user or the session, in Python and in SQL.

A word counts where it is called, never where it is a column, an alias, a quoted name, a text or in a comment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import re2

from analytics.statement_text import without_names, without_names_sql
from logs.quoting import quote_text
from rules.tables.names_sql import counts_sql, names_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.tables.warehouse import WarehouseTables

_BEFORE: Final = r"(?:^|[^\pL\pN_$#@])"
#: SQL calls these also without parentheses.
_WORDS: Final = "current_user|session_user|system_user|current_role"
_FUNCTIONS: Final = (
    f"{_WORDS}|user|current_available_roles|current_secondary_roles|current_account|current_session"
    "|current_client|current_ip_address|invoker_role|invoker_share|is_granted_to_invoker_role"
    "|is_(?:database_)?role_in_session|is_member|is_account_group_member|is_srvrolemember|is_rolemember"
    r"|pg_has_role|has_\w+_privilege|row_security_active|suser_s?name|user_name|original_login"
    "|current_setting|getvariable|sys_context|session_context|context_info"
)
#: The words as names, which are no calls: an alias, or a table whose column follows.
_ALIAS: Final = rf"(?i)\bas\s+(?:{_WORDS})\b"
#: No dot or colon before a word: there it is a column of a table, or a member of JSON.
_CALL: Final = (
    rf"(?i){_BEFORE}(?:{_FUNCTIONS})\s*\("
    rf"|(?:^|[^\pL\pN_$#@.:\s]|[^.:\s]\s+)(?:{_WORDS})\s*(?:[^\pL\pN_$#@.\]\s]|\s[^.\]\s]|$)"
)
_COMPILED_ALIAS: Final = re2.compile(_ALIAS)
_COMPILED: Final = re2.compile(_CALL)


def is_per_user(statement: str) -> bool:
    """Return True if a statement calls a function whose result depends on the user or the session."""
    return _COMPILED.search(_COMPILED_ALIAS.sub(" ", without_names(statement))) is not None


def is_per_user_sql(statement: str) -> str:
    """Return SQL for `is_per_user` of a column."""
    text = f"regexp_replace({without_names_sql(statement)}, {quote_text(_ALIAS)}, ' ', 'g')"
    return f"regexp_matches({text}, {quote_text(_CALL)})"


def reads_tables_sql(patterns: Sequence[str], warehouse: WarehouseTables) -> str:
    """Return SQL for rows of ``proxy_logs`` that read one of the tables, or may, however it is spelled."""
    if not patterns:
        return "false"
    counts = counts_sql(map(warehouse.pattern, patterns), "name")
    names = names_sql('"tables"', database=warehouse.database)
    return f"coalesce(len(list_filter({names}, lambda name: {counts})) > 0, false)"
