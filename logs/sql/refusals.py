"""Refusals of the guard: what is wrong with a statement, and what to write in its place."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from logs.sql import functions

if TYPE_CHECKING:
    from collections.abc import Iterable

NESTED_ENUM: Final = (
    "A type with values, such as ENUM('a', 'b'), is not supported inside another type. Cast the values alone:"
    " list_transform(x, lambda v: v::ENUM('a', 'b')) or struct_pack(k := x.k::ENUM('a', 'b'));"
    " or use VARCHAR."
)

#: The way for tools of business intelligence, which first ask for the version and the tables.
COLUMNS_HINT: Final = (
    "GET /tenants/{tenant}/query/schema lists the columns of proxy_logs; the SQLAlchemy dialect of the"
    " documentation answers what tools ask first."
)
_ASKED_BY_TOOLS: Final = frozenset(
    {"version", "current_schema", "current_schemas", "current_database", "current_catalog"}
    | {"duckdb_columns", "duckdb_tables", "duckdb_schemas", "duckdb_databases", "pragma_table_info", "show"}
)
CATALOGS: Final = frozenset({"sqlite_master", "sqlite_schema", "duckdb_tables", "duckdb_columns"}) | {
    f"pg_{name}" for name in ("attribute", "class", "database", "namespace", "tables", "type", "views")
}

#: What to write for functions of other engines.
_INSTEAD: Final = {
    "add_months": "time + INTERVAL 1 MONTH",
    "approx_percentile": "approx_quantile(value, 0.95)",
    "array_size": "len(list)",
    "charindex": "strpos(text, part)",
    "collect_list": "list(value)",
    "collect_set": "list(DISTINCT value)",
    "convert": "CAST(value AS type)",
    "convert_timezone": "timezone(zone, time)",
    "current_timestamp": "current_timestamp without parentheses, or now()",
    "date_format": "strftime(time, '%Y-%m-%d')",
    "date_parse": "strptime(text, '%Y-%m-%d')",
    "dateadd": "time + INTERVAL 1 DAY",
    "div0": "value / nullif(other, 0)",
    "eomonth": "last_day(time)",
    "explode": "unnest(list)",
    "from_iso8601_timestamp": "CAST(text AS TIMESTAMPTZ)",
    "from_unixtime": "to_timestamp(seconds); for the column timestamp, to_timestamp(timestamp / 1000)",
    "get_json_object": "json_extract_string(text, '$.name')",
    "getdate": "now(), or current_date for the day",
    "getutcdate": "now(), or current_date for the day",
    "iff": "if(condition, yes, no)",
    "iif": "if(condition, yes, no)",
    "isnull": "value IS NULL, or coalesce(value, other)",
    "isnumeric": "TRY_CAST(text AS DOUBLE) IS NOT NULL",
    "locate": "strpos(text, part)",
    "months_between": "date_diff('month', start, stop)",
    "newid": "uuid()",
    "nvl": "coalesce(value, other)",
    "nvl2": "if(value IS NOT NULL, yes, no)",
    "object_keys": "json_keys(text)",
    "parse_json": "CAST(text AS JSON)",
    "percentile": "quantile_cont(value, 0.95)",
    "percentile_approx": "approx_quantile(value, 0.95)",
    "regexp_like": "regexp_matches(text, pattern)",
    "rlike": "regexp_matches(text, pattern)",
    "size": "len(list)",
    "str_to_date": "strptime(text, '%Y-%m-%d')",
    "substring_index": "split_part(text, separator, 1)",
    "sysdate": "now(), or current_date for the day",
    "sysdatetime": "now()",
    "systimestamp": "now()",
    "time_slice": "time_bucket(INTERVAL 1 DAY, time)",
    "timestampadd": "time + INTERVAL 1 DAY",
    "timestampdiff": "date_diff('day', start, stop)",
    "to_char": "strftime(time, '%Y-%m-%d') for times, or CAST(value AS VARCHAR)",
    "to_date": "CAST(text AS DATE), or strptime(text, '%d.%m.%Y')",
    "to_number": "CAST(text AS DOUBLE)",
    "to_unixtime": "epoch(time)",
    "try_to_date": "TRY_CAST(text AS DATE)",
    "try_to_number": "TRY_CAST(text AS DOUBLE)",
    "unix_timestamp": "epoch(time)",
    "uuid_string": "uuid()",
    "zeroifnull": "coalesce(value, 0)",
}

TYPE_WITH_SCHEMA: Final = "Name a type without a schema."

_FORM_MESSAGES: Final = {
    "SHOW_REF": f"DESCRIBE, SHOW and SUMMARIZE are not allowed. {COLUMNS_HINT}",
    "PARAMETER": "Parameters are not supported. Write the value into the statement.",
    "BASE_TABLE at_clause": "AT (VERSION …) is not supported.",
    "DEFAULT": "DEFAULT has no meaning in a query.",
    "UNBOUND_TYPE_INFO catalog": TYPE_WITH_SCHEMA,
}


class Refusal(Exception):
    """The statement may not run. ``position`` is the offset of the cause in characters, if known."""

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def refused_function(name: str, record: dict[str, Any], *, is_table_function: bool = False) -> Refusal:
    kind = "table function" if is_table_function else "function"
    allowed = functions.ALLOWED_TABLE_FUNCTIONS if is_table_function else functions.ALLOWED_FUNCTIONS
    reason = functions.refusal_reason(name, is_table_function=is_table_function)
    if reason:
        message = f'The {kind} "{name}" {reason} and may not be called.'
        if name in _ASKED_BY_TOOLS:
            message += f" {COLUMNS_HINT}"
    else:
        nearest = nearest_name(name, allowed)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        if name in _INSTEAD:
            hint = f" Write {_INSTEAD[name]}."
        message = f'There is no {kind} "{name}" that a query may call.{hint}'
    if is_table_function:
        message += f" Allowed: {', '.join(sorted(allowed))}."
    return Refusal(message, position=record.get("query_location"))


def refused_form(form: str, record: dict[str, Any]) -> Refusal:
    message = _FORM_MESSAGES.get(form, f"The statement uses a form of SQL that is not allowed here ({form}).")
    return Refusal(message, position=record.get("query_location"))


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, sorted(known), cutoff=0.7)), None)
