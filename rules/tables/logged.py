"""How the log spells the tables that a rule or a configuration names."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rules.conditions.patterns import fold_case, glob_matches
from rules.tables.names import NameIndex

if TYPE_CHECKING:
    from rules.tables.names import TableName, TablePattern
    from rules.tables.warehouse import WarehouseTables


class LoggedNames:
    """The names in a tenant's log, to find those that are a table or may be."""

    def __init__(self, warehouse: WarehouseTables) -> None:
        self._texts: dict[TableName, list[str]] = defaultdict(list)
        for text in warehouse.logged:
            self._texts[warehouse.read(text)].append(text)
        self._index = NameIndex(self._texts)
        self._found: dict[TablePattern, list[str]] = {}

    def find(self, pattern: TablePattern) -> list[str]:
        """Return the spellings of the tables that a pattern means or may mean."""
        if pattern not in self._found:
            candidates = self._texts if pattern.is_glob else self._index.find_any([pattern.name])
            means = sorted(name for name in candidates if pattern.compare(name).counts)
            self._found[pattern] = [text for name in means for text in self._texts[name]]
        return self._found[pattern]

    def find_missed(self, text: str, pattern: TablePattern) -> list[str]:
        """Return the spellings of these tables that the text of a pattern does not match."""
        folded = fold_case(text)
        return [name for name in self.find(pattern) if not glob_matches(folded, fold_case(name))]

    def spelled_otherwise(self) -> list[tuple[TableName, list[str]]]:
        """Return the tables with several spellings, those with most first.

        A name is one spelling of the longest name that it may be.
        """
        found = []
        for name in self._texts:
            alike = self._index.find_any([name])
            texts = sorted(text for other in alike for text in self._texts[other])
            if len(texts) > 1 and max(map(len, alike)) == len(name):
                found.append((name, texts))
        return sorted(found, key=lambda item: (-len(item[1]), item[0]))
