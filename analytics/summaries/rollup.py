"""A day's Parquet file to its rollups (`analytics.summaries.rollup_tables`).

Grouping is Arrow's over numbers that stand for texts, a quarter of what the query engine takes over texts.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.summaries.dayrows import DayRows
from analytics.summaries.grouping import ROWS, WIDE, aligned, group, means, regroup
from analytics.summaries.rollup_tables import (
    ACTIVITY,
    COLUMNS_OF,
    HOURS,
    RULES,
    SHOWN,
    STATEMENTS,
    TABLES,
    TYPES,
    USERS,
    write_table,
)
from logs.compaction.engine import HOUR_COLUMN
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from analytics.summaries.grouping import Array, Measures

#: What is read of the log, beside the statements.
_COLUMNS: Final = (
    *("userName", "matchedRule", "matchedRuleName", "cacheStatus", "cacheKey"),
    *("timestamp", "logId", "responseTimeMs", "warehouseExecutionTimeMs", "responseSize", "statusCode"),
    HOUR_COLUMN,
)

#: Of user x statement x hour; `_whole_days` makes the hours of a group its mask.
_ASKED: Final[Measures] = {
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
_RULED: Final[Measures] = {
    "hits": ("hit", "sum"),
    "misses": ("counted_miss", "sum"),
    "miss_warehouse_sum": ("miss_warehouse", "sum"),
    "miss_warehouse_count": ("miss_warehouse", "count"),
    "latest_row": ("row", "max"),
}
_HOURS: Final[Measures] = {
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
_SERVED: Final = {
    name: _HOURS[name]
    for name in ("hits", "misses", "hit_bytes", "time_sum", "time_count", "time_min", "time_max")
}
#: The last MISS of each cache key.
_STORED: Final[Measures] = {"row": ("row", "max")}
_STORED_SUMS: Final[Measures] = {"stored_elements": ("", ROWS), "stored_size": ("size", "sum")}

_USER, _SQL, _RULE, _KEY = "userName", "standardizedSql", "matchedRule", "cacheKey"
#: Statements by user and hour, by rule; hours by user; stored keys by user.
_GROUPINGS: Final = (
    ((_USER, _SQL, HOUR_COLUMN), _ASKED),
    ((_RULE, _SQL), _RULED),
    ((HOUR_COLUMN, _USER), _HOURS),
    ((_USER, _KEY), _STORED),
)
#: Where a measure of the whole day is wanted: a key of which all rows have the same value.
_ALL = "all"

_THREADS: Final = 2


def write_rollups(log: Path, *, day: date, directory: Path) -> Mapping[str, Path]:
    """Roll the day's file ``log`` up into ``directory``: one Parquet file per name in `TABLES`."""
    targets = {name: directory / f"{name}.parquet" for name in TABLES}
    with DayRows(log, columns=_COLUMNS) as rows, ThreadPoolExecutor(_THREADS) as pool:
        tables = _Day(rows, day, pool).tables()
        list(pool.map(lambda name: write_table(tables[name](), targets[name]), tables))
    return targets


class _Day:
    """The groups of a day, of which its tables are made. Texts are their numbers until they are written."""

    def __init__(self, rows: DayRows, day: date, pool: ThreadPoolExecutor) -> None:
        self._rows, self._day = rows, day
        found: list[list[pa.Table]] = []
        for part in rows.parts():
            measured = self._measure(part)
            stored = measured.filter(measured["stored"])
            sources = [measured, measured, measured, stored]
            found.append(list(pool.map(lambda source, how: _group_part(source, *how), sources, _GROUPINGS)))
        self._asked, self._ruled, self._hours, self._kept = (
            _joined(parts, *how) for parts, how in zip(zip(*found, strict=True), _GROUPINGS, strict=True)
        )
        self._texts, self._statements = rows.statements.texts(), rows.statements.digests

    def tables(self) -> dict[str, Callable[[], pa.Table]]:
        """What makes each table, its rows in order. Those that take longest stand first."""
        return {
            USERS: self._user_table,
            STATEMENTS: self._statement_table,
            ACTIVITY: self._activity_table,
            RULES: self._rule_table,
            HOURS: self._hour_table,
        }

    def _measure(self, part: pa.Table) -> pa.Table:
        """The columns of which measures are made, each null where a row does not count for it."""
        columns = {name: part[name].combine_chunks() for name in part.column_names}
        numbers = self._rows.texts["cacheStatus"]

        def has_status(name: str) -> Array:
            return pc.fill_null(pc.equal(columns["cacheStatus"], numbers.number(name)), fill_value=False)

        def positive(name: str) -> Array:
            return pc.if_else(pc.greater(columns[name], 0), columns[name], None)

        hit, miss = has_status("HIT"), has_status("MISS")
        bypass, passthrough = has_status("BYPASS"), has_status("PASSTHROUGH")
        uncached = pc.or_(bypass, passthrough)
        counted_miss = pc.or_(miss, uncached)
        stored = pc.and_(miss, pc.is_valid(columns[_KEY]))
        time_ms, warehouse = positive("responseTimeMs"), columns["warehouseExecutionTimeMs"]
        time, size = _summable(time_ms), _summable(positive("responseSize"))
        return pa.table(
            {
                **{
                    name: columns[name]
                    for name in (_USER, _SQL, _RULE, _KEY, HOUR_COLUMN, "timestamp", "row")
                },
                "hit": hit,
                "miss": miss,
                "bypass": bypass,
                "passthrough": passthrough,
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

    def _statement_table(self) -> pa.Table:
        asked = regroup(_known(self._asked, _SQL), (_SQL, HOUR_COLUMN), _ASKED)
        own = _whole_days(asked, (_SQL,))
        # Numbers until they are written, some at a time.
        sql = pa.DictionaryArray.from_arrays(own[_SQL].combine_chunks(), self._texts)
        table = _with(own, {"sql": sql}, self._statement(own), self._latest(own), self._shown(own))
        return _sorted(table, ("entries", "descending"), ("statement", "ascending"))

    def _user_table(self) -> pa.Table:
        own = _whole_days(_known(_known(self._asked, _SQL), _USER), (_USER, _SQL))
        users = self._rows.texts[_USER]
        names = {"user_name": users.texts.take(own[_USER]), "rank": users.ranks().take(own[_USER])}
        table = _with(own, self._statement(own), names, self._shown(own))
        order = (("rank", "ascending"), ("entries", "descending"), ("statement", "ascending"))
        return _sorted(table, *order)

    def _rule_table(self) -> pa.Table:
        own = _known(self._ruled, _RULE)
        rules = self._rows.texts[_RULE]
        name = self._rows.at(own["latest_row"].combine_chunks(), ["matchedRuleName"])["matchedRuleName"]
        names = {"rule": rules.texts.take(own[_RULE]), "rank": rules.ranks().take(own[_RULE])}
        table = _with(own, self._statement(own), names, self._latest(own), {"latest_rule_name": name})
        return _sorted(table, ("rank", "ascending"), ("statement", "ascending"))

    def _hour_table(self) -> pa.Table:
        users = self._rows.texts[_USER]
        numbers = self._hours[_USER]
        names = {
            "user_name": users.texts.take(numbers),
            "rank": pc.fill_null(users.ranks().take(numbers), -1),
        }
        table = _with(self._hours, names, {"hour": self._hours[HOUR_COLUMN]})
        return _sorted(table, ("rank", "ascending"), ("hour", "ascending"))

    def _activity_table(self) -> pa.Table:
        sizes = self._rows.at(self._kept["row"].combine_chunks(), ["responseSize"])["responseSize"]
        size = pc.max_element_wise(pc.fill_null(sizes, 0), 0).cast(WIDE)
        kept = _with(self._kept, {"size": size})
        last = regroup(self._kept, (_KEY,), _STORED)["row"].combine_chunks()
        of_day = kept.filter(pc.is_in(kept["row"], value_set=last))
        users = self._rows.texts[_USER]
        everyone = _served(_with(self._hours, _constant(_ALL, 0, self._hours)), _ALL)
        numbers = pc.index_in(users.texts.take(pc.sort_indices(users.texts)), value_set=users.texts)
        single = _served(self._hours, _USER)
        asked = group(_known(self._asked, _SQL), (_USER, _SQL), {})
        queries = group(asked, (_USER,), {"queries": ("", ROWS)})
        stored = group(kept, (_USER,), _STORED_SUMS)
        whole = group(_with(of_day, _constant(_ALL, 0, of_day)), (_ALL,), _STORED_SUMS)
        zero = pa.array([0])
        sums = ("stored_elements", "stored_size")
        served = [name for name in everyone.column_names if name != _ALL]
        return pa.concat_tables(
            [
                self._activity(
                    pa.nulls(1, pa.string()),
                    {"users": pa.array([len(users.texts)]), "queries": pa.array([len(self._texts)])},
                    aligned(everyone, _ALL, zero, names=served),
                    aligned(whole, _ALL, zero, names=sums),
                ),
                self._activity(
                    users.texts.take(numbers),
                    {"users": pa.repeat(1, len(numbers))},
                    aligned(queries, _USER, numbers, names=["queries"]),
                    aligned(single, _USER, numbers, names=served),
                    aligned(stored, _USER, numbers, names=sums),
                ),
            ]
        )

    def _activity(self, names: Array, *columns: Mapping[str, Array]) -> pa.Table:
        found = {name: column for part in columns for name, column in part.items()}
        for name in ("queries", "stored_elements", "stored_size"):
            found[name] = pc.fill_null(found[name], 0)
        total = pc.add(found["hits"], found["misses"])
        days = pa.repeat(pa.scalar(self._day, pa.date32()), len(names))
        table = pa.table({**found, "user_name": names, "total": total, "day": days})
        return table.select(list(COLUMNS_OF[ACTIVITY]))

    def _statement(self, own: pa.Table) -> dict[str, Array]:
        return {"statement": self._statements.take(own[_SQL])}

    def _latest(self, own: pa.Table) -> dict[str, Array]:
        """What decides which entry is the latest, across days too."""
        found = self._rows.at(own["latest_row"].combine_chunks(), ["timestamp", "logId"])
        return {
            "latest_timestamp": pc.fill_null(found["timestamp"], 0),
            "latest_log_id": pc.fill_null(found["logId"], ""),
            "latest_day": pa.repeat(pa.scalar(self._day, pa.date32()), own.num_rows),
        }

    def _shown(self, own: pa.Table) -> dict[str, Array]:
        """What records show of the latest entry."""
        names = [_KEY, _RULE, "cacheStatus", "statusCode", "responseSize"]
        found = self._rows.at(own["latest_row"].combine_chunks(), names)
        return dict(zip(SHOWN, found.columns, strict=True))


def _summable(column: Array) -> Array:
    """A column of positive numbers, wide where their sum could be."""
    most = pc.max(column).as_py() or 0
    return column if most * len(column) < 1 << 63 else column.cast(WIDE)


def _group_part(table: pa.Table, keys: Sequence[str], measures: Measures) -> pa.Table:
    found = group(table, keys, measures)
    return _with(found, {name: found[name].cast(WIDE) for name in measures if TYPES.get(name) == WIDE})


def _joined(parts: Sequence[pa.Table], keys: Sequence[str], measures: Measures) -> pa.Table:
    """The groups of all parts of the rows."""
    return parts[0] if len(parts) == 1 else regroup(pa.concat_tables(parts), keys, measures)


def _whole_days(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Groups by ``keys`` and hour to groups by ``keys``, with the mask of hours and the mean time."""
    bits = pc.shift_left(pa.scalar(1, pa.int32()), table[HOUR_COLUMN].cast(pa.int32()))
    # Each hour comes once, so that the sum is the union.
    measures: Measures = {**_ASKED, "hour_mask": ("hour_mask", "sum")}
    found = regroup(_with(table, {"hour_mask": bits}), keys, measures)
    return _with(found, {"time_mean": means(found["time_sum"], found["time_count"])})


def _served(table: pa.Table, key: str) -> pa.Table:
    return regroup(table, (key,), _SERVED)


def _known(table: pa.Table, key: str) -> pa.Table:
    return table.filter(pc.is_valid(table[key]))


def _constant(name: str, value: int, like: pa.Table) -> dict[str, Array]:
    return {name: pa.repeat(value, like.num_rows)}


def _with(table: pa.Table, *columns: Mapping[str, Any]) -> pa.Table:
    found = dict(zip(table.column_names, table.columns, strict=True))
    for more in columns:
        found |= more
    return pa.table(found)


def _sorted(table: pa.Table, *order: tuple[str, str]) -> pa.Table:
    return table.take(pc.sort_indices(table, sort_keys=list(order)))
