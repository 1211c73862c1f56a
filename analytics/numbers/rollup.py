"""Roll up a day (`analytics.numbers.tables`) from its Parquet file, or from the groups of its spans.

Arrow groups by the dictionary codes of texts. DuckDB, which groups by the texts, takes four times as long.

The rows of a day are grouped first, and the day's tables are made from the groups alone. So the merged groups
of spans give the same tables as the groups of one file. Groups have codes in place of texts, and row numbers
in place of rows. Each span has its own dictionaries and counts its rows from 0, so merging changes both. The
tables also need a few columns of some rows, such as the latest row of each group. A span's file has them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.numbers.tables import (
    ACTIVITY,
    COLUMNS_OF,
    HOURS,
    LATEST_VALUES,
    ROWS,
    RULES,
    STATEMENTS,
    TABLES,
    TYPES,
    USERS,
    WIDE,
    Array,
    DayRows,
    Measures,
    TextDictionary,
    group,
    look_up,
    means,
    regroup,
    write_table,
)
from logs.compaction.convert import HOUR_COLUMN
from logs.definitions import (
    BYPASSED,
    HIT,
    MISS,
    NOT_CACHED,
    PASSED,
    SIZED,
    STORED_MISS,
    TIMED,
    Above,
    Statuses,
)

#: The columns of the log to read, apart from the statements.
_COLUMNS: Final = (
    "userName", "matchedRule", "matchedRuleName", "cacheStatus", "cacheKey",
    "timestamp", "logId", "responseTimeMs", "warehouseExecutionTimeMs", "responseSize", "statusCode",
    HOUR_COLUMN,
)  # fmt: skip

#: Measures of user x statement x hour. `_combine_hours` adds the mask of hours.
_STATEMENT_MEASURES: Final[Measures] = {
    "entries": ("", ROWS),
    "hits": ("hit", "sum"),
    "misses": ("miss", "sum"),
    "bypasses": ("bypass", "sum"),
    "passthroughs": ("passthrough", "sum"),
    "time_sum": ("time", "sum"),
    "time_count": ("time", "count"),
    "warehouse_sum": ("warehouse", "sum"),
    "uncached_warehouse_sum": ("uncached_warehouse", "sum"),
    "first_timestamp": ("timestamp", "min"),
    "last_timestamp": ("timestamp", "max"),
    "is_kept": ("kept", "any"),
    "latest_row": ("row", "max"),
}
_RULE_MEASURES: Final[Measures] = {
    "entries": ("", ROWS),
    "hits": ("hit", "sum"),
    "misses": ("counted_miss", "sum"),
    "not_cached": ("uncached", "sum"),
    "miss_warehouse_sum": ("miss_warehouse", "sum"),
    "miss_warehouse_count": ("miss_warehouse", "count"),
    "latest_row": ("row", "max"),
}
_HOUR_MEASURES: Final[Measures] = {
    "entries": ("", ROWS),
    "hits": ("hit", "sum"),
    "misses": ("counted_miss", "sum"),
    "hit_bytes": ("hit_size", "sum"),
    "other_bytes": ("other_size", "sum"),
    "time_sum": ("time", "sum"),
    "time_count": ("time", "count"),
    "time_min": ("time_ms", "min"),
    "time_max": ("time_ms", "max"),
    "hit_time_sum": ("hit_time", "sum"),
    "hit_time_count": ("hit_time", "count"),
    "miss_time_sum": ("miss_time", "sum"),
    "miss_time_count": ("miss_time", "count"),
}
_ACTIVITY_MEASURES: Final = {
    name: _HOUR_MEASURES[name]
    for name in ("hits", "misses", "hit_bytes", "time_sum", "time_count", "time_min", "time_max")
}
#: The row of the last MISS of each cache key, and the number and bytes of these rows.
_LAST_MISS: Final[Measures] = {"row": ("row", "max")}
_STORED_MEASURES: Final[Measures] = {"stored_elements": ("", ROWS), "stored_size": ("size", "sum")}

_USER, _SQL, _RULE, _KEY = "userName", "standardizedSql", "matchedRule", "cacheKey"
#: The keys and measures of user x statement x hour, rule x statement, hour x user, and user x cache key.
GROUPINGS: Final = (
    ((_USER, _SQL, HOUR_COLUMN), _STATEMENT_MEASURES),
    ((_RULE, _SQL), _RULE_MEASURES),
    ((HOUR_COLUMN, _USER), _HOUR_MEASURES),
    ((_USER, _KEY), _LAST_MISS),
)
#: A key column with the same value in all rows, for measures of the whole day.
_ALL = "all"

_THREADS: Final = 2


def write_rollups(log: Path, *, day: date, directory: Path) -> Mapping[str, Path]:
    """Roll up the day's file ``log`` into ``directory``: one Parquet file for each table in `TABLES`."""
    with open_rows(log) as rows, ThreadPoolExecutor(_THREADS) as pool:
        return write_day_tables(group_rows(rows, pool), day=day, directory=directory, pool=pool)


@dataclass(frozen=True, slots=True)
class DayGroups:
    """The groups of a day's rows, with codes in place of texts.

    Attributes:
        tables: the groups: one table for each of `GROUPINGS`.
        texts: the dictionary of each key column except the statements.
        statements: the texts of statements by code.
        digests: the MD5 of statements by code.
        at: returns columns of rows by row number, see `DayRows.at`.
    """

    tables: Sequence[pa.Table]
    texts: Mapping[str, TextDictionary]
    statements: Array
    digests: Array
    at: Callable[[Array, Sequence[str]], pa.Table]


def open_rows(log: Path) -> DayRows:
    """Open a file of the log, to read the columns that rollups need."""
    return DayRows(log, columns=_COLUMNS)


def group_rows(rows: DayRows, pool: ThreadPoolExecutor) -> DayGroups:
    """Group the rows of a file."""
    grouped_parts: list[list[pa.Table]] = []
    for part in rows.parts():
        measured = _add_measures(rows, part)
        stored = measured.filter(measured["stored"])
        sources = [measured, measured, measured, stored]
        groups = pool.map(lambda source, grouping: _group_part(source, *grouping), sources, GROUPINGS)
        grouped_parts.append(list(groups))
    tables = combine_groups(list(zip(*grouped_parts, strict=True)))
    return DayGroups(tables, rows.texts, rows.statements.texts(), rows.statements.digests, rows.at)


def combine_groups(parts: Sequence[Sequence[pa.Table]]) -> list[pa.Table]:
    """Combine the groups of several ranges of rows: for each of `GROUPINGS`, the tables of all ranges."""
    return [
        tables[0] if len(tables) == 1 else regroup(pa.concat_tables(tables), *grouping)
        for tables, grouping in zip(parts, GROUPINGS, strict=True)
    ]


def write_day_tables(
    groups: DayGroups, *, day: date, directory: Path, pool: ThreadPoolExecutor
) -> Mapping[str, Path]:
    """Write one Parquet file for each table in `TABLES` to ``directory``."""
    targets = {name: directory / f"{name}.parquet" for name in TABLES}
    tables = _Day(groups, day).tables()
    list(pool.map(lambda name: write_table(tables[name](), targets[name]), tables))
    return targets


def _add_measures(rows: DayRows, part: pa.Table) -> pa.Table:
    """Return the columns that measures are computed from. A value is null if its row does not count."""
    columns = {name: part[name].combine_chunks() for name in part.column_names}
    statuses = rows.texts["cacheStatus"]

    def has(chosen: Statuses) -> Array:
        codes = pa.array([statuses.code(name) for name in chosen], columns["cacheStatus"].type)
        return pc.is_in(columns["cacheStatus"], value_set=codes)

    def count_values(counted: Above) -> Array:
        values = columns[counted.column]
        return pc.if_else(pc.greater(values, counted.limit), values, None)

    hit, miss, counted_miss, uncached = has(HIT), has(STORED_MISS), has(MISS), has(NOT_CACHED)
    stored = pc.and_(miss, pc.is_valid(columns[_KEY]))
    time_ms, warehouse = count_values(TIMED), columns["warehouseExecutionTimeMs"]
    time, size = _widen(time_ms), _widen(count_values(SIZED))
    return pa.table(
        {
            **{name: columns[name] for name in (_USER, _SQL, _RULE, _KEY, HOUR_COLUMN, "timestamp", "row")},
            "hit": hit,
            "miss": miss,
            "bypass": has(BYPASSED),
            "passthrough": has(PASSED),
            "uncached": uncached,
            "counted_miss": counted_miss,
            "stored": stored,
            "kept": pc.or_(hit, stored),
            "time_ms": time_ms,
            "time": time,
            "warehouse": warehouse,
            "hit_time": pc.if_else(hit, time, None),
            "miss_time": pc.if_else(counted_miss, time, None),
            "miss_warehouse": pc.if_else(miss, warehouse, None),
            "uncached_warehouse": pc.if_else(uncached, warehouse, None),
            "hit_size": pc.if_else(hit, size, None),
            "other_size": pc.if_else(hit, None, size),
        }
    )


class _Day:
    """Makes the tables of a day from its groups."""

    def __init__(self, groups: DayGroups, day: date) -> None:
        self._rows, self._day = groups, day
        self._user_statements, self._rule_statements, self._hours, self._stored_keys = groups.tables
        self._texts, self._digests = groups.statements, groups.digests

    def tables(self) -> dict[str, Callable[[], pa.Table]]:
        """Return functions that make the tables with sorted rows. The slowest ones are first."""
        return {
            USERS: self._user_table,
            STATEMENTS: self._statement_table,
            ACTIVITY: self._activity_table,
            RULES: self._rule_table,
            HOURS: self._hour_table,
        }

    def _statement_table(self) -> pa.Table:
        hourly = regroup(_drop_nulls(self._user_statements, _SQL), (_SQL, HOUR_COLUMN), _STATEMENT_MEASURES)
        groups = _combine_hours(hourly, (_SQL,))
        # The texts stay dictionary codes until `write_table` writes them in small parts.
        sql = pa.DictionaryArray.from_arrays(groups[_SQL].combine_chunks(), self._texts)
        table = _with_columns(
            groups, {"sql": sql}, self._digest(groups), self._latest_key(groups), self._latest_values(groups)
        )
        return _sorted(table, ("entries", "descending"), ("statement", "ascending"))

    def _user_table(self) -> pa.Table:
        of_users = _drop_nulls(_drop_nulls(self._user_statements, _SQL), _USER)
        groups = _combine_hours(of_users, (_USER, _SQL))
        users = self._rows.texts[_USER]
        names = {"user_name": users.texts.take(groups[_USER]), "rank": users.ranks().take(groups[_USER])}
        table = _with_columns(groups, self._digest(groups), names, self._latest_values(groups))
        order = (("rank", "ascending"), ("entries", "descending"), ("statement", "ascending"))
        return _sorted(table, *order)

    def _rule_table(self) -> pa.Table:
        groups = _drop_nulls(self._rule_statements, _RULE)
        rules = self._rows.texts[_RULE]
        name = self._rows.at(groups["latest_row"].combine_chunks(), ["matchedRuleName"])["matchedRuleName"]
        names = {"rule": rules.texts.take(groups[_RULE]), "rank": rules.ranks().take(groups[_RULE])}
        table = _with_columns(
            groups, self._digest(groups), names, self._latest_key(groups), {"latest_rule_name": name}
        )
        return _sorted(table, ("rank", "ascending"), ("statement", "ascending"))

    def _hour_table(self) -> pa.Table:
        users = self._rows.texts[_USER]
        codes = self._hours[_USER]
        names = {
            "user_name": users.texts.take(codes),
            "rank": pc.fill_null(users.ranks().take(codes), -1),
        }
        table = _with_columns(self._hours, names, {"hour": self._hours[HOUR_COLUMN]})
        return _sorted(table, ("rank", "ascending"), ("hour", "ascending"))

    def _activity_table(self) -> pa.Table:
        sizes = self._rows.at(self._stored_keys["row"].combine_chunks(), ["responseSize"])["responseSize"]
        size = pc.max_element_wise(pc.fill_null(sizes, 0), 0).cast(WIDE)
        user_keys = _with_columns(self._stored_keys, {"size": size})
        last_of_day = regroup(self._stored_keys, (_KEY,), _LAST_MISS)["row"].combine_chunks()
        tenant_keys = user_keys.filter(pc.is_in(user_keys["row"], value_set=last_of_day))
        users = self._rows.texts[_USER]
        codes = pc.index_in(users.texts.take(pc.sort_indices(users.texts)), value_set=users.texts)
        tenant_sums = _activity_sums(_with_columns(self._hours, _constant(_ALL, 0, self._hours)), _ALL)
        user_sums = _activity_sums(self._hours, _USER)
        user_statements = group(_drop_nulls(self._user_statements, _SQL), (_USER, _SQL), {})
        queries = group(user_statements, (_USER,), {"queries": ("", ROWS)})
        user_stored = group(user_keys, (_USER,), _STORED_MEASURES)
        with_all = _with_columns(tenant_keys, _constant(_ALL, 0, tenant_keys))
        tenant_stored = group(with_all, (_ALL,), _STORED_MEASURES)
        zero = pa.array([0])
        stored_names = list(_STORED_MEASURES)
        sum_names = [name for name in tenant_sums.column_names if name != _ALL]
        return pa.concat_tables(
            [
                self._activity(
                    pa.nulls(1, pa.string()),
                    {"users": pa.array([len(users.texts)]), "queries": pa.array([len(self._texts)])},
                    look_up(tenant_sums, _ALL, zero, names=sum_names),
                    look_up(tenant_stored, _ALL, zero, names=stored_names),
                ),
                self._activity(
                    users.texts.take(codes),
                    {"users": pa.repeat(1, len(codes))},
                    look_up(queries, _USER, codes, names=["queries"]),
                    look_up(user_sums, _USER, codes, names=sum_names),
                    look_up(user_stored, _USER, codes, names=stored_names),
                ),
            ]
        )

    def _activity(self, user_names: Array, *columns: Mapping[str, Array]) -> pa.Table:
        activity = {name: column for part in columns for name, column in part.items()}
        for name in ("queries", "stored_elements", "stored_size"):
            activity[name] = pc.fill_null(activity[name], 0)
        total = pc.add(activity["hits"], activity["misses"])
        days = pa.repeat(pa.scalar(self._day, pa.date32()), len(user_names))
        table = pa.table({**activity, "user_name": user_names, "total": total, "day": days})
        return table.select(list(COLUMNS_OF[ACTIVITY]))

    def _digest(self, groups: pa.Table) -> dict[str, Array]:
        return {"statement": self._digests.take(groups[_SQL])}

    def _latest_key(self, groups: pa.Table) -> dict[str, Array]:
        """Return the columns that decide which entry is the latest, also across days."""
        rows = self._rows.at(groups["latest_row"].combine_chunks(), ["timestamp", "logId"])
        return {
            "latest_timestamp": pc.fill_null(rows["timestamp"], 0),
            "latest_log_id": pc.fill_null(rows["logId"], ""),
            "latest_day": pa.repeat(pa.scalar(self._day, pa.date32()), groups.num_rows),
        }

    def _latest_values(self, groups: pa.Table) -> dict[str, Array]:
        """Return the columns of the latest entry that statement records show."""
        names = [_KEY, _RULE, "cacheStatus", "statusCode", "responseSize"]
        rows = self._rows.at(groups["latest_row"].combine_chunks(), names)
        return dict(zip(LATEST_VALUES, rows.columns, strict=True))


def _widen(column: Array) -> Array:
    """Return a column of positive numbers, as `WIDE` if their sum may exceed 64 bits."""
    highest = pc.max(column).as_py() or 0
    return column if highest * len(column) < 1 << 63 else column.cast(WIDE)


def _group_part(table: pa.Table, keys: Sequence[str], measures: Measures) -> pa.Table:
    groups = group(table, keys, measures)
    wide = {name: groups[name].cast(WIDE) for name in measures if TYPES.get(name) == WIDE}
    return _with_columns(groups, wide)


def _combine_hours(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Combine groups by ``keys`` and hour to groups by ``keys``. Add the mask of hours and the mean time."""
    bits = pc.shift_left(pa.scalar(1, pa.int32()), table[HOUR_COLUMN].cast(pa.int32()))
    # A group has each hour only once, so the sum of the bits is the mask.
    measures: Measures = {**_STATEMENT_MEASURES, "hour_mask": ("hour_mask", "sum")}
    groups = regroup(_with_columns(table, {"hour_mask": bits}), keys, measures)
    return _with_columns(groups, {"time_mean": means(groups["time_sum"], groups["time_count"])})


def _activity_sums(table: pa.Table, key: str) -> pa.Table:
    return regroup(table, (key,), _ACTIVITY_MEASURES)


def _drop_nulls(table: pa.Table, key: str) -> pa.Table:
    return table.filter(pc.is_valid(table[key]))


def _constant(name: str, value: int, like: pa.Table) -> dict[str, Array]:
    return {name: pa.repeat(value, like.num_rows)}


def _with_columns(table: pa.Table, *columns: Mapping[str, Any]) -> pa.Table:
    """Return the table with more columns, or with columns replaced."""
    merged = dict(zip(table.column_names, table.columns, strict=True))
    for more in columns:
        merged |= more
    return pa.table(merged)


def _sorted(table: pa.Table, *order: tuple[str, str]) -> pa.Table:
    return table.take(pc.sort_indices(table, sort_keys=list(order)))


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
