"""What views read, also through other views."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rules.tables.names import compare, last_part

if TYPE_CHECKING:
    from collections.abc import Iterable

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
