"""The SQLAlchemy dialect ``tenantadmin://token:PAT@host/tenant``, for SQLAlchemy 1.4 and 2.

Libraries hide the password of an address, so the token is the password. Options after ``?``: ``scheme=http``
for a service without TLS, ``allow_truncated=true``, and ``timeout`` in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import types
from sqlalchemy.engine import default
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.sql import compiler

from tenantadmin_client import dbapi

if TYPE_CHECKING:
    from types import ModuleType

    from sqlalchemy.engine import URL

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


class _Compiler(compiler.SQLCompiler):
    """Differences of DuckDB's SQL from the standard's."""

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        left, right = (self.process(side, **options) for side in (binary.left, binary.right))
        return f"regexp_matches({left}, {right})"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **options)}"


class TenantadminDialect(default.DefaultDialect):
    """The log of one tenant, read-only."""

    name = "tenantadmin"
    driver = "rest"
    default_paramstyle = "pyformat"
    statement_compiler = _Compiler
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_rowcount = False
    supports_alter = False
    requires_name_normalize = False

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

    get_view_names = get_foreign_keys = get_indexes = get_unique_constraints = _get_nothing

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
                "comment": column.get("description"),
            }
            for column in columns
        ]

    def get_pk_constraint(self, *_: Any, **__: Any) -> Any:
        """Return no primary key."""
        return {"constrained_columns": [], "name": None}

    def get_table_comment(self, *_: Any, **__: Any) -> Any:
        """Return what the table is."""
        return {"text": "One row per request of the Gateway."}
