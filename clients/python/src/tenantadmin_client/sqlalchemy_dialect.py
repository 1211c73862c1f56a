"""The SQLAlchemy dialect ``tenantadmin://token:PAT@host/tenant``, for SQLAlchemy 1.4 and 2.

Libraries hide the password of an address, so the token is the password. Options after ``?``: ``scheme=http``
for a service without TLS, ``allow_truncated=true``, and ``timeout`` in seconds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import default
from sqlalchemy.exc import CompileError, NoSuchTableError
from sqlalchemy.sql import compiler
from sqlalchemy.sql import sqltypes as types
from sqlalchemy.sql.type_api import NativeForEmulated

from tenantadmin_client import dbapi

if TYPE_CHECKING:
    from sqlalchemy.engine import URL
    from sqlalchemy.engine.interfaces import IsolationLevel

#: The only table.
TABLE = "proxy_logs"
_SCHEMA = "main"
_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "VARCHAR": types.String,
    "BIGINT": types.BigInteger,
    "INTEGER": types.Integer,
    "BOOLEAN": types.Boolean,
    "DATE": types.Date,
}

#: Words of DuckDB that are no names. SQLAlchemy has the others.
_RESERVED = frozenset(
    """
    anti asof describe fetch generated glob lambda lateral map pivot pivot_longer pivot_wider
    positional qualify returning semi show struct summarize tablesample unpack unpivot variadic
    window with
    """.split()
)


class _Preparer(compiler.IdentifierPreparer):
    """Quotes what DuckDB takes for no name."""

    reserved_words = compiler.RESERVED_WORDS | _RESERVED


class _Compiler(compiler.SQLCompiler):
    """Differences of DuckDB's SQL from the standard's."""

    def render_literal_value(self, value: Any, type_: Any, **_: Any) -> str:
        """Return what a parameter of this value would become."""
        convert = type_._cached_bind_processor(self.dialect)
        return dbapi.literal(convert(value) if convert else value)

    def limit_clause(self, select: Any, **options: Any) -> str:
        """Return LIMIT and OFFSET, each alone if the other is absent."""
        clauses = (("LIMIT", select._limit_clause), ("OFFSET", select._offset_clause))
        return self._clauses(clauses, **options)

    def _clauses(self, clauses: Iterable[tuple[str, Any]], **options: Any) -> str:
        return "".join(
            f"\n {word} {self.process(clause, **options)}" for word, clause in clauses if clause is not None
        )

    def fetch_clause(self, select: Any, *_: Any, **options: Any) -> str:
        """Return FETCH FIRST as LIMIT: DuckDB takes no expression there, and neither a share nor ties."""
        if any(select._fetch_clause_options.values()):
            raise CompileError("The log has no FETCH FIRST with PERCENT or WITH TIES.")
        clauses = (("LIMIT", select._fetch_clause), ("OFFSET", select._offset_clause))
        return self._clauses(clauses, **options)

    def get_select_precolumns(self, select: Any, **options: Any) -> str:
        """Return DISTINCT, or DISTINCT ON some columns."""
        if not select._distinct_on:
            return super().get_select_precolumns(select, **options)
        columns = ", ".join(self.process(column, **options) for column in select._distinct_on)
        return f"DISTINCT ON ({columns}) "

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        """DuckDB's ^ is a power."""
        left, right = (self.process(side, **options) for side in (binary.left, binary.right))
        return f"xor({left}, {right})"

    def visit_floordiv_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        """Round towards minus infinity, as Python does. DuckDB's // rounds integers towards zero."""
        left, right = (f"({self.process(side, **options)})" for side in (binary.left, binary.right))
        rest = f"({left} % {right})"
        is_exact = all(_is_integer(side) for side in (binary.left, binary.right))
        quotient = f"{left} // {right}" if is_exact else f"round(({left} - {rest}) / {right})"
        return f"({quotient} - CAST({rest} * sign({right}) < 0 AS INTEGER))"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return self._regexp("regexp_matches", binary, [binary.left, binary.right], **options)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **options)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        """Replace the first match, or all of them with the flag ``g``, as on PostgreSQL."""
        # SQLAlchemy 1.4 keeps the replacement among the modifiers.
        pair = binary.modifiers.get("replacement")
        parts = list(binary.right.clauses) if pair is None else [binary.right, pair]
        return self._regexp("regexp_replace", binary, [binary.left, *parts], **options)

    def _regexp(self, name: str, binary: Any, parts: list[Any], **options: Any) -> str:
        arguments = [self.process(part, **options) for part in parts]
        if (flags := binary.modifiers.get("flags")) is not None:
            text = flags if isinstance(flags, str) else flags.value  # SQLAlchemy 1.4 has an element.
            arguments.append(dbapi.literal(text))
        return f"{name}({', '.join(arguments)})"

    def visit_aggregate_strings_func(self, fn: Any, **options: Any) -> str:
        return f"string_agg{self.function_argspec(fn, **options)}"

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        """Return a part of a JSON document: as JSON, or in the type that ``as_string()`` asks for."""
        left, path = (self.process(side, **options) for side in (binary.left, binary.right))
        if binary.type._type_affinity is types.JSON:
            return f"json_extract({left}, {path})"
        text = f"json_extract_string({left}, {path})"
        if binary.type._type_affinity is types.String:
            return text
        return f"CAST({text} AS {self.dialect.type_compiler.process(binary.type)})"

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary

    def visit_empty_set_expr(self, element_types: Any, **_: Any) -> str:
        """Return a query without rows, of the types of an empty IN."""
        kinds = [self.dialect.type_compiler.process(kind) for kind in element_types or [types.INTEGER()]]
        return f"SELECT {', '.join(f'CAST(NULL AS {kind})' for kind in kinds)} WHERE 1!=1"


def _is_integer(side: Any) -> bool:
    return side.type._type_affinity is types.Integer


class _TypeCompiler(compiler.GenericTypeCompiler):
    """DuckDB's names of types."""

    def visit_FLOAT(self, type_: Any, **_: Any) -> str:
        """A Float of Python has 64 bits. DuckDB's FLOAT has 32."""
        return "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **_: Any) -> str:
        """Return a DECIMAL. Without a precision, DuckDB's has 18 digits, and 3 of them after the point."""
        if type_.precision is None:
            return (
                f"DECIMAL(38, {type_._default_decimal_return_scale if type_.scale is None else type_.scale})"
            )
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC

    def visit_DATETIME(self, type_: Any, **_: Any) -> str:
        return "TIMESTAMPTZ" if type_.timezone else "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_TIME(self, type_: Any, **_: Any) -> str:
        return "TIMETZ" if type_.timezone else "TIME"

    def visit_INTERVAL(self, type_: Any, **_: Any) -> str:
        return "INTERVAL"

    def visit_JSON(self, type_: Any, **_: Any) -> str:
        return "JSON"

    def visit_UUID(self, type_: Any, **_: Any) -> str:
        return "UUID"


class _Interval(NativeForEmulated, types._AbstractInterval):
    """A timedelta. SQLAlchemy's own Interval is a time since 1970 where a database lacks the type."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, *_: Any, **__: Any) -> _Interval:
        return cls()


class _Date(types.Date):
    """A date, also of a time."""

    def bind_processor(self, dialect: Any) -> Any:
        return lambda value: value.date() if isinstance(value, dt.datetime) else value


class _JsonIndex(types.JSON.JSONIndexType):
    """A key or an index, as a path."""

    def bind_processor(self, dialect: Any) -> Any:
        return lambda key: _path([key])


class _JsonPath(types.JSON.JSONPathType):
    """Several of them."""

    def bind_processor(self, dialect: Any) -> Any:
        return _path


def _path(keys: Any) -> str:
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f'."{key}"' for key in keys)


class TenantadminDialect(default.DefaultDialect):
    """The log of one tenant, read-only."""

    name = "tenantadmin"
    driver = "rest"
    default_paramstyle = "qmark"
    statement_compiler = _Compiler
    preparer = _Preparer
    type_compiler = _TypeCompiler
    type_compiler_cls = _TypeCompiler
    colspecs = {
        types.Date: _Date,
        types.Interval: _Interval,
        types.JSON.JSONIndexType: _JsonIndex,
        types.JSON.JSONPathType: _JsonPath,
    }
    #: 7 / 2 is 3.5.
    div_is_floordiv = False
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_sane_rowcount = False
    supports_alter = False
    requires_name_normalize = False

    def __init__(
        self,
        json_serializer: Callable[[Any], str] | None = None,
        json_deserializer: Callable[[str], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        # The type JSON reads these.
        self._json_serializer, self._json_deserializer = json_serializer, json_deserializer

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the DB-API module; SQLAlchemy 2."""
        return dbapi

    @classmethod
    def dbapi(cls) -> ModuleType:  # type: ignore[override]
        """Return the DB-API module; SQLAlchemy 1.4."""
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[str], dict[str, Any]]:
        """Return the arguments of `dbapi.connect`."""
        options = dict(url.query)
        scheme = options.pop("scheme", "https")
        port = f":{url.port}" if url.port else ""
        arguments: dict[str, Any] = {"tenant": url.database or "", "pat": url.password or ""}
        if "allow_truncated" in options:
            arguments["allow_truncated"] = options.pop("allow_truncated") == "true"
        if "timeout" in options:
            arguments["timeout"] = float(str(options.pop("timeout")))
        if options:
            raise dbapi.InterfaceError(f"Unknown options in the address: {', '.join(sorted(options))}.")
        return [f"{scheme}://{url.host}{port}"], arguments

    def _get_default_schema_name(self, _: Any) -> str:
        return _SCHEMA

    def get_isolation_level_values(self, _: Any) -> list[IsolationLevel]:
        """Return the only level: there are no transactions."""
        return ["AUTOCOMMIT"]

    def get_isolation_level(self, _: Any) -> IsolationLevel:
        """Return the only level."""
        return "AUTOCOMMIT"

    get_default_isolation_level = get_isolation_level
    #: SQLAlchemy 1.4 compares levels with these.
    _isolation_lookup = frozenset({"AUTOCOMMIT"})

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """Do nothing: it is the level already."""

    def is_disconnect(self, e: Any, *_: Any) -> bool:
        """Return whether the connection was closed."""
        return isinstance(e, dbapi.InterfaceError) and "connection is closed" in str(e)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: there are no transactions."""

    def get_schema_names(self, *_: Any, **__: Any) -> list[str]:
        """Return the only schema."""
        return [_SCHEMA]

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """Return the only table."""
        return [TABLE] if schema in {None, _SCHEMA} else []

    def _get_nothing(self, *_: Any, **__: Any) -> list[Any]:
        return []

    get_view_names = get_materialized_view_names = get_temp_table_names = get_temp_view_names = _get_nothing
    get_sequence_names = _get_nothing
    get_foreign_keys = get_indexes = get_unique_constraints = get_check_constraints = _get_nothing

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Return whether this is the only table."""
        return table_name in self.get_table_names(connection, schema)

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        """Return the columns as the service describes them."""
        if not self.has_table(connection, table_name, schema):
            raise NoSuchTableError(table_name)
        columns = connection.connection.dbapi_connection.columns()
        return [
            {
                "name": column["name"],
                "type": _TYPES.get(column["type"], types.String)(),
                "nullable": True,
                "default": None,
                "comment": column["meaning"],
            }
            for column in columns
        ]

    def get_pk_constraint(self, *_: Any, **__: Any) -> Any:
        """Return no primary key."""
        return {"constrained_columns": [], "name": None}

    def get_table_comment(self, *_: Any, **__: Any) -> Any:
        """Return what the table is."""
        return {"text": "One row per request of the Gateway."}
