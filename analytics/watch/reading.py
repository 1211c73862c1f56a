"""Read the log for a digest. Every fact has SQL over ``proxy_logs`` that returns its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from accounts.tenants.pricing import Pricing
from analytics.numbers.store import ended_after, new_engine
from analytics.watch.facts import Fact, FactQuery
from logs.sources import local_paths
from logs.sql.view import LogView
from rules.tables.warehouse import ANY_TABLES, WarehouseTables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tenantadmin.lib.objectstore import ObjectStore


#: The number of facts that one statement reads.
_BATCH: Final = 20
#: A digest or an alert that takes longer is ended, so that it does not hold a worker.
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class LogDay:
    """A day with entries: its build, and the keys of its Parquet files."""

    day: date
    build: str
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class DigestLog:
    """A tenant's log of some days, all from one set of builds."""

    connection: DuckDBPyConnection
    days: Sequence[date]
    warehouse: WarehouseTables = ANY_TABLES
    pricing: Pricing = field(default_factory=lambda: Pricing.of([]))
    #: Tables by the text of the subquery whose rows they have.
    held: dict[str, str] = field(default_factory=dict)

    def hold(self, subquery: str) -> None:
        """Compute a subquery once. Statements that have it in parentheses read its rows from now on."""
        table = f"held_{len(self.held)}"
        self.connection.execute(f"CREATE TEMP TABLE {table} AS {subquery}")
        self.held[subquery] = table

    def with_held(self, statement: str) -> str:
        """Return a statement with tables in place of the subqueries that are held."""
        for subquery, table in self.held.items():
            statement = statement.replace(f"({subquery})", table)
        return statement

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return the rows of a statement as dicts."""
        cursor = self.connection.execute(self.with_held(statement), parameters)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def read_facts(self, *queries: FactQuery) -> list[Fact]:
        """Return the facts of these queries. The value of a fact comes from its SQL alone."""
        facts: list[Fact] = []
        for start in range(0, len(queries), _BATCH):
            batch = queries[start : start + _BATCH]
            columns = ", ".join(f"({query.sql})" for query in batch)
            values = self.connection.execute(self.with_held(f"SELECT {columns}")).fetchone() or ()
            facts += [
                Fact(id=query.id, value=value, unit=query.unit, sql=query.sql)
                for query, value in zip(batch, values, strict=True)
            ]
        return facts


@contextmanager
def open_log(
    store: ObjectStore,
    days: Sequence[LogDay],
    *,
    warehouse: WarehouseTables = ANY_TABLES,
    prices: Sequence[Mapping[str, Any]] = (),
) -> Iterator[DigestLog]:
    """Open the log of some days.

    Raises:
        StoreError: the store cannot be read.
        duckdb.Error: the store fails during a query, or the block takes too much time or memory.
    """
    files = local_paths(store, (key for day in days for key in day.files))
    with new_engine() as engine, ended_after(_SECONDS, engine.connection):
        LogView(engine.connection).make_fitting(files)
        yield DigestLog(engine.connection, [day.day for day in days], warehouse, Pricing.of(prices))
