"""The savings of some days: what the rows of the published query cost, kept until builds or prices change."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import dropwhile
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_args
from uuid import UUID

import duckdb
from django.conf import settings
from msgspec import Meta

from accounts.tenants.config import read_prices
from accounts.tenants.pricing import Pricing, Terms
from analytics.models import DayRollup
from analytics.numbers.executions import EXECUTIONS
from analytics.numbers.store import cache_document, ended_after, forget_document, get_cached, new_engine
from analytics.numbers.tables import ROLLUP_VERSION, rate
from analytics.reports.activity import read_activity
from analytics.reports.reading import ReportQuery, bad_window
from analytics.reports.savings_sql import (
    KEPT_SAVINGS_SQL,
    MONTH_DAYS,
    SAVINGS_SQL,
    SUSPENDS,
    Bill,
    bill_days,
    days_between,
    fill_savings,
)
from logs.definitions import SPARED
from logs.partitions import describe_longest_window, partitions_with_file
from logs.queries import document_limits, rows_of, run_query
from logs.quoting import quote_texts
from logs.sources import local_copies, local_paths
from logs.sql.protocol import EngineUnavailable
from logs.sql.source import make_source
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import ServiceBusy
from tenantadmin.lib.core.rendering import dump_json, strong_etag
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of, sent_as
from tenantadmin.lib.core.timestamps import days_before
from tenantadmin.lib.objectstore import ObjectStore, StoreError

if TYPE_CHECKING:
    from analytics.reports.activity import ActivityTotal
    from logs.audit import Reader


#: What limits the numbers; always shown.
CAVEATS: Final = ("others-keep-it-awake", "one-size", "unmeasured")

Money: TypeAlias = Annotated[
    str | None,
    Meta(description="With all digits of the currency, as `12.30`; null without a price. May be negative."),
]


class SavingsWindow(JsonStruct):
    """The days, both included (UTC)."""

    from_: date
    to: date
    days_without_data: Annotated[list[date], Meta(description="Days that have no log entry.")]


class SavingsFigures(JsonStruct):
    """Times in milliseconds, and what the billed time costs."""

    billed_ms: int
    busy_ms: Annotated[int, Meta(description="The time of execution, of entries of these days.")]
    money: Money


class SavingsTotal(JsonStruct):
    """What the warehouse bills with the cache, what it would bill without it, and the difference."""

    with_cache: SavingsFigures
    without: SavingsFigures
    saved: SavingsFigures


class SavingsOfDay(SavingsTotal):
    day: date


class SavingsOfMonth(SavingsTotal):
    month: Annotated[str, Meta(description="`2026-03`; only its days within the window count.")]


class SavingsOfSuspend(JsonStruct):
    """What the executions of the window would bill if the warehouse suspended after another time."""

    auto_suspend_seconds: Count
    billed_ms: Count
    money: Money


class SavingsOfHour(JsonStruct):
    """The time awake in an hour of the day, over all days of the window."""

    hour: Annotated[int, Meta(ge=0, le=23)]
    awake_ms: Count
    awake_without_ms: Annotated[Count, Meta(description="Without the cache.")]


class SavingsOfRule(JsonStruct):
    """How much more would be billed without this rule. These do not add up to the total."""

    rule_id: Annotated[str | None, Meta(description="Null: hits without a rule.")]
    hits: Annotated[Count, Meta(description=f"{SPARED.text} of statements whose time is known.")]
    busy_ms: Count
    marginal_ms: int
    money: Money


class SavingsText(JsonStruct):
    """What the numbers mean, in the words of dashboard and staff pages. It uses the price of the last day."""

    headline: Annotated[
        str | None, Meta(description="What people felt and what was saved, in one line. Absent without hits.")
    ] = None
    explanation: str
    bill: Annotated[str, Meta(description="Beside what is saved on the bill.")]
    time: Annotated[str, Meta(description="Beside the warehouse time that is saved.")]
    rules: Annotated[str, Meta(description="On what is saved by rule.")]
    limits: Annotated[str, Meta(description="What the figures leave out.")]
    chart: Annotated[str, Meta(description="Beside the chart of the hours, or of the days if always on.")]
    suspends: Annotated[str, Meta(description="On `autoSuspend`.")]


class Savings(JsonStruct):
    """Billed time and busy time, with and without the cache."""

    currency: str | None
    pricing: list[Annotated[dict[str, Any], sent_as("accounts.serializers.tenants.Price")]]
    window: SavingsWindow
    total: SavingsTotal
    per_month: Annotated[
        SavingsTotal,
        Meta(
            description=f"The same for {MONTH_DAYS} days, by the mean of the days from the first log entry "
            "in the window to the newest day of the log; for money, by the mean of those with a price."
        ),
    ]
    text: SavingsText
    days: Annotated[list[SavingsOfDay] | None, Meta(description="With `step=day`.")] = None
    months: Annotated[list[SavingsOfMonth] | None, Meta(description="With `step=month`.")] = None
    hours: Annotated[list[SavingsOfHour], Meta(description="All 24, in UTC.")]
    auto_suspend: Annotated[
        list[SavingsOfSuspend], Meta(description="Empty if the last day's price has another `billing`.")
    ]
    rules: list[SavingsOfRule]
    unmeasured: Annotated[
        Count,
        Meta(
            description="Requests that are not counted: the time of their statement is unknown, or their "
            "timestamp is more than two days from their day."
        ),
    ]
    unmeasured_share: Annotated[float, Meta(ge=0, le=1)]
    caveats: list[Annotated[str, one_of(CAVEATS)]]
    queries: list[ReportQuery]


Scope: TypeAlias = tuple[str, str | None]
WITH_CACHE: Final[Scope] = ("withCache", None)
WITHOUT: Final[Scope] = ("without", None)


class Measured:
    """The rows of the published query, by scope."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.awake: dict[Scope, dict[tuple[str | None, date], int]] = defaultdict(dict)
        self.busy: dict[Scope, dict[tuple[str | None, date], int]] = defaultdict(dict)
        self.by_hour: dict[Scope, dict[int, int]] = defaultdict(dict)
        self.requests: dict[Scope, int] = defaultdict(int)
        self.unmeasured = 0
        for row in rows:
            scope = (row["scope"], row["ruleId"])
            if row["day"] is None:
                self.by_hour[scope][row["hour"]] = row["awakeMs"]
                continue
            key = row["host"], date.fromisoformat(row["day"])
            self.awake[scope][key], self.busy[scope][key] = row["awakeMs"], row["busyMs"]
            self.requests[scope] += row["requests"]
            if scope == WITHOUT:
                self.unmeasured += row["unmeasured"]


def savings_document(
    rows: Iterable[Mapping[str, Any]],
    *,
    window: SavingsWindow,
    step: str,
    pricing: Pricing,
    prices: Sequence[Mapping[str, Any]],
    sql: str,
    ends: date | None = None,
    activity: ActivityTotal | None = None,
) -> Savings:
    """Return the document for the rows of the published query. ``prices`` are ``pricing`` as it is stored.

    Args:
        ends: the newest day of the log, if it is within the window.
        activity: the answers of the same days, if their summaries are built.
    """
    measured = Measured(rows)
    awake, busy, requests = measured.awake, measured.busy, measured.requests
    by_hour, unmeasured = measured.by_hour, measured.unmeasured
    days = days_between(window.from_, window.to)
    executed = bill_days(days, pricing, awake=awake[WITH_CACHE], busy=busy[WITH_CACHE])
    all_requests = bill_days(days, pricing, awake=awake[WITHOUT], busy=busy[WITHOUT])

    def of_days(days: Sequence[date]) -> dict[str, SavingsFigures]:
        return total_figures(executed, all_requests, days=days, pricing=pricing)

    rules = []
    for scope in [scope for scope in awake if scope[0] == "rule"]:
        both = Counter(busy[scope]) + Counter(busy[WITH_CACHE])
        more = _figures(bill_days(days, pricing, awake=awake[scope], busy=both) - executed, days, pricing)
        # Hits of the day before may not reach into the window.
        if not (requests[scope] or more.billed_ms):
            continue
        rules.append(
            SavingsOfRule(
                rule_id=scope[1],
                hits=requests[scope],
                busy_ms=more.busy_ms,
                marginal_ms=more.billed_ms,
                money=more.money,
            )
        )
    rules.sort(key=lambda rule: (-rule.marginal_ms, -rule.busy_ms, rule.rule_id is None, rule.rule_id or ""))
    total = SavingsTotal(**of_days(days))
    without_data = set(window.days_without_data)
    until_end = days if ends is None else days_between(window.from_, ends)
    usual = list(dropwhile(without_data.__contains__, until_end)) or days
    per_month = SavingsTotal(
        **total_figures(executed, all_requests, days=usual, pricing=pricing, scaled_to=MONTH_DAYS)
    )
    share = rate(unmeasured, unmeasured + requests[WITHOUT])
    of_all = [price for price in prices if "host" not in price and price["from"] <= str(window.to)]
    # Several prices are no price to name.
    price = of_all[-1] if of_all and not pricing.hosts else None
    headline = None
    if activity is not None:
        hits = sum(rule.hits for rule in rules)
        headline = _describe_answers(activity, total, pricing.currency, spared=hits)
    return Savings(
        currency=pricing.currency,
        pricing=[dict(price) for price in prices],
        window=window,
        total=total,
        per_month=per_month,
        text=_text_of(
            total,
            per_month.saved,
            pricing.on(window.to),
            currency=pricing.currency,
            price=price,
            unmeasured=unmeasured,
            share=share,
            headline=headline,
        ),
        days=[SavingsOfDay(day=day, **of_days([day])) for day in days] if step == "day" else None,
        months=[SavingsOfMonth(month=month, **of_days(own)) for month, own in _by_month(days).items()]
        if step == "month"
        else None,
        hours=[
            SavingsOfHour(
                hour=hour,
                awake_ms=by_hour[WITH_CACHE].get(hour, 0),
                awake_without_ms=by_hour[WITHOUT].get(hour, 0),
            )
            for hour in range(24)
        ],
        auto_suspend=[
            _suspending(
                seconds,
                _figures(
                    bill_days(days, pricing, awake=awake[("suspend", str(seconds))], busy=busy[WITH_CACHE]),
                    days,
                    pricing,
                ),
            )
            for seconds in SUSPENDS
            if pricing.on(window.to).billing == "suspending"
        ],
        rules=rules,
        unmeasured=unmeasured,
        unmeasured_share=share,
        caveats=list(CAVEATS),
        queries=[ReportQuery(name="savings", sql=sql)],
    )


def _text_of(
    total: SavingsTotal,
    per_month: SavingsFigures,
    terms: Terms,
    *,
    currency: str | None,
    price: Mapping[str, Any] | None,
    unmeasured: int,
    share: float,
    headline: str | None,
) -> SavingsText:
    saved, without = total.saved, total.without
    # The time itself is on the Overview, as it was measured; with the mean of other requests it is another.
    spared = formats.ratio(saved.busy_ms, without.busy_ms)
    explanation = f"The cache spared {spared} of the time that statements would have run without it."
    # Beside money: two long times that are rounded do not show by how much they differ.
    amount = "" if saved.money is None else f"{formats.duration(abs(saved.billed_ms))} "
    word = "more" if saved.billed_ms < 0 else "less"
    share_of_bill = formats.ratio(abs(saved.billed_ms), without.billed_ms)
    bill = f"{amount}{word} billed time, {share_of_bill} of the bill without the cache"
    if saved.billed_ms:
        monthly = formats.duration(abs(per_month.billed_ms))
        if per_month.money is not None and currency:
            monthly = formats.money(per_month.money.lstrip("-"), currency)
        bill += f"; about {monthly} {word} a month"
    # A share of the time, beside the share of the bill, would be read as another saving.
    time = f"of statements that did not run, about {formats.duration(per_month.busy_ms)} a month"
    chart = "How long the warehouse was awake, which is what is billed; all days together"
    rules = (
        "How much more would be billed without the rule. Rules overlap, so this is no sum. A request that "
        "waited for the result of the same statement spares the warehouse too."
    )
    match terms.billing:
        case "suspending":
            time += "; billed only where the warehouse would have slept"
            explanation += (
                " Billed is all the time that the warehouse is awake: from its first statement until it "
                "suspends. So a hit saves money only when the warehouse would have been asleep without it."
            )
            rules += (
                " Each request also keeps the warehouse awake until it suspends "
                f"({formats.span(terms.suspend_seconds)}), so a rule can save more billed time than "
                "its statements run."
            )
        case "always-on":
            time += "; the bill is the same"
            explanation += " The warehouse is always on, so that saves capacity and no money."
            bill = (
                f"{formats.ratio(saved.billed_ms, without.billed_ms)} of the bill; the warehouse is always on"
            )
            chart = "How long statements ran. The bill is the same with and without the cache"
            rules += " The warehouse is always on, so its bill is the same with and without a rule."
    if price is not None:
        explanation += f" The price is {formats.money(price['perHour'], price['currency'])} an hour."
    limits = (
        "Work that does not pass the Gateway is not in the log; if it keeps the warehouse awake, less is "
        "saved. The price is of one size of the warehouse. Requests whose time was not measured, hits among "
        "them, count with the mean time of their statement."
    )
    if unmeasured:
        limits += (
            f" {formats.number(unmeasured)} log entries ({formats.percent(share)}) are not counted, because "
            "the time of their statement is unknown or they are not from their day."
        )
    return SavingsText(
        headline=headline,
        explanation=explanation,
        bill=bill,
        time=time,
        rules=rules,
        limits=limits,
        chart=chart,
        suspends="It suspends when no statement ran for so long. That is set in the warehouse.",
    )


def _describe_answers(
    activity: ActivityTotal, total: SavingsTotal, currency: str | None, *, spared: int
) -> str | None:
    """Say how many answers came how fast, the waiting that was spared, and the money; None without hits.

    Without the cache, hits would have taken the mean warehouse time of the requests that were spared.
    """
    hits, ms = activity.hits, activity.hit_response_ms
    mean = total.saved.busy_ms / spared if spared else 0
    if ms is None or mean <= ms:
        return None
    money = total.saved.money
    saved = f"; {formats.money(money, currency)}" if money is not None and currency else ""
    answers = formats.count(hits + activity.stored_misses + activity.not_cached, "answer")
    return (
        f"{answers}; {formats.number(hits)} in {formats.duration(ms)} instead of {formats.duration(mean)}: "
        f"{formats.duration(hits * (mean - ms))} of waiting spared{saved}."
    )


def _figures(
    bill: Bill, days: Sequence[date], pricing: Pricing, *, scaled_to: int | None = None
) -> SavingsFigures:
    """Return what some days bill, or what ``scaled_to`` such days would.

    Days without a price are left out of the money, and out of the days that it is scaled by.
    """
    amount, priced = bill.amount(days), sum(day in bill.cost for day in days)

    def scale(value: int, of: int) -> int:
        return value if scaled_to is None else round(Fraction(value * scaled_to, of))

    return SavingsFigures(
        billed_ms=scale(sum(bill.billed[day] for day in days), len(days)),
        busy_ms=scale(sum(bill.busy[day] for day in days), len(days)),
        money=None if amount is None else pricing.money(scale(amount, priced)),
    )


def total_figures(
    executed: Bill,
    all_requests: Bill,
    *,
    days: Sequence[date],
    pricing: Pricing,
    scaled_to: int | None = None,
) -> dict[str, SavingsFigures]:
    """Return the members of a `SavingsTotal`, as `_figures`."""
    parts = {"with_cache": executed, "without": all_requests, "saved": all_requests - executed}
    return {name: _figures(part, days, pricing, scaled_to=scaled_to) for name, part in parts.items()}


def _suspending(seconds: int, figures: SavingsFigures) -> SavingsOfSuspend:
    return SavingsOfSuspend(auto_suspend_seconds=seconds, billed_ms=figures.billed_ms, money=figures.money)


def _by_month(days: Iterable[date]) -> Mapping[str, list[date]]:
    months: dict[str, list[date]] = defaultdict(list)
    for day in days:
        months[day.isoformat()[:7]].append(day)
    return months


#: Savings cover at most this many days.
MAX_DAYS: Final = 366
Step: TypeAlias = Literal["day", "month"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
#: Raise it when the document changes, so that documents that were kept before are not served.
_VERSION: Final = 9
_ATTEMPTS: Final = 2
BUILDING: Final = "Days of the log are being built again. Try again in a moment."


@dataclass(frozen=True, slots=True)
class SavingsSource:
    """Everything that the savings of a window depend on, read at one moment.

    Attributes:
        prices: ``warehouse.pricing`` of the tenant's configuration.
        partitions: day, build, object keys and number of rows of each day that is read.
        kept: the object keys of what is kept of each day; None if it is not kept of all.
        ends: the newest day of the log, but at most ``last``; ``last`` if no day has entries.
    """

    tenant: UUID
    first: date
    last: date
    step: Step
    prices: Sequence[Mapping[str, Any]]
    partitions: Sequence[tuple[date, str, Sequence[str], int]] = ()
    kept: Sequence[str] | None = None
    ends: date | None = None

    @property
    def before(self) -> date:
        """The day before the window. A session that is under way at midnight counts."""
        return days_before(self.first, 1)

    @property
    def etag(self) -> str:
        builds = [(day.isoformat(), build) for day, build, *_ in self.partitions]
        parts = (_VERSION, self.tenant, self.first, self.last, self.step, self.kept is None, self.ends)
        return strong_etag(*parts, json.dumps([self.prices, builds], sort_keys=True))

    @property
    def cache_key(self) -> str:
        return f"savings:{self.etag}"


def find_source(*, tenant: UUID, first: date, last: date, step: Step) -> SavingsSource:
    """Return what the savings of the days from ``first`` to ``last`` depend on, in at most four queries.

    Raises:
        BadRequest: there are too many days, or no days.
    """
    days = (last - first).days + 1
    if days < 1:
        raise bad_window("'from' is later than 'to'.")
    if days > MAX_DAYS:
        raise bad_window(f"Savings cover at most {MAX_DAYS} days, and these are {days}.")
    source = SavingsSource(tenant, first, last, step, read_prices(tenant))
    rows = partitions_with_file(tenant=tenant).filter(day__range=(source.before, last)).defer("hours")
    partitions = [(row.day, row.build, tuple(row.files), row.rows) for row in rows]
    ends = max((day for day, *_ in partitions if day >= first), default=last)
    if ends < last and partitions_with_file(tenant=tenant).filter(day__gt=last).exists():
        ends = last
    source = replace(source, partitions=partitions, ends=ends)
    return replace(source, kept=_find_kept(source))


def _find_kept(source: SavingsSource) -> Sequence[str] | None:
    """Return the keys of what is kept of the days; None if a day of an earlier release is still to build."""
    rollups = DayRollup.objects.filter(
        tenant_id=source.tenant, day__range=(source.before, source.last), version=ROLLUP_VERSION
    )
    files = {(day, build): files for day, build, files in rollups.values_list("day", "build", "files")}
    keys = [files.get((day, build), {}).get(EXECUTIONS) for day, build, *_ in source.partitions]
    return None if None in keys else keys


def read_savings(store: ObjectStore, source: SavingsSource, *, reader: Reader | None) -> tuple[str, bytes]:
    """Return the entity tag and the document: the kept one, or a new one, which is kept for an hour.

    If a build replaces the days meanwhile, the document is of the new ones.

    Args:
        reader: under whose name the log is read, if it is; None not to read it.

    Raises:
        BadRequest: see `_compute_kept` and `compute_savings`.
        ServiceBusy: days were built again in both attempts, or their log must be read without a reader.
        ApiError: the query failed.
    """
    for _ in range(_ATTEMPTS):
        kept = get_cached(source.cache_key)
        if kept is not None:
            return source.etag, kept
        try:
            body = dump_json(_compute(store, source, reader=reader))
        except (EngineUnavailable, StoreError, duckdb.IOException):
            # A file may be missing because it was replaced.
            before, source = source, find_again(source)
            if source == before:
                raise
        else:
            cache_document(source.cache_key, body)
            return source.etag, body
    raise ServiceBusy(BUILDING)


def _compute(store: ObjectStore, source: SavingsSource, *, reader: Reader | None) -> Savings:
    if source.kept is not None:
        return _compute_kept(store, source, source.kept)
    if reader is None:
        raise ServiceBusy(BUILDING)
    return compute_savings(store, source, reader=reader)


def find_again(source: SavingsSource) -> SavingsSource:
    """Return what the same savings depend on now."""
    return find_source(tenant=source.tenant, first=source.first, last=source.last, step=source.step)


def forget(source: SavingsSource) -> None:
    """Delete the kept document."""
    forget_document(source.cache_key)


def compute_savings(store: ObjectStore, source: SavingsSource, *, reader: Reader) -> Savings:
    """Compute the savings with the published query. The query is audited under the name of ``reader``.

    Raises:
        BadRequest: the days have more log entries than `REPLAY_MAX_ROWS`.
        ApiError: the query failed, or its result has too many rules.
        EngineUnavailable, StoreError, duckdb.IOException: a file could not be read.
    """
    entries = {day: rows for day, *_, rows in source.partitions}
    most = settings.REPLAY_MAX_ROWS
    if sum(entries.values()) > most:
        raise bad_window(
            f"These days have {sum(entries.values())} log entries; at most {most} can be read. "
            + describe_longest_window(entries, last=source.last, before=1, most=most)
        )
    sql = _fill(SAVINGS_SQL, source)
    files = make_source(
        store,
        copies=local_copies(),
        tenant=str(source.tenant),
        files=[(day.isoformat(), key) for day, _, keys, _ in source.partitions for key in keys],
    )
    result = run_query(
        store,
        tenant=source.tenant,
        statement=sql,
        reader=reader,
        source=files,
        limits=document_limits(),
        by_service=True,
    )
    return _make_document(source, rows_of(result), has_more=result.truncated)


#: What is kept of a month of a million entries a day is computed in a few seconds.
_SECONDS: Final = 60.0
_MEMORY: Final = "1GB"
#: As many as `logs.queries.document_limits`.
_MAX_ROWS: Final = 1_000_000
#: One at a time in a process, so that its memory has a bound.
_turn: Final = threading.Lock()


def _compute_kept(store: ObjectStore, source: SavingsSource, keys: Sequence[str]) -> Savings:
    """Compute the same savings from what is kept of each day, without reading the log.

    Raises:
        BadRequest, StoreError, duckdb.IOException: as `read_kept`; there are too many rules.
    """
    rows = read_kept(store, source, keys)
    return _make_document(source, rows, has_more=len(rows) > _MAX_ROWS)


def read_kept(store: ObjectStore, source: SavingsSource, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of the published query from what is kept of each day; at most one above `_MAX_ROWS`.

    Raises:
        BadRequest: the computation took too long.
        StoreError, duckdb.IOException: a file could not be read.
    """
    if not keys:
        return []
    files = quote_texts(local_paths(store, keys))
    sql = _fill(KEPT_SAVINGS_SQL, source).replace("$kept", files)
    with (
        _turn,
        new_engine(memory_limit=_MEMORY, threads=settings.REPLAY_THREADS) as engine,
        ended_after(_SECONDS, engine.connection),
    ):
        try:
            cursor = engine.connection.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchmany(_MAX_ROWS + 1)]
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise bad_window("The savings of these days take too long. Choose fewer days.") from None


def _fill(text: str, source: SavingsSource) -> str:
    pricing = Pricing.of(source.prices)
    return fill_savings(
        text.strip(), first=source.first, before=source.before, last=source.last, pricing=pricing
    )


def _make_document(source: SavingsSource, rows: Iterable[Mapping[str, Any]], *, has_more: bool) -> Savings:
    if has_more:
        raise bad_window("These days have too many rules. Choose fewer days.")
    days = {day for day, *_ in source.partitions}
    window = days_between(source.first, source.last)
    return savings_document(
        rows,
        window=SavingsWindow(
            from_=source.first, to=source.last, days_without_data=[day for day in window if day not in days]
        ),
        step=source.step,
        pricing=Pricing.of(source.prices),
        prices=source.prices,
        sql=_fill(SAVINGS_SQL, source),
        ends=source.ends,
        # Days of an earlier release have no sums yet.
        activity=None
        if source.kept is None
        else read_activity(source.tenant, first=source.first, last=source.last).total,
    )
