"""Store the groups of each span of a day, and merge them into the groups of the whole day.

`day_rollup` groups the rows of a day, and then makes the day's tables from the groups alone. So the merged
groups of spans give the same tables as the groups of one file.

Groups have codes in place of texts, and row numbers in place of rows. Each span has its own dictionaries and
counts its rows from 0, so merging changes both. The tables also need a few columns of some rows, such as the
latest row of each group. The file of a span has these columns too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.summaries.day_rollup import GROUPINGS, DayGroups, combine_groups
from analytics.summaries.grouping import TextDictionary, look_up
from logs.compaction.convert import HOUR_COLUMN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from analytics.summaries.grouping import Array

_USER, _SQL, _RULE, _KEY = "userName", "standardizedSql", "matchedRule", "cacheKey"
#: The columns that tables need of the latest row of each group.
_LATEST: Final = (
    "timestamp", "logId", "cacheKey", "matchedRule", "matchedRuleName",
    "cacheStatus", "statusCode", "responseSize",
)  # fmt: skip
#: The column that tables need of rows that were stored in the cache. There are many such rows.
_STORED: Final = ("responseSize",)
#: The columns of groups that hold row numbers.
_ROW_NUMBERS: Final = frozenset({"latest_row", "row"})
#: The columns of groups that hold codes.
_CODED: Final = (_USER, _RULE, _KEY, _SQL)


@dataclass(frozen=True, slots=True)
class _SpanGroups:
    """The content of a span's file.

    Attributes:
        tables: the groups: one table for each of `GROUPINGS`.
        dictionaries: the values of each coded column by code. Statements have their MD5 as value.
        statements: the MD5 (``standardizedSql``) and the ``text`` of each statement.
        latest, stored: the columns `_LATEST` and `_STORED` of the rows with the number ``row``.
    """

    tables: Sequence[pa.Table]
    dictionaries: Mapping[str, Any]
    statements: pa.Table
    latest: pa.Table
    stored: pa.Table


def save_groups(groups: DayGroups, target: Path) -> None:
    """Write groups to a file: one Arrow stream after another, in the order that `_read_span` expects."""
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
    # Large strings: the texts of a whole day may exceed 2 GiB.
    fields = [(field.name, _large(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)).append_column("row", rows)


def _large(type_: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_string(type_) else type_


def merge_groups(parts: Sequence[tuple[Path, int]]) -> DayGroups:
    """Merge the groups of all spans of a day.

    Args:
        parts: the file and the number of rows of each span, in the order of the rows.
    """
    spans = [_read_span(path) for path, _ in parts]
    first_rows = list(accumulate((rows for _, rows in parts), initial=0))[:-1]
    codes, values = _join_dictionaries([span.dictionaries for span in spans])
    grouped = [
        [
            _recode(table, codes={name: codes[name][number] for name in _CODED}, first_row=first_row)
            for table in span.tables
        ]
        for number, (span, first_row) in enumerate(zip(spans, first_rows, strict=True))
    ]
    texts = {name: TextDictionary() for name in (_USER, _RULE)}
    for name, dictionary in texts.items():
        dictionary.texts = values[name].cast(pa.string())
    statements = pa.concat_tables([span.statements for span in spans]).combine_chunks()
    first = pc.index_in(values[_SQL], value_set=statements[_SQL].combine_chunks())
    latest = _join_rows([span.latest for span in spans], first_rows)
    stored = _join_rows([span.stored for span in spans], first_rows)

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


def _read_span(path: Path) -> _SpanGroups:
    streams = []
    with pa.OSFile(str(path), "rb") as source:
        while source.tell() < source.size():
            streams.append(pa.ipc.open_stream(source).read_all())
    *tables, users, rules, keys, statements, latest, stored = streams
    dictionaries = {
        name: table.column(0) for name, table in zip(_CODED, (users, rules, keys, statements), strict=True)
    }
    return _SpanGroups(tables, dictionaries, statements, latest, stored)


def _join_rows(tables: Sequence[pa.Table], first_rows: Sequence[int]) -> pa.Table:
    return pa.concat_tables(
        [
            _recode(table, codes={}, first_row=first_row)
            for table, first_row in zip(tables, first_rows, strict=True)
        ]
    )


def _combine(parts: Sequence[Sequence[pa.Table]]) -> list[pa.Table]:
    """Combine the groups of all spans. Groups by hour are concatenated if no two spans share an hour."""
    hours = [table[HOUR_COLUMN].unique() for table in parts[0]]
    if sum(map(len, hours)) > len(pa.concat_tables(parts[0])[HOUR_COLUMN].unique()):
        return combine_groups(parts)
    return combine_groups(
        [
            [pa.concat_tables(tables)] if HOUR_COLUMN in keys else tables
            for tables, (keys, _) in zip(parts, GROUPINGS, strict=True)
        ]
    )


def _join_dictionaries(
    dictionaries: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, list[Array]], dict[str, Array]]:
    """Join the dictionaries of all spans. Return two mappings by column.

    The first has for each span an array of new codes by old code. The second has the values by new code.
    """
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
    """Replace the codes and the row numbers of a span with codes and row numbers of the whole day."""
    columns = {}
    for name in table.column_names:
        column: Any = table[name].combine_chunks()
        if name in codes:
            column = codes[name].take(column)
        elif name in _ROW_NUMBERS:
            column = pc.add(column, first_row)
        columns[name] = column
    return pa.table(columns)
