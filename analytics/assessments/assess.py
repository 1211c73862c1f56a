"""Import a warehouse's own history as the log of an assessment, and report what rules would save.

Each step may be killed and done again: a file that was imported is not read again, days that are built are
kept, and the same log has the same search and replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from msgspec.structs import replace as replace_fields

from accounts.assessments import ensure_assessment
from accounts.models import Tenant, TenantConfig
from accounts.tenants.config import SentConfig, read_prices, write_config
from accounts.tenants.pricing import Pricing
from analytics.advice.combine import Exclusive, combine_edits, with_own_ids
from analytics.advice.proposal import read_edits
from analytics.advice.recommend import list_recommendations, queue_mining
from analytics.advice.search import run_mining
from analytics.advice.words import explain_nothing
from analytics.assessments.measure import bill_hosts, measure_repeats
from analytics.assessments.report import (
    CAUSES,
    AssessedBill,
    AssessedDays,
    AssessmentReport,
    MeteredDay,
    ReadStatements,
    Repeats,
)
from analytics.history.entries import Choices, Read, write_entries
from analytics.history.metering import credits_per_hour
from analytics.history.rows import BadHistory, Source
from analytics.models import Assessment, Mining, Recommendation, ReplayRun
from analytics.numbers.store import replay_engine
from analytics.replay.execution import day_files, run_next
from analytics.replay.result import Billed, BilledRange, ReplayBilled
from analytics.replay.runs import describe_replay, queue_replay
from analytics.reports.savings_sql import MONTH_DAYS
from logs.importing import find_log_files, import_files
from logs.partitions import partitions_with_file
from rules.ruleset import read_ruleset
from rules.write import lint_document
from tenantadmin.lib.core.timestamps import epoch_ms, now

if TYPE_CHECKING:
    from analytics.advice.proposal import RuleEdit
    from analytics.history.metering import MeteredDays
    from tenantadmin.lib.objectstore import ObjectStore

#: The caller of searches and replays. The command does not know who runs it.
ACTOR: Final = "manage.py assess"
#: Every price is in force before the history begins.
_FIRST_PRICE: Final = "2000-01-01"
_HOUR_MS: Final = 3_600_000
#: A metered day that differs from the model by less needs no explanation.
_SMALL: Final = Decimal("0.1")


class AssessmentFailed(Exception):
    """The message says what failed, and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What to assess.

    Attributes:
        name: of the tenant. The same name, and owner, is the same assessment.
        prices: what an hour costs, as text, by the name of the warehouse, or None for every other.
        suspend: the seconds after which a warehouse suspends.
        metered: what was billed; None without a file of it.
    """

    files: Sequence[Path]
    choices: Choices
    name: str
    owner: str | None = None
    prices: Mapping[str | None, str] = field(default_factory=dict)
    currency: str = "USD"
    suspend: int = 300
    metered: MeteredDays | None = field(default=None, repr=False)

    def choices_of(self, path: Path) -> Choices:
        """Return how a file is read. Logs of PostgreSQL in several folders are of several servers."""
        folders = {file.resolve().parent for file in self.files}
        if self.choices.source is not Source.POSTGRESQL or len(folders) == 1:
            return self.choices
        options = replace(self.choices.options, host=path.resolve().parent.name)
        return replace(self.choices, options=options)


def import_history(store: ObjectStore, order: Order, *, on_progress: Callable[[str, int], None]) -> UUID:
    """Write the statements of files as raw logs of an assessment, and return its id.

    Nothing is stored if a file cannot be read. A file that is there already is not read again.

    Args:
        on_progress: called with what is done and how many statements or objects of it.

    Raises:
        BadHistory: a file is no history of the source, or cannot be assessed.
        OSError, StoreError: a file cannot be read, or the store failed.
    """
    known = _find_files(order)
    digests = {order.choices_of(path).digest(path): path for path in order.files}
    total = Read()
    for digest in digests:
        if digest in known:
            total.add(msgspec.convert(known[digest], Read))
    with TemporaryDirectory(dir=settings.VAR_DIR, prefix="assess-") as folder:
        found: dict[str, Read] = {}
        for digest, path in digests.items():
            if digest in known:
                continue
            for read in write_entries(
                path,
                order.choices_of(path),
                digest=digest,
                directory=Path(folder) / digest,
                now_ms=epoch_ms(now()),
            ):
                found[digest] = read
                on_progress(f"Reading {path.name}", read.rows)
            total.add(found[digest])
        total.require_sound(order.choices.source)
        tenant = _ensure_tenant(order)
        for digest, read in found.items():
            files = find_log_files(Path(folder) / digest, tenant=tenant)
            for number, _ in enumerate(import_files(store, files), start=1):
                on_progress(f"Importing {digests[digest].name}", number)
            assessment = Assessment.objects.get(pk=tenant)
            assessment.files[digest] = msgspec.to_builtins(read)
            assessment.save(update_fields=["files"])
    return tenant


def _find_files(order: Order) -> Mapping[str, Any]:
    """Return what was read before for this assessment, by the digest of the file.

    Raises:
        BadHistory: it is of another source.
    """
    live = Tenant.objects.live().values("pk")
    rows = Assessment.objects.filter(name=order.name, owner=order.owner or "", tenant_id__in=live)
    assessment = rows.first()
    if assessment is None:
        return {}
    if assessment.source != order.choices.source:
        raise BadHistory(
            f"{order.name!r} is an assessment of {assessment.source}. Give another name: --as NAME"
        )
    files: Mapping[str, Any] = assessment.files
    return files


def _ensure_tenant(order: Order) -> UUID:
    source = order.choices.source
    pricing = [_price(order, host, per_hour) for host, per_hour in order.prices.items()]
    document = {
        "tenantName": order.name,
        "warehouse": {"adapterType": str(source), "serverHostname": str(source), "pricing": pricing},
    }
    tenant = ensure_assessment(document, owner=order.owner, actor=ACTOR)
    if read_prices(tenant) != pricing:
        stored = TenantConfig.objects.get(pk=tenant).document
        warehouse = {**stored["warehouse"], "pricing": pricing}
        write_config(
            tenant_id=tenant,
            document={**stored, "warehouse": warehouse},
            parse=SentConfig,
            actor=ACTOR,
        )
    Assessment.objects.get_or_create(
        tenant_id=tenant, defaults={"source": str(source), "name": order.name, "owner": order.owner or ""}
    )
    return tenant


def _price(order: Order, host: str | None, per_hour: str) -> dict[str, Any]:
    # A server of one's own is billed whether or not it works.
    is_server = order.choices.source is Source.POSTGRESQL
    return {
        "from": _FIRST_PRICE,
        **({} if host is None else {"host": host}),
        "currency": order.currency,
        "perHour": per_hour,
        "billing": "always-on" if is_server else "suspending",
        "autoSuspendSeconds": order.suspend,
    }


def evaluate(
    store: ObjectStore, tenant: UUID, order: Order, *, on_progress: Callable[[str, int], None]
) -> dict[str, Any]:
    """Search and replay the built log of an assessment, and return the report, which is stored too.

    Raises:
        AssessmentFailed: the search or the replay failed.
        ApiError: the tenant was deleted, or the log is too large to replay a day of it.
    """
    days = list(partitions_with_file(tenant=tenant).order_by("day").defer("hours"))
    if not days:
        raise AssessmentFailed("The log of the assessment has no entry. Run the command again.")
    read = Read()
    for part in Assessment.objects.get(pk=tenant).files.values():
        read.add(msgspec.convert(part, Read))
    on_progress("Searching for rules", 0)
    queue_mining(tenant_id=tenant, actor=ACTOR)
    mining = run_mining(store, tenant_id=tenant, wait=True) or Mining.objects.filter(pk=tenant).first()
    if mining is None or mining.state != Mining.State.DONE:
        raise AssessmentFailed(f"The search failed: {mining.error if mining else 'the tenant was deleted'}")
    rules, left_out = combine_rules(
        read_ruleset(tenant).rules,
        (row for row in list_recommendations(tenant_id=tenant) if row.state in Recommendation.UNDECIDED),
    )
    on_progress("Replaying the rules", len(rules))
    run = _replay(store, tenant, rules, days)
    files = day_files(store, ((day.day, day.files) for day in days))
    on_progress("Measuring", 0)
    with replay_engine() as engine:
        hour, day = measure_repeats(engine.connection, files)
        hosts = bill_hosts(
            engine.connection,
            files,
            first=days[0].day,
            last=days[-1].day,
            pricing=Pricing.of(read_prices(tenant)),
        )
    report: dict[str, Any] = msgspec.to_builtins(
        AssessmentReport(
            tenant_id=tenant,
            url=f"{settings.DASHBOARD_URL}#/t/{tenant}/assessment",
            window=AssessedDays(from_=days[0].day, to=days[-1].day),
            read=ReadStatements.of(read, imported=sum(day.rows for day in days)),
            repeats=Repeats(hour=hour, day=day),
            rules=list(rules),
            replay=describe_replay(run),
            bill=_bill(run, hosts, read, order),
            notes=_notes(read, mining, left_out, has_rules=bool(rules)),
        )
    )
    Assessment.objects.filter(pk=tenant).update(report=report)
    return report


def combine_rules(
    current: Sequence[Mapping[str, Any]], recommendations: Iterable[Recommendation]
) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
    """Return the current rules with all recommendations, and the titles of those that exclude others."""
    rules, left_out = current, []
    groups: list[Sequence[RuleEdit]] = []
    for row in sorted(recommendations, key=lambda row: row.rank):
        candidates = [*groups, read_edits(row.patch)]
        try:
            combined = combine_edits(current, with_own_ids(current, candidates))
        except Exclusive:
            combined = None
        if combined is not None and lint_document({"rules": combined}).valid:
            rules, groups = combined, candidates
        else:
            left_out.append(row.title)
    return rules, left_out


def _replay(
    store: ObjectStore, tenant: UUID, rules: Sequence[Mapping[str, Any]], days: Sequence[Any]
) -> ReplayRun:
    """Replay rules over all entries of the last days, as many as a replay may have: a sample has no bill.

    Raises:
        AssessmentFailed: it failed.
        ApiError: it is too large.
    """
    last = days[-1].day
    first = max(days[0].day, last - timedelta(days=settings.REPLAY_MAX_DAYS - 1))
    rows = 0
    for day in reversed(days):
        rows += day.rows
        if rows > settings.REPLAY_EXACT_ROWS:
            first = max(first, min(day.day + timedelta(days=1), last))
            break
    run = queue_replay(
        tenant_id=tenant,
        rules=list(rules),
        first_day=first,
        last_day=last,
        warmup_days=0,
        gateway={},
        actor=ACTOR,
        is_exact=True,
    )
    while run.state not in ReplayRun.FINISHED and run_next(store, tenant_id=tenant):
        run.refresh_from_db()
    if run.state != ReplayRun.State.DONE:
        raise AssessmentFailed(run.error or f"The replay is {run.state}. Run the command again.")
    return run


def _bill(run: ReplayRun, hosts: Mapping[str, Mapping[date, int]], read: Read, order: Order) -> AssessedBill:
    """Return what the days of the replay bill with the rules and without, the same by month, and the
    metering."""
    billed = msgspec.convert((run.result or {})["billed"], ReplayBilled)
    days = (run.last_day - run.first_day).days + 1
    saved = _negate(billed.gain)
    return AssessedBill(
        days=days,
        with_rules=billed.total,
        without=billed.against,
        saved=saved,
        saved_per_month=_per_month(saved, days),
        metering=None if order.metered is None else compare_metering(order.metered, hosts, read),
    )


def _negate(gain: Billed) -> Billed:
    """Return the bill without rules less that with them, whose gain is the other way round."""
    ms, money = gain.billed_ms, gain.money
    return Billed(
        billed_ms=BilledRange(low=-ms.high, high=-ms.low),
        money=money
        and replace_fields(money, low=_text(-Decimal(money.high)), high=_text(-Decimal(money.low))),
    )


def _per_month(saved: Billed, days: int) -> Billed:
    ms, money = saved.billed_ms, saved.money

    def scale(text: str) -> str:
        return _text((Decimal(text) * MONTH_DAYS / days).quantize(Decimal(text)))

    return Billed(
        billed_ms=BilledRange(low=ms.low * MONTH_DAYS // days, high=ms.high * MONTH_DAYS // days),
        money=money and replace_fields(money, low=scale(money.low), high=scale(money.high)),
    )


def _text(amount: Decimal) -> str:
    # No minus before a zero.
    return str(amount or abs(amount))


def compare_metering(
    metered: MeteredDays, hosts: Mapping[str, Mapping[date, int]], read: Read
) -> list[MeteredDay]:
    """Return what was billed beside the model, by warehouse and day, for the days of the history."""
    days = {day for billed in hosts.values() for day in billed}
    rows = []
    for (host, day), (units, metered_ms) in sorted(metered.items()):
        if day not in days:
            continue
        model_ms = hosts.get(host, {}).get(day, 0)
        sizes = read.sizes.get(host, {})
        per_hour = credits_per_hour(sizes)
        if units is not None and per_hour is not None:
            metered_ms = round(units / per_hour * _HOUR_MS)
        ratio = metered_ms / model_ms if metered_ms is not None and model_ms else None
        why = _explain(ratio, model_ms, sizes, read.clusters.get(host, 1), knows_time=metered_ms is not None)
        rows.append(
            MeteredDay(
                host=host,
                day=day,
                model_ms=model_ms,
                metered=None if units is None else f"{units.normalize():f}",
                metered_ms=metered_ms,
                ratio=ratio,
                why=why,
                in_words=", ".join(CAUSES[code] for code in why),
            )
        )
    return rows


def _explain(
    ratio: float | None, model_ms: int, sizes: Mapping[str, int], clusters: int, *, knows_time: bool
) -> list[str]:
    """Return codes of what may explain that a bill differs from the model."""
    if ratio is not None and abs(Decimal(ratio) - 1) <= _SMALL:
        return []
    causes = {
        "no-statement-in-history": not model_ms,
        "size-unknown": not knows_time and not sizes,
        "several-sizes": len(sizes) > 1,
        "several-clusters": clusters > 1,
        "work-past-this-history": ratio is not None and ratio > 1,
        "suspends-earlier": ratio is not None and ratio < 1,
    }
    return [code for code, applies in causes.items() if applies]


def _notes(read: Read, mining: Mining, left_out: Sequence[str], *, has_rules: bool) -> list[str]:
    """Say what is missing, and why some statements got no rule."""
    notes = [f"Not known without the column {name}: {lost}." for name, lost in sorted(read.missing.items())]
    if read.unparsed:
        seconds = read.unparsed_ms // 1000
        notes.append(
            f"{read.unparsed} statements could not be parsed: they have no tables, and took {seconds} s of "
            "warehouse time."
        )
    if read.truncated:
        notes.append(f"{read.truncated} statements are cut by the source, so nothing is said of them.")
    notes += [f"Not with the others: {title}" for title in left_out]
    report = mining.report or {}
    # Rules may cover all that could have one.
    reasons = explain_nothing(report) if report["notProposed"] or not has_rules else []
    return [*notes, *(f"Without a rule: {text}" for text in reasons)]
