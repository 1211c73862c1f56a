"""The client's dialect, with what writes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from sqlalchemy.sql import compiler
from tenantadmin_client.sqlalchemy_dialect import TenantadminDialect


class _Tables(compiler.DDLCompiler):
    """Makes tables without keys: DuckDB does not delete rows of which one refers to another."""

    def get_column_specification(self, column: Any, **options: Any) -> str:
        default = " DEFAULT nextval('numbers')" if column is column.table._autoincrement_column else ""
        return super().get_column_specification(column, **options) + default

    def create_table_constraints(self, *_: Any, **__: Any) -> str:
        return ""


class WritingDialect(TenantadminDialect):
    """Finds the tables that the tests make."""

    supports_statement_cache = True
    ddl_compiler = _Tables
    postfetch_lastrowid = False
    dbapi = TenantadminDialect.dbapi
    import_dbapi = TenantadminDialect.import_dbapi

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        for row in parameters:
            cursor.execute(statement, row)

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return self._names(connection, "BASE TABLE", schema)

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        return [name for name in self._names(connection, "VIEW", schema) if name != "proxy_logs"]

    def _names(self, connection: Any, kind: str, schema: str | None) -> list[str]:
        statement = text(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_type = :kind AND table_schema = :schema"
        )
        found = connection.execute(statement, {"kind": kind, "schema": schema or "main"})
        return [name for (name,) in found]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        return table_name in [
            *self.get_table_names(connection, schema),
            *self.get_view_names(connection, schema),
        ]
