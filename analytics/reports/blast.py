"""Previews of invalidations: the results that markers would end, by the log. Contract: Analytics."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from django.db.models import Max
from msgspec import Meta

from analytics.reports.reading import LogReader, ReportQuery
from analytics.reports.sql import reads_tables_sql
from logs.definitions import ENDED_AT, HOUR, REQUEST, STORED
from logs.partitions import partitions_with_file
from logs.quoting import quote_value
from rules.language import Rule, read_rules
from rules.markers import RuleNotFound
from rules.models import Marker
from rules.ruleset import RulesetState, read_ruleset, with_log
from rules.table_invalidation import find_rules, named_tables, names_table
from tenantadmin.lib.core.formats import ago, count, number
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, epoch_ms, format_timestamp, from_epoch_ms

if TYPE_CHECKING:
    from rules.tables.warehouse import WarehouseTables


#: The most tables of a rule that a preview names.
_MAX_NAMED: Final = 3


def name_tables(tables: Sequence[str]) -> str:
    """Return what a sentence calls the tables."""
    return tables[0] if len(tables) == 1 else "these tables"


def describe_why(
    rule: Rule,
    *,
    entries: int,
    read: int | None,
    ever_read: int | None,
    tables: Sequence[str],
    warehouse: WarehouseTables,
) -> str:
    """Describe what the results of a rule have to do with tables. ``read`` is None if not counted."""
    what = name_tables(tables)
    if not read:
        cached = f"result of {what}, only {count(entries, 'other')}" if entries else "cached result"
        named = named_tables(rule)
        if names_table(rule, tables, warehouse):
            reason = f"Its conditions name {what if len(tables) == 1 else 'one of them'}."
        elif ever_read:
            return f"By the log, its statements read {what}, but it now has no {cached}."
        elif named:
            shown = ", ".join([*named[:_MAX_NAMED], *(["…"] if len(named) > _MAX_NAMED else [])])
            reason = f"It is for {shown}; a statement may read {what} too."
        else:
            reason = f"It is not limited to certain tables, so it may have results of {what}."
        if read is None:
            return reason
        return f"{reason} By the log, it has no {cached}."
    others = entries - read
    reads = f"{'reads' if read == 1 else 'read'} {what}."
    if not others:
        return f"Its one result {reads}" if read == 1 else f"All {number(read)} of its results {reads}"
    also = f"The other {number(others)} {'ends' if others == 1 else 'end'} too."
    return f"{number(read)} of its {number(entries)} results {reads} {also}"


#: Older stores are ignored, even if the TTL is longer.
MAX_DAYS: Final = 31
_WEEKS: Final = 4
#: A preview says how old the log is, from this age on.
_LATE: Final = dt.timedelta(minutes=10)
#: The rules for which a preview of tables reads the log. Each takes two queries.
MAX_PREVIEWED: Final = 20

#: The most characters of a query that look for tables; with longer names, results of tables are not counted.
_MAX_READS: Final = 30_000

#: A result is born when its execution ends. It is live if it was executed under the current rules, was born
#: at or after the last marker, and has not expired.
_LIVE: Final = """
SELECT
    count(*) FILTER (isLive) AS entries,
    coalesce(sum(greatest(responseSize, 0)) FILTER (isLive), 0) AS bytes,
    coalesce(sum(spent) FILTER (isLive), 0) AS refillMs,
    max(startedAt) FILTER (isLive) AS lastStoreAt{counted}
FROM (
    SELECT
        startedAt, bornAt, responseSize, spent, tables, statement,
        startedAt >= {written} AND bornAt >= {marker} AND bornAt + {ttl} > {now} AS isLive
    FROM (
        SELECT
            max(timestamp) AS startedAt,
            arg_max({ended_at}, timestamp) AS bornAt,
            arg_max(responseSize, timestamp) AS responseSize,
            coalesce(arg_max_null(warehouseExecutionTimeMs, timestamp), 0) AS spent,
            any_value(tables) AS tables,
            any_value(standardizedSql) AS statement
        FROM proxy_logs
        WHERE day BETWEEN '{first}' AND '{last}' AND {stored}
            AND matchedRule = {rule} AND timestamp <= {now}
        GROUP BY cacheKey
    )
)"""

#: Results that have ended count too: they tell what the statements of a rule read.
_COUNTED: Final = """,
    count(*) FILTER (isLive AND ({reads})) AS tableEntries,
    count(*) FILTER ({reads}) AS allTableEntries"""

#: Before the part of `_LIVE` that finds results: the results themselves.
_LISTED: Final = (
    "SELECT make_timestamp(bornAt * 1000) AS storedAt, responseSize, spent AS warehouseMs, tables, statement"
)

_SAME_HOUR: Final = """
SELECT day, count(DISTINCT cacheKey) AS keys, count(*) FILTER ({counted}) AS requests
FROM proxy_logs
WHERE day IN ({days}) AND matchedRule = {rule} AND cacheKey IS NOT NULL
    AND {hour_of} = {hour}
GROUP BY day ORDER BY day DESC"""

_END: Final = "SELECT max(timestamp) AS at FROM proxy_logs WHERE day = '{day}' AND timestamp <= {now}"


class SameHour(JsonStruct):
    day: dt.date
    keys: Count
    requests: Count


class PreviewTarget(JsonStruct):
    """What a marker on a rule would end."""

    rule_id: str
    entries: Annotated[Count, Meta(description="Cached results that are still valid, by the log.")]
    table_entries: Annotated[
        Count | None,
        Meta(
            description="How many of `entries` read one of the tables, by the log. A marker ends the others "
            "too. Only in a preview of tables, and not if their names are very long."
        ),
    ] = None
    why: Annotated[str | None, Meta(description="What its results have to do with the tables, in words.")] = (
        None
    )
    suggested: Annotated[
        bool | None,
        Meta(
            description="Its conditions name one of the tables, its statements read one by the log, even if "
            "their results have ended, or they were not counted. Only in a preview of tables."
        ),
    ] = None
    bytes: Count
    refill_ms: Annotated[int, Meta(description="Warehouse time that the last executions took together.")]
    last_store_at: Timestamp | None
    same_hour: Annotated[
        list[SameHour], Meta(description="What was asked in this hour of the last 4 same weekdays.")
    ]


class _PreviewHead(JsonStruct):
    at: Timestamp
    log_until: Annotated[
        Timestamp | None, Meta(description="The newest entry of the log. Absent if the log has none.")
    ] = None
    log_note: Annotated[
        str | None, Meta(description="Why the log may not tell what is cached now, for people to read.")
    ] = None
    targets: list[PreviewTarget]
    queries: list[ReportQuery]


class InvalidationPreview(_PreviewHead):
    rule_id: str


class TableInvalidationPreview(_PreviewHead):
    """What invalidating tables would end. Of more than 20 rules, ``targets`` has the first 20.

    ``targets`` begins with the rules that are suggested, and of these with those that have most results of
    the tables.
    """

    rule_ids: Annotated[list[str], Meta(description="The rules that would get a marker.")]
    note: Annotated[
        str | None,
        Meta(description="Why rules are not suggested, for people to read."),
    ] = None


def preview_invalidation(log: LogReader, *, rule_id: str, now: dt.datetime) -> InvalidationPreview:
    """Return the results that markers on the targets of a rule (or on the rule, if it has none) would end.

    Raises:
        TenantNotFound, RuleNotFound: there is no such live tenant, or no such rule.
        ApiError: a query failed.
    """
    ruleset = read_ruleset(log.tenant)
    rules = {rule.id: rule for rule in read_rules(ruleset.rules)}
    rule = rules.get(rule_id)
    if rule is None:
        raise RuleNotFound
    found = _preview_all(
        log, [rules[target] for target in rule.invalidate_rules or (rule_id,)], ruleset=ruleset, now=now
    )
    return InvalidationPreview.of(found, rule_id=rule_id)


def preview_tables(log: LogReader, *, tables: Sequence[str], now: dt.datetime) -> TableInvalidationPreview:
    """Return what `rules.table_invalidation.invalidate_tables` would end.

    Raises:
        TenantNotFound: there is no such live tenant.
        ApiError: a query failed.
    """
    ruleset = read_ruleset(log.tenant)
    rules = find_rules(ruleset.rules, tables, with_log(ruleset.tables, log.tenant))
    shown = read_rules(rules[:MAX_PREVIEWED])
    found = _preview_all(log, shown, ruleset=ruleset, now=now, tables=tables)
    what = name_tables(tables)
    note = None
    if any(target.suggested is False for target in found.targets):
        note = (
            f"A rule is not ticked at first if it does not name {what} and, in the log, its statements do "
            f"not read {what}. Tick these rules too to be on the safe side: all of their results end then."
        )
    return TableInvalidationPreview.of(found, rule_ids=[rule["id"] for rule in rules], note=note)


def _list_results(counting: str) -> str:
    """Return SQL for the list of the results that ``counting`` counts, newest first."""
    return f"{_LISTED}\n{counting[counting.index('FROM (') :]}\nWHERE isLive\nORDER BY storedAt DESC"


def _preview_all(
    log: LogReader,
    rules: Sequence[Rule],
    *,
    ruleset: RulesetState,
    now: dt.datetime,
    tables: Sequence[str] = (),
) -> _PreviewHead:
    queries: list[ReportQuery] = []
    warehouse = ruleset.tables
    reads = reads_tables_sql(warehouse.with_views(tables), warehouse) if tables else ""
    if len(reads) > _MAX_READS:
        reads = ""
    targets = [
        _preview(
            log,
            rule,
            now=now,
            ruleset=ruleset,
            reads=reads,
            tables=tables,
            queries=queries,
        )
        for rule in rules
    ]
    targets.sort(key=lambda target: (target.suggested is False, -(target.table_entries or 0)))
    end = _find_end(log, now=now)
    has_results = any(target.entries for target in targets)
    return _PreviewHead(
        at=format_timestamp(now),
        log_until=None if end is None else format_timestamp(end),
        log_note=_describe_log(end=end, published_at=ruleset.modified_at, now=now, has_results=has_results),
        targets=targets,
        queries=queries,
    )


def _describe_log(
    *, end: dt.datetime | None, published_at: dt.datetime, now: dt.datetime, has_results: bool
) -> str | None:
    """Describe why a preview has no results, or may lack some. ``end`` is the newest entry of the log."""
    published = f"The rules were published {ago(published_at, now=now)}, which emptied the cache"
    if end is None or end < published_at:
        return f"{published}, and the log has no request since."
    if now - end >= _LATE:
        newest = f"The newest request in the log is from {ago(end, now=now)}"
        return f"{newest}. Results stored since are not counted here."
    if not has_results and now - published_at < dt.timedelta(days=1):
        return f"{published}: since then these rules have stored no result that is still valid."
    return None


def _find_end(log: LogReader, *, now: dt.datetime) -> dt.datetime | None:
    """Return the time of the newest entry of the log."""
    days = partitions_with_file(tenant=log.tenant).filter(day__lte=now.date())
    last = days.values_list("day", flat=True).last()
    if last is None:
        return None
    (row,) = log.rows(_END.format(day=last, now=epoch_ms(now)))
    return None if row["at"] is None else from_epoch_ms(row["at"])


def _preview(
    log: LogReader,
    rule: Rule,
    *,
    now: dt.datetime,
    ruleset: RulesetState,
    reads: str,
    tables: Sequence[str],
    queries: list[ReportQuery],
) -> PreviewTarget:
    days = min(rule.ttl_seconds // 86_400 + 2, MAX_DAYS)
    marked = Marker.objects.remaining().filter(tenant=log.tenant, target_rule_id=rule.id)
    last_marker = marked.aggregate(last=Max("invalidated_at"))["last"]
    live_sql = _LIVE.format(
        first=now.date() - dt.timedelta(days=days),
        last=now.date(),
        rule=quote_value(rule.id),
        now=epoch_ms(now),
        written=epoch_ms(ruleset.modified_at),
        marker=0 if last_marker is None else epoch_ms(last_marker),
        ttl=1000 * rule.ttl_seconds,
        ended_at=ENDED_AT,
        stored=STORED,
        counted=_COUNTED.format(reads=reads) if reads else "",
    ).strip()
    weekdays = [now.date() - dt.timedelta(weeks=week) for week in range(1, _WEEKS + 1)]
    same_hour_sql = _SAME_HOUR.format(
        days=", ".join(f"'{day}'" for day in weekdays),
        rule=quote_value(rule.id),
        hour=now.hour,
        counted=REQUEST,
        hour_of=HOUR,
    ).strip()
    queries += [
        ReportQuery(name=f"{rule.id} live", sql=live_sql),
        ReportQuery(name=f"{rule.id} results", sql=_list_results(live_sql)),
        ReportQuery(name=f"{rule.id} sameHour", sql=same_hour_sql),
    ]
    (row,) = log.rows(live_sql)
    read, ever_read = row.get("tableEntries"), row.get("allTableEntries")
    by_day = {counts["day"]: counts for counts in log.rows(same_hour_sql)}
    last_store = row["lastStoreAt"]
    same_hour = [by_day.get(str(day), {"keys": 0, "requests": 0}) for day in weekdays]
    return PreviewTarget(
        rule_id=rule.id,
        entries=row["entries"],
        table_entries=read,
        why=describe_why(
            rule,
            entries=row["entries"],
            read=read,
            ever_read=ever_read,
            tables=tables,
            warehouse=ruleset.tables,
        )
        if tables
        else None,
        suggested=ever_read != 0 or names_table(rule, tables, ruleset.tables) if tables else None,
        bytes=row["bytes"],
        refill_ms=row["refillMs"],
        last_store_at=None if last_store is None else format_timestamp(from_epoch_ms(last_store)),
        same_hour=[
            SameHour(day=day, keys=counts["keys"], requests=counts["requests"])
            for day, counts in zip(weekdays, same_hour, strict=True)
        ],
    )
