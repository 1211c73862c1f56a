"""Compute the contract's numbers from raw files in plain Python, without the service's code.

A file is a key and its bytes. `read_day` gives the rows of ``proxy_logs`` as dictionaries in file order,
with the hour each counts under as ``hour``; the document functions take rows of several days.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from logs.columns import BY_NAME, COLUMNS, SqlType

Row = dict[str, Any]
MISSES = {"MISS", "BYPASS", "PASSTHROUGH"}


# --- Raw files to rows ------------------------------------------------------------------------


def read_day(files: Mapping[str, bytes], day: date) -> list[Row]:
    """Return the rows of one day. ``files`` maps the keys ``…/HH/<name>.json`` of that day to bytes."""
    start = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    rows: list[Row] = []
    seen: set[str] = set()
    for key in sorted(files, key=lambda key: key.encode()):
        prefix_hour = int(key.split("/")[-2])
        for value in _values(files[key]):
            row = _row(value)
            if row is None:
                continue
            if row["logId"] is not None:
                if row["logId"] in seen:
                    continue
                seen.add(row["logId"])
            timestamp = row["timestamp"]
            in_day = timestamp is not None and start <= timestamp < start + 86_400_000
            row["hour"] = (timestamp - start) // 3_600_000 if in_day else prefix_hour
            row["day"] = day.isoformat()
            row["order"] = (day.isoformat(), len(rows))
            rows.append(row)
    return rows


def _values(body: bytes) -> list[Any]:
    body = body.removeprefix(b"\xef\xbb\xbf")
    if not body.strip():
        return []
    try:
        value = _loads(body)
    except ValueError:
        pass
    else:
        return value if isinstance(value, list) else [value]
    try:
        return [_loads(line) for line in body.split(b"\n") if line.strip()]
    except ValueError:
        return []


def _loads(body: bytes) -> Any:
    return json.loads(body.decode(), parse_constant=_refuse, object_pairs_hook=_Object)


class _Object(dict[str, Any]):
    """A JSON object. If a field is repeated, the last value counts."""

    def is_good(self) -> bool:
        try:
            json.dumps(self, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # an unpaired surrogate
            return False
        return not self.keys().isdisjoint(BY_NAME) and all(
            value is None or BY_NAME[name].json_text or _fits(value, BY_NAME[name].type)
            for name, value in self.items()
            if name in BY_NAME
        )


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _row(value: Any) -> Row | None:
    if not isinstance(value, _Object) or not value.is_good():
        return None
    row: Row = {}
    for column in COLUMNS:
        field = value.get(column.name)
        if field is None:
            row[column.name] = 0 if column.never_null else None
        elif column.json_text:
            row[column.name] = (
                field
                if isinstance(field, str)
                else json.dumps(field, ensure_ascii=False, separators=(",", ":"))
            )
        else:
            row[column.name] = int(field) if isinstance(field, float) else field
    if row["timestamp"] is not None and not 0 <= row["timestamp"] <= 253_402_300_799_999:
        row["timestamp"] = None
    return row


def _fits(field: Any, kind: SqlType) -> bool:
    if kind is SqlType.VARCHAR:
        return isinstance(field, str)
    if kind is SqlType.BOOLEAN:
        return isinstance(field, bool)
    bits = 63 if kind is SqlType.BIGINT else 31
    if isinstance(field, float):
        # 12.0 is the integer 12.
        return field.is_integer() and -(2**bits) <= field < 2**bits
    return isinstance(field, int) and not isinstance(field, bool) and -(2**bits) <= field < 2**bits


# --- Arithmetic -------------------------------------------------------------------------------


def half_up(value: Fraction, places: int = 0) -> Decimal:
    scaled = value * 10**places
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Decimal(whole).scaleb(-places)


def mean(values: Iterable[int], empty: int | None = 0) -> int | None:
    numbers = list(values)
    return int(half_up(Fraction(sum(numbers), len(numbers)))) if numbers else empty


def times(rows: Iterable[Row]) -> list[int]:
    return [row["responseTimeMs"] for row in rows if row["responseTimeMs"] > 0]


def size(rows: Iterable[Row]) -> int:
    return sum(row["responseSize"] for row in rows if row["responseSize"] > 0)


def hits(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["cacheStatus"] == "HIT"]


def misses(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["cacheStatus"] in MISSES]


def distinct(rows: Iterable[Row], name: str) -> set[str]:
    return {row[name] for row in rows if row[name] is not None}


def latest(rows: Iterable[Row]) -> Row:
    ordered = sorted(rows, key=lambda row: row["order"])
    best = ordered[0]
    for row in ordered[1:]:
        if _moment(row) > _moment(best):
            best = row
    return best


def _moment(row: Row) -> tuple[int, bytes]:
    return (row["timestamp"] or 0, (row["logId"] or "").encode())


def by(rows: Iterable[Row], name: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row[name] is not None:
            groups.setdefault(row[name], []).append(row)
    return groups


def stored(rows: Iterable[Row]) -> list[Row]:
    """Return the last MISS of each cache key of one day."""
    kept = [row for row in rows if row["cacheStatus"] == "MISS"]
    return [latest(group) for group in by(kept, "cacheKey").values()]


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def iso(epoch_ms: int | None) -> str | None:
    if epoch_ms is None:
        return None
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=epoch_ms)  # noqa: DTZ001
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03}Z".rjust(24, "0")


# --- Documents --------------------------------------------------------------------------------


def hourly(rows: list[Row], *, empty: int | None) -> list[dict[str, Any]]:
    result = []
    for hour in range(24):
        mine = [row for row in rows if row["hour"] == hour]
        result.append(
            {
                "hour": hour,
                "queries": len(distinct(mine, "standardizedSql")),
                "totalHits": len(hits(mine)) + len(misses(mine)),
                "cacheHits": len(hits(mine)),
                "cacheMisses": len(misses(mine)),
                "cachedBytes": size(hits(mine)),
                "passThroughBytes": size(mine) - size(hits(mine)),
                "cacheHitAverageResponseTime": mean(times(hits(mine)), empty),
                "cacheMissAverageResponseTime": mean(times(misses(mine)), empty),
                "users": len(distinct(mine, "userName")),
            }
        )
    return result


def day_document(rows: list[Row]) -> dict[str, Any]:
    records = []
    for sql, mine in by(rows, "standardizedSql").items():
        last = latest(mine)
        warehouse = [
            row["warehouseExecutionTimeMs"] for row in mine if row["warehouseExecutionTimeMs"] is not None
        ]
        moments = [row["timestamp"] for row in mine if row["timestamp"] is not None]
        records.append(
            {
                "queryHash": md5(sql),
                "statement": sql,
                "cacheKey": last["cacheKey"],
                "matchedRule": last["matchedRule"],
                "cacheStatus": last["cacheStatus"],
                "cacheHits": len(hits(mine)),
                "cacheMisses": len(misses(mine)),
                "responseCode": last["statusCode"],
                "averageResponseTime": mean(times(mine)),
                "responseSize": last["responseSize"],
                "count": len(mine),
                "warehouseExecutionTimeMs": sum(warehouse) if warehouse else None,
                "firstRequestTime": iso(min(moments, default=None)),
                "lastRequestTime": iso(max(moments, default=None)),
            }
        )
    return {
        "queries": sorted(records, key=lambda record: (-record["count"], record["queryHash"])),
        "uniqueUsers": len(distinct(rows, "userName")),
        "cacheHits": len(hits(rows)),
        "cacheMisses": len(misses(rows)),
        "totalHits": len(hits(rows)) + len(misses(rows)),
        "cachedBytes": size(hits(rows)),
        "passThroughBytes": size(rows) - size(hits(rows)),
        "averageResponseTime": mean(times(rows)),
        "cacheHitAverageResponseTime": mean(times(hits(rows))),
        "cacheMissAverageResponseTime": mean(times(misses(rows))),
        "minResponseTime": min(times(rows), default=0),
        "maxResponseTime": max(times(rows), default=0),
        "hourlyActivity": hourly(rows, empty=0),
    }


def month_document(rows: list[Row], month: int) -> dict[str, Any]:
    return {
        "month": month,
        "totalQueries": len(distinct(rows, "standardizedSql")),
        "totalUsers": len(distinct(rows, "userName")),
        "totalCacheHits": len(hits(rows)),
        "totalCacheMisses": len(misses(rows)),
        "totalHits": len(hits(rows)) + len(misses(rows)),
        "totalCachedBytes": size(hits(rows)),
        "totalPassThroughBytes": size(rows) - size(hits(rows)),
        "averageResponseTime": mean(times(rows)),
        "cacheHitAverageResponseTime": mean(times(hits(rows))),
        "cacheMissAverageResponseTime": mean(times(misses(rows))),
        "minResponseTime": min(times(rows), default=0),
        "maxResponseTime": max(times(rows), default=0),
        "hourlyActivity": hourly(rows, empty=None),
    }


def activity(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        {
            "date": day.replace("-", "/"),
            "queries": len(distinct(mine, "standardizedSql")),
            "users": len(distinct(mine, "userName")),
            "cacheHits": len(hits(mine)),
            "totalHits": len(hits(mine)) + len(misses(mine)),
            "dataTransfer": size(hits(mine)),
            "cacheSize": size(stored(mine)),
            "cacheElements": len(stored(mine)),
        }
        for day, mine in sorted(by(rows, "day").items())
    ]


def year_document(rows: list[Row], *, tenant: str, year: int) -> dict[str, Any]:
    """``rows`` are the rows of all days of all years."""
    own = [row for row in rows if row["day"].startswith(f"{year}-")]
    last = date.fromisoformat(max(row["day"] for row in own))
    window = [row for row in rows if last - timedelta(364) <= date.fromisoformat(row["day"]) <= last]
    kept = [
        row
        for row in own
        if row["cacheStatus"] == "HIT" or (row["cacheStatus"] == "MISS" and row["cacheKey"] is not None)
    ]
    days = activity(own)
    return {
        "tenantSummaryReportID": f"{tenant}-{year}",
        "tenantId": tenant,
        "reportyears": [str(year)],
        "totalUsers": len(distinct(own, "userName")),
        "totalQueries": len(distinct(kept, "standardizedSql")),
        "totalCacheHits": len(hits(own)),
        "totalHits": len(hits(own)) + len(misses(own)),
        "cacheSize": sum(day["cacheSize"] for day in days),
        "cacheElements": sum(day["cacheElements"] for day in days),
        "last365daysQueryActivity": activity(window),
    }


def rules_document(rows: list[Row]) -> dict[str, Any]:
    rules = []
    for rule, mine in by(rows, "matchedRule").items():
        total = len(hits(mine)) + len(misses(mine))
        warehouse = [
            row["warehouseExecutionTimeMs"]
            for row in mine
            if row["cacheStatus"] == "MISS" and row["warehouseExecutionTimeMs"] is not None
        ]
        saved = Fraction(len(hits(mine)) * sum(warehouse), len(warehouse)) if warehouse else Fraction(0)
        rules.append(
            {
                "ruleId": rule,
                "ruleName": latest(mine)["matchedRuleName"],
                "queriesMatched": len(distinct(mine, "standardizedSql")),
                "totalExecutions": total,
                "cacheHits": len(hits(mine)),
                "cacheMisses": len(misses(mine)),
                "hitRate": float(half_up(Fraction(len(hits(mine)), total), 4)) if total else 0.0,
                "warehouseTimeSavedMs": int(half_up(saved)),
                "requests": len(mine),
                "notCached": sum(row["cacheStatus"] in {"BYPASS", "PASSTHROUGH"} for row in mine),
            }
        )
    rules.sort(key=lambda rule: (-rule["totalExecutions"], rule["ruleId"].encode()))
    return {
        "totalQueries": len(distinct(rows, "standardizedSql")),
        "uncachedQueries": len(distinct(_with(rows, "PASSTHROUGH"), "standardizedSql")),
        "bypassedQueries": len(distinct(_with(rows, "BYPASS"), "standardizedSql")),
        "rules": rules,
    }


def _with(rows: Iterable[Row], *statuses: str) -> list[Row]:
    return [row for row in rows if row["cacheStatus"] in statuses]


def opportunities_document(rows: list[Row]) -> dict[str, Any]:
    """Return the document without ``suggestedAction``."""
    lists: dict[str, list[dict[str, Any]]] = {"repeatMisses": [], "highCostUncached": [], "lowHitRate": []}
    for sql, mine in by(rows, "standardizedSql").items():
        hit, miss = len(hits(mine)), len(_with(mine, "MISS"))
        uncached = _with(mine, "PASSTHROUGH", "BYPASS")
        total = hit + len(misses(mine))
        rule = latest(mine)["matchedRule"]
        whole = _opportunity(sql, mine, total, len(misses(mine)), rule)
        if miss >= 3 and miss > hit:
            lists["repeatMisses"].append(whole)
        if len(uncached) >= 2:
            lists["highCostUncached"].append(_opportunity(sql, uncached, len(uncached), len(uncached), rule))
        if total >= 20 and hit + miss >= 1 and Fraction(hit, total) < Fraction(1, 5):
            lists["lowHitRate"].append(whole)
    return {
        name: sorted(entries, key=lambda entry: (-entry["totalWarehouseTimeMs"], entry["queryHash"]))[:50]
        for name, entries in lists.items()
    }


def _opportunity(sql: str, rows: list[Row], count: int, missed: int, rule: str | None) -> dict[str, Any]:
    return {
        "queryHash": md5(sql),
        "statement": sql,
        "executionCount": count,
        "cacheMisses": missed,
        "totalWarehouseTimeMs": sum(row["warehouseExecutionTimeMs"] or 0 for row in rows),
        "matchedRule": rule,
    }


def users_document(rows: list[Row], *, tenant: str) -> dict[str, Any]:
    """Return the document without ``generatedAt``."""
    users: list[dict[str, Any]] = [
        {
            "userId": user,
            "uniqueQueries": len(distinct(mine, "standardizedSql")),
            "cacheHits": len(hits(mine)),
            "totalHits": len(hits(mine)) + len(misses(mine)),
            "averageResponseTime": mean(times(mine)),
            "minResponseTime": min(times(mine), default=0),
            "maxResponseTime": max(times(mine), default=0),
        }
        for user, mine in by(rows, "userName").items()
    ]
    users.sort(key=lambda user: (-user["totalHits"], user["userId"].encode()))
    return {"tenantId": tenant, "totalUsers": len(users), "users": users}


def for_user(rows: list[Row], user: str) -> list[Row]:
    return [row for row in rows if row["userName"] == user]


Document = Callable[..., dict[str, Any]]
