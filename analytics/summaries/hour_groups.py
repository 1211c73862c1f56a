"""Store the groups of a part of a day's rows, and merge them to the groups of the whole day.

All that a day's rollups need of the rows is in the groups, so rollups of merged groups are those of one file.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.summaries.day_rollup import GROUPINGS, DayGroups, combine_groups
from analytics.summaries.grouping import TextDictionary, look_up
from logs.compaction.engine import HOUR_COLUMN
from tenantadmin.lib.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from analytics.summaries.grouping import Array

_USER, _SQL, _RULE, _KEY = "userName", "standardizedSql", "matchedRule", "cacheKey"
#: The columns of the rows that are the latest of a group.
_LATEST: Final = (
    *("timestamp", "logId", "cacheKey", "matchedRule", "matchedRuleName"),
    *("cacheStatus", "statusCode", "responseSize"),
)
#: Of rows that were stored in the cache, of which there are many, only this column is read.
_STORED: Final = ("responseSize",)
#: Measures that are row numbers.
_ROW_NUMBERS: Final = frozenset({"latest_row", "row"})
_CODED: Final = (_USER, _RULE, _KEY, _SQL)


def save_groups(groups: DayGroups, target: Path) -> None:
    """Write groups to a file: one Arrow stream after another."""
    user_statements, rule_statements, _, stored_keys = groups.tables
    latest = [
        table["latest_row"].filter(pc.is_valid(table[key])).combine_chunks()
        for table, key in ((user_statements, _SQL), (rule_statements, _RULE))
    ]
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(target), "wb") as sink:
        for table in (
            *groups.tables,
            *(pa.table({name: groups.texts[name].texts}) for name in (_USER, _RULE, _KEY)),
            pa.table({_SQL: groups.digests, "text": groups.statements}),
            _rows_at(groups, pa.concat_arrays(latest).unique(), _LATEST),
            _rows_at(groups, stored_keys["row"].combine_chunks(), _STORED),
        ):
            with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                writer.write_table(table)


def _rows_at(groups: DayGroups, rows: Array, columns: Sequence[str]) -> pa.Table:
    table = groups.at(rows, columns)
    # Joined, texts of a whole day may exceed 2 GiB.
    fields = [(field.name, _large(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)).append_column("row", rows)


def _large(type_: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_string(type_) else type_


def merge_groups(parts: Sequence[tuple[Path, int]]) -> DayGroups:
    """Merge the groups of all parts of a day.

    Args:
        parts: the file and the number of rows of each part, in the order of the rows.
    """
    streams = [_read_streams(path) for path, _ in parts]
    starts = list(accumulate((rows for _, rows in parts), initial=0))[:-1]
    count = len(GROUPINGS)
    dictionaries = [
        dict(zip(_CODED, (table.column(0) for table in tables[count : count + len(_CODED)]), strict=True))
        for tables in streams
    ]
    codes, values = _encode(dictionaries)
    grouped = [
        [
            _recode(table, codes={name: codes[name][number] for name in _CODED}, first_row=start)
            for table in tables[:count]
        ]
        for number, (tables, start) in enumerate(zip(streams, starts, strict=True))
    ]
    texts = {name: TextDictionary() for name in (_USER, _RULE)}
    for name, dictionary in texts.items():
        dictionary.texts = values[name].cast(pa.string())
    statements = pa.concat_tables([tables[count + len(_CODED) - 1] for tables in streams]).combine_chunks()
    first = pc.index_in(values[_SQL], value_set=statements[_SQL].combine_chunks())
    latest, stored = (
        pa.concat_tables(
            [
                _recode(tables[place], codes={}, first_row=start)
                for tables, start in zip(streams, starts, strict=True)
            ]
        )
        for place in (-2, -1)
    )

    def at(rows: Array, columns: Sequence[str]) -> pa.Table:
        table = stored if tuple(columns) == _STORED else latest
        return pa.table(look_up(table, "row", rows, names=columns))

    return DayGroups(
        _combine(list(zip(*grouped, strict=True))),
        texts,
        statements["text"].combine_chunks().take(first),
        values[_SQL],
        at,
    )


def _combine(parts: Sequence[Sequence[pa.Table]]) -> list[pa.Table]:
    """Combine the groups of all parts. Groups by hour are only joined, if no two parts share an hour."""
    hours = [table[HOUR_COLUMN].unique() for table in parts[0]]
    if sum(map(len, hours)) > len(pa.concat_tables(parts[0])[HOUR_COLUMN].unique()):
        return combine_groups(parts)
    return combine_groups(
        [
            [pa.concat_tables(tables)] if HOUR_COLUMN in keys else tables
            for tables, (keys, _) in zip(parts, GROUPINGS, strict=True)
        ]
    )


def _read_streams(path: Path) -> list[pa.Table]:
    tables = []
    with pa.OSFile(str(path), "rb") as source:
        while source.tell() < source.size():
            tables.append(pa.ipc.open_stream(source).read_all())
    return tables


def _encode(dictionaries: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[Array]], dict[str, Array]]:
    """Join the dictionaries of all parts: for each column the new codes of each part, and the values."""
    codes, values = {}, {}
    for name in _CODED:
        columns = [_widened(part[name]) for part in dictionaries]
        encoded = pa.concat_arrays(columns).dictionary_encode()
        bounds = list(accumulate(map(len, columns), initial=0))
        codes[name] = [encoded.indices.slice(start, end - start) for start, end in pairwise(bounds)]
        values[name] = encoded.dictionary
    return codes, values


def _widened(column: Any) -> Array:
    return column.cast(_large(column.type)).combine_chunks()


def _recode(table: pa.Table, *, codes: Mapping[str, Array], first_row: int) -> pa.Table:
    """Return the table with the codes and the row numbers of the whole day."""
    columns = {}
    for name in table.column_names:
        column: Any = table[name].combine_chunks()
        if name in codes:
            column = codes[name].take(column)
        elif name in _ROW_NUMBERS:
            column = pc.add(column, first_row)
        columns[name] = column
    return pa.table(columns)
