"""What is known of a tenant's tables, and what its views read. Contract: TenantConfig. No Django."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rules.tables.names import TablePattern, compare, last_part, read_name

if TYPE_CHECKING:
    from rules.tables.names import TableName


class Views:
    """Pairs of a view and a table that it reads. A view may read itself or be in a circle."""

    def __init__(self, pairs: Iterable[tuple[TableName, TableName]] = ()) -> None:
        self._by_view: dict[str, list[tuple[TableName, TableName]]] = defaultdict(list)
        for view, table in pairs:
            self._by_view[last_part(view)].append((view, table))

    def reach(self, names: Iterable[TableName]) -> frozenset[TableName]:
        """Return the names and all that they read if they are views, or may be."""
        found = set(names)
        waiting = list(found)
        while waiting:
            name = waiting.pop()
            read = {
                table
                for view, table in self._by_view.get(last_part(name), ())
                if compare(view, name).counts and table not in found
            }
            found |= read
            waiting += read
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class WarehouseTables:
    """``database``, ``perUserTables`` and ``views`` of ``warehouse``, and the names in the log.

    Attributes:
        database: the normal form of the database of names with a schema alone; empty if none is configured.
        per_user: patterns of the tables that differ per user; None if the tenant does not say.
        views: each view with the tables that it reads, as they are spelled.
        logged: how the log of the last 28 days spells names of tables; empty where no log is known.
    """

    database: str = ""
    per_user: tuple[str, ...] | None = None
    views: tuple[tuple[str, tuple[str, ...]], ...] = ()
    logged: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> WarehouseTables:
        """Return the tables of a stored configuration, which may lack ``warehouse``."""
        warehouse = config.get("warehouse", {})
        patterns = warehouse.get("perUserTables")
        return cls(
            database=read_name(warehouse.get("database", "")),
            per_user=None if patterns is None else tuple(patterns),
            views=tuple((view, tuple(tables)) for view, tables in warehouse.get("views", {}).items()),
        )

    def read(self, text: str) -> TableName:
        """Return the normal form of a name of this warehouse."""
        return read_name(text, database=self.database)

    def pattern(self, text: str) -> TablePattern:
        return TablePattern.of(text, database=self.database)

    def patterns(self, texts: Iterable[str]) -> list[TablePattern]:
        return [self.pattern(text) for text in texts]

    @property
    def view_pairs(self) -> list[tuple[TableName, TableName]]:
        """Each configured view with each table that it reads."""
        return [(self.read(view), self.read(table)) for view, tables in self.views for table in tables]

    @property
    def personal(self) -> tuple[str, ...]:
        """The patterns of tables that differ per user, and the views that read such a table."""
        return self.with_views(self.per_user or ())

    def with_views(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return names and patterns of tables with the views that read them, also through other views."""
        if not texts or not self.views:
            return tuple(texts)
        edges = [(view, self.read(table)) for view, tables in self.views for table in tables]
        by_table: dict[str, list[tuple[str, TableName]]] = defaultdict(list)
        for view, table in edges:
            by_table[last_part(table)].append((view, table))
        found = dict.fromkeys(texts)
        waiting = self.patterns(texts)
        while waiting:
            pattern = waiting.pop()
            candidates = edges if pattern.is_glob else by_table[last_part(pattern.name)]
            reading = dict.fromkeys(view for view, table in candidates if pattern.compare(table).counts)
            waiting += [self.pattern(view) for view in reading if view not in found]
            found |= reading
        return tuple(found)


#: Of a tenant that is not known.
ANY_TABLES: Final = WarehouseTables()
