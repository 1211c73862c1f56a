"""Count how often the log spells each name of a table. No more is kept than fits into a row of a day."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from logs.compaction.engine import connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

#: The most names that are kept, and the most bytes that they take together.
MAX_NAMES: Final = 1_000
_MAX_BYTES: Final = 64 << 10
#: Names with more characters are left out: no pattern of a rule is as long.
_MAX_LENGTH: Final = 2_000
_COUNT: Final = f"""
WITH lists AS (
    SELECT if(json_valid(tables), tables, '[]') AS tables, count(*) AS entries
    FROM read_parquet(?) WHERE tables IS NOT NULL GROUP BY tables
),
texts AS (
    SELECT entries, unnest(list_distinct(list_transform(
        list_filter(json_extract(tables, '$[*]'), lambda item: json_type(item) = 'VARCHAR'),
        lambda item: left(item->>'$', {_MAX_LENGTH + 1})
    ))) AS name
    FROM lists
)
SELECT name, sum(entries)::BIGINT FROM texts
GROUP BY name ORDER BY 2 DESC, 1 LIMIT {MAX_NAMES + 1}"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class TableNames:
    """The names of tables in a log.

    Attributes:
        counts: by name, as the log spells it, the number of entries; the most frequent names.
        complete: False if the log has more names.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True

    @classmethod
    def of(cls, counted: Iterable[tuple[str, int]], *, complete: bool = True) -> TableNames:
        """Return the most frequent of the counted names, as many as fit."""
        kept: dict[str, int] = {}
        size = 0
        for name, count in sorted(counted, key=lambda item: (-item[1], item[0])):
            length = len(name.encode())
            # JSON in PostgreSQL cannot hold NUL, and rules are such JSON: no condition names such a table.
            if (
                len(name) > _MAX_LENGTH
                or "\0" in name
                or len(kept) == MAX_NAMES
                or size + length > _MAX_BYTES
            ):
                complete = False
            else:
                kept[name] = count
                size += length
        return cls(kept, complete)

    @classmethod
    def merge(cls, parts: Iterable[Mapping[str, Any] | None]) -> TableNames:
        """Merge stored names of hours or days. None, which an earlier release wrote, has no names."""
        counts: Counter[str] = Counter()
        complete = True
        for part in parts:
            counts.update({} if part is None else part["counts"])
            complete &= part is None or part["complete"]
        return cls.of(counts.items(), complete=complete)


def count_table_names(file: Path) -> TableNames:
    """Count the names in a day's Parquet file."""
    with connect(spill=file.parent / "spill") as engine:
        return TableNames.of(engine.execute(_COUNT, [str(file)]).fetchall())
