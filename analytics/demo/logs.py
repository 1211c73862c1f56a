"""Read the data files of the demo (data/README.md), and write the logs of its tenants.

They have a history, what happened in it, and new hours as time goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar
from uuid import UUID, uuid5

import duckdb
import msgspec
from django.core.files.base import ContentFile
from django.db.models import Max
from msgspec.structs import replace

from accounts.billing.domains import register_domain
from accounts.models import Domain, Revision, Tenant
from accounts.models.billing import Plan
from accounts.models.history import RevisionKind
from accounts.tenants.config import SentConfig, read_config, write_config
from analytics.advice.measure import Measurer
from analytics.advice.mine import fields_of
from analytics.advice.proposal import (
    Kind,
    Proposal,
    RuleEdit,
    apply_edits,
    rule_evidence,
    statements_evidence,
)
from analytics.demo.generate import SEED, GeneratedMarker, Hour, generate
from analytics.demo.profile import PROFILE_DAYS, DecidedAdvice, Mistake, Persona, Profile, Publication
from analytics.models import Build, Recommendation
from analytics.replay.load import DayFile, Job
from logs.compaction.build import compact_day
from logs.definitions import PASSED
from logs.layout import day_start_ms, list_day, logs_prefix
from logs.pending import mark_days
from rules.language import complete_rule, read_rules
from rules.markers import CROSS_RULE, cross_rule_id, make_marker
from rules.models import Marker
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import from_epoch_ms, now

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore


FOLDER: Final = Path(__file__).with_name("data")

_T = TypeVar("_T")


class DemoDataError(Exception):
    """The data files are invalid, or do not fit the seeded demo. The message names problem and file."""


class Person(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user of the service."""

    email: str
    name: str


class Owner(Person, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner of the demo's account and tenants. ``tenants`` are the names of their folders.

    ``domain`` was registered and never verified.
    """

    account: str
    domain: str
    plan: Plan
    tenants: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class Stranger(Person, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner of another account. Its tenant has no rules, and its log has stopped."""

    account: str
    plan: Plan
    tenant: str


class People(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``demo.toml``."""

    admin: Person
    owner: Owner
    member: Person
    stranger: Stranger


@dataclass(frozen=True, slots=True)
class Demo:
    """All data of the demo. ``terms`` is Markdown; ``profiles`` are the tenants, in order."""

    people: People
    terms: str
    profiles: tuple[Profile, ...]


def read_demo(folder: Path = FOLDER) -> Demo:
    """Read all data files.

    Raises:
        DemoDataError: a file is invalid.
        OSError: a file cannot be read.
    """
    people = _check(folder / "demo.toml", _read(folder / "demo.toml"), People)
    profiles = tuple(_read_profile(folder / name) for name in people.owner.tenants)
    return Demo(people, (folder / "terms.md").read_text(encoding="utf-8"), profiles)


def _read_profile(folder: Path) -> Profile:
    content = {
        **_read(folder / "profile.toml"),
        **_read(folder / "statements.toml"),
        **_read(folder / "rules.json"),
        "config": _read(folder / "config.json"),
    }
    return _check(folder, content, Profile)


def _read(path: Path) -> dict[str, Any]:
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        return decode(path.read_bytes(), type=dict[str, Any])
    except ValueError as error:
        raise DemoDataError(f"{path}: {error}") from error


def _check(path: Path, content: dict[str, Any], content_type: type[_T]) -> _T:
    try:
        return msgspec.convert(content, content_type)
    except msgspec.ValidationError as error:
        raise DemoDataError(f"{path}: {error}") from error


#: The number of threads that write objects. Writes mostly wait for the disk or the network.
_WRITERS: Final = 4
#: An entry whose ``logId`` starts with this (one in 256) is written as a single object.
_SINGLE_PREFIX: Final = "00"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The parameters of a tenant's logs. The same plan always gives the same objects."""

    profile: Profile
    tenant_id: UUID
    first_day: date
    days: int
    entries: int
    seed: int = SEED

    @property
    def last_day(self) -> date:
        return self.first_day + timedelta(days=self.days - 1)

    @property
    def publications(self) -> list[Publication]:
        """The rulesets that were published until the end of the logs."""
        end = day_start_ms(self.first_day + timedelta(days=self.days))
        return [
            publication for publication in self.profile.publications(self.first_day) if publication.at < end
        ]


def write_logs(store: ObjectStore, plan: LogPlan) -> Iterator[list[Hour]]:
    """Write the logs of a plan. Yield the hours of each day after it is written.

    Existing objects are written again with the same bytes, so a second run completes a killed one.

    Raises:
        StoreError: the store failed.
    """
    hours = generate(
        plan.profile,
        tenant_id=str(plan.tenant_id),
        first_day=plan.first_day,
        days=plan.days,
        seed=plan.seed,
        entries=plan.entries,
    )

    def save(item: tuple[str, bytes]) -> None:
        key, content = item
        store.save(key, ContentFile(content))

    with ThreadPoolExecutor(_WRITERS) as pool:
        # Memory holds only one day.
        while day := list(islice(hours, 24)):
            objects = [item for hour in day for item in pack_hour(hour, tenant_id=plan.tenant_id)]
            list(pool.map(save, objects))
            yield day


def compact_days(
    store: ObjectStore, tenant_id: UUID, days: Iterable[date], *, directory: Path
) -> list[DayFile]:
    """Compact days with log entries into ``directory``, for a replay.

    Raises:
        StoreError: the store failed.
    """
    files = []
    for day in days:
        place = directory / f"day={day}"
        place.mkdir()
        compacted = compact_day(store, list_day(store, tenant=tenant_id, day=day), directory=place)
        files.append(DayFile(day, str(compacted.file)))
    return files


def pack_hour(hour: Hour, *, tenant_id: UUID) -> list[tuple[str, bytes]]:
    """Return the keys and contents of one hour's objects: one NDJSON batch, and some single entries."""
    prefix = f"{logs_prefix(tenant_id)}{datetime.fromtimestamp(hour.start / 1000, UTC):%Y/%m/%d/%H}/"
    objects = []
    batch = b""
    for entry in hour.entries:
        if entry["logId"].startswith(_SINGLE_PREFIX):
            objects.append((f"{prefix}{entry['timestamp']}-{entry['logId']}.json", _encode(entry)))
        else:
            batch += _encode(entry) + b"\n"
    if batch:
        objects.append((f"{prefix}{hour.start}-batch.json", batch))
    return objects


#: Length in days of the window that a recommendation is based on.
_DAYS: Final = 7
_DAY_MINUTES: Final = 1440


def advised_id(tenant_id: UUID, advised: DecidedAdvice) -> UUID:
    """Return the id of a recommendation. It is the same in every run."""
    return uuid5(tenant_id, f"{advised.kind} {advised.subject}")


def advised_summary(tenant_id: UUID, advised: DecidedAdvice) -> dict[str, Any]:
    """Return the summary of the revision that accepts a recommendation."""
    return {
        "recommendation": {"recommendationId": str(advised_id(tenant_id, advised)), "title": advised.title}
    }


def ensure_advice(store: ObjectStore, plan: LogPlan, *, actor: str) -> None:
    """Store the missing recommendations of a tenant, decided by ``actor``. Its logs must be written.

    Raises:
        StoreError: the store failed.
    """
    stored = Recommendation.objects.filter(tenant_id=plan.tenant_id).values_list("pk", flat=True)
    for advised in plan.profile.advice:
        if advised.decided < plan.days * _DAY_MINUTES and advised_id(plan.tenant_id, advised) not in stored:
            _make(store, plan, advised, actor=actor).save(force_insert=True)


def _make(store: ObjectStore, plan: LogPlan, advised: DecidedAdvice, *, actor: str) -> Recommendation:
    """Return a recommendation that is based on the rules at the beginning of the day of its decision."""
    decided_on = plan.first_day + timedelta(minutes=advised.decided)
    # The first day only fills the cache.
    days = [decided_on - timedelta(days=number) for number in range(_DAYS + 1, 0, -1)]
    morning = day_start_ms(decided_on)
    before = [item for item in plan.publications if item.at < morning][-1]
    rules = [complete_rule(rule) for rule in before.rules]
    proposal = _propose(advised, rules, window=f"day BETWEEN '{days[1]}' AND '{days[-1]}'")
    with TemporaryDirectory() as directory, duckdb.connect(config={"threads": 1}) as connection:
        current = read_rules(rules)
        files = compact_days(store, plan.tenant_id, days, directory=Path(directory))
        measurer = Measurer(connection, Job(files, days[1], days[-1], current, current))
        measurer.play_current()
        prediction, _ = measurer.predict(read_rules(apply_edits(rules, proposal.edits)))
        content = fields_of(measurer, proposal, prediction)
    saved_ms = prediction.gain.saved_ms
    return Recommendation(
        **content | {"estimate_ms": (saved_ms.low + saved_ms.high) // 2},
        recommendation_id=advised_id(plan.tenant_id, advised),
        tenant_id=plan.tenant_id,
        state=advised.state,
        version=2,
        rank=0,
        seq=before.seq,
        first_day=days[1],
        last_day=days[-1],
        mined_at=from_epoch_ms(morning),
        decided_by=actor,
        decided_at=from_epoch_ms(advised.decided_at(plan.first_day)),
        reason=advised.reason,
        accepted_seq=before.seq + 1 if advised.state == "accepted" else None,
    )


def _propose(advised: DecidedAdvice, rules: Sequence[Mapping[str, Any]], *, window: str) -> Proposal:
    rule: dict[str, Any] = complete_rule(advised.rule)
    if rule["id"] in {other["id"] for other in rules}:
        edit, evidence = RuleEdit.replace(rule), rule_evidence(window, rule["id"])
    else:
        evidence = statements_evidence(window, rule["conditions"], where=str(PASSED))
        edit = RuleEdit.insert(rule)
    return Proposal(Kind(advised.kind), advised.subject, advised.title, advised.why, (edit,), (evidence,))


#: From the rule that cures the leak to the configuration that names its tables.
_NAMED_AFTER: Final = timedelta(minutes=10)


def write_history(store: ObjectStore, plan: LogPlan, *, actor: str) -> Iterator[int]:
    """Write the missing parts of a tenant's past. Yield the number of log entries after each day of logs.

    Raises:
        StoreError: the store failed.
    """
    markers: list[GeneratedMarker] = []
    for hours in write_logs(store, plan):
        markers += [marker for hour in hours for marker in hour.markers]
        yield sum(len(hour.entries) for hour in hours)
    for publication in plan.publications:
        _publish_rules(plan.tenant_id, publication, actor=actor)
    _name_per_user_tables(plan, actor=actor)
    store_markers(plan.tenant_id, markers)


def _publish_rules(tenant_id: UUID, publication: Publication, *, actor: str) -> None:
    """Write a ruleset, unless a user has written a newer one."""
    stored = read_ruleset(tenant_id)
    advised = publication.advised
    changed_at = from_epoch_ms(publication.at)
    if stored.seq == publication.seq - 1 and stored.modified_at < changed_at:
        write_ruleset(
            tenant_id=tenant_id,
            document={"rules": list(publication.rules)},
            actor=actor,
            restored_from=publication.restored_from,
            comment=publication.comment,
            summary=None if advised is None else advised_summary(tenant_id, advised),
            changed_at=changed_at,
        )


def _name_per_user_tables(plan: LogPlan, *, actor: str) -> None:
    """Write the configuration that came after the leak was cured, unless a user has written another."""
    profile, stored = plan.profile, read_config(plan.tenant_id)
    if profile.leak is None or profile.leak.cured >= plan.days * _DAY_MINUTES or stored.seq > 0:
        return
    write_config(
        tenant_id=plan.tenant_id,
        document=profile.config,
        parse=SentConfig,
        actor=actor,
        changed_at=from_epoch_ms(profile.leak.cured_at(plan.first_day)) + _NAMED_AFTER,
    )


def store_markers(
    tenant_id: UUID, markers: Iterable[GeneratedMarker], *, numbers: Mapping[str, int] | None = None
) -> None:
    """Store the missing markers of a tenant's logs.

    Markers are numbered in order of time, so every run gives them the same ids. ``numbers`` are the first
    numbers by rule, if they are not 0.
    """
    rules = {rule.id: rule for rule in read_rules(read_ruleset(tenant_id).rules)}
    counts: Counter[str] = Counter(numbers)
    changed_at = now()
    rows = []
    for marker in sorted(markers, key=attrgetter("at")):
        target = rules.get(marker.target_rule_id)
        if target is None:
            # The rule has been removed from the ruleset.
            continue
        number = counts[target.id]
        counts[target.id] += 1
        rows.append(
            make_marker(
                tenant_id,
                target=target,
                at=from_epoch_ms(marker.at),
                changed_at=changed_at,
                marker_id=cross_rule_id(target.id, number),
                number=number,
                actor="",
                invalidated_by={
                    "ruleId": marker.fired_rule_id,
                    "statement": marker.statement,
                    "triggeredBy": CROSS_RULE,
                },
            )
        )
    Marker.objects.bulk_create(rows, batch_size=1000, ignore_conflicts=True)


#: A day is the last one of a simulated week, which has the rhythm of a week and fills the cache.
_WEEK: Final = 7


def write_later_day(
    store: ObjectStore, profile: Profile, *, tenant_id: UUID, day: date, share: float = 1.0
) -> int:
    """Write one more day of a tenant's log, with its markers. Return the number of entries.

    Nothing is written for a deleted tenant. Another run for the day writes the same again.

    Raises:
        StoreError: the store failed.
    """
    if not Tenant.objects.live().filter(pk=tenant_id).exists():
        return 0
    week = list(
        generate(
            profile,
            tenant_id=str(tenant_id),
            first_day=day - timedelta(days=_WEEK - 1),
            days=_WEEK,
            entries=round(profile.entries * share * _WEEK / PROFILE_DAYS),
            publications=_read_publications(tenant_id),
        )
    )
    hours = week[-24:]
    for hour in hours:
        for key, content in pack_hour(hour, tenant_id=tenant_id):
            store.save(key, ContentFile(content))
    begins_at = from_epoch_ms(day_start_ms(day))
    earlier = Marker.objects.filter(tenant=tenant_id, number__isnull=False, invalidated_at__lt=begins_at)
    highest = earlier.order_by().values_list("target_rule_id").annotate(Max("number"))
    store_markers(
        tenant_id,
        (marker for hour in hours for marker in hour.markers),
        numbers={rule_id: number + 1 for rule_id, number in highest},
    )
    mark_days(tenant=tenant_id, days=[day])
    return sum(len(hour.entries) for hour in hours)


def _read_publications(tenant_id: UUID) -> tuple[Publication, ...]:
    revisions = Revision.objects.filter(kind=RevisionKind.RULES, tenant_id=tenant_id, document__isnull=False)
    return tuple(
        Publication(row.seq, int(row.changed_at.timestamp() * 1000), tuple(row.document["rules"]))
        for row in revisions.order_by("seq")
        if row.document
    )


#: Days by which the third tenant's log stops early.
_LATE_DAYS: Final = 3
_ENTRIES_PER_DAY: Final = 100
#: Days at the end of its log under a rule that sends every read past the cache.
_FALLEN_DAYS: Final = 5
_PAST_THE_CACHE: Final = {
    "id": "try-without-cache",
    "name": "Try without the cache",
    "action": "bypass",
    "conditions": {"isReadOnly": True},
}
#: The object of a Gateway that was killed during a write.
_CUT: Final = b'{"logId": "5f0c", "timestamp": 17'
_ERROR: Final = "StoreError: the object store did not answer within 60 s"


def ensure_incidents(
    store: ObjectStore, demo: Demo, *, account_id: UUID, first_day: date, last_day: date
) -> None:
    """Create the missing incidents.

    Raises:
        StoreError: the store failed.
    """
    owner, stranger = demo.people.owner, demo.people.stranger
    tenant = Tenant.objects.get(name=stranger.tenant, account__owners__email=stranger.email)
    day = last_day - timedelta(days=_LATE_DAYS)
    days = max((day - first_day).days + 1, 1)
    published = max(days - _FALLEN_DAYS, 0) * _DAY_MINUTES
    mistake = Mistake(published=published, restored=days * _DAY_MINUTES, rule=_PAST_THE_CACHE)
    profile = demo.profiles[0]
    # Dashboards repeat their requests, so that a small log has a hit rate that can fall.
    dashboards = tuple(consumer for consumer in profile.consumers if consumer.persona is Persona.DASHBOARD)
    plan = LogPlan(
        replace(profile, mistake=mistake, leak=None, advice=(), consumers=dashboards),
        tenant.pk,
        first_day=day - timedelta(days=days - 1),
        days=days,
        entries=_ENTRIES_PER_DAY * days,
    )
    for _ in write_history(store, plan, actor=stranger.email):
        pass
    hour = f"{logs_prefix(tenant.pk)}{day:%Y/%m/%d}/12/"
    store.save(f"{hour}{day_start_ms(day) + 43_200_000}-cut.json", ContentFile(_CUT))
    # The day has no log. The build of a day with a log would run again.
    Build.objects.get_or_create(
        tenant_id=tenant.pk,
        period=(day + timedelta(days=1)).isoformat(),
        state=Build.State.FAILED,
        defaults={"error": _ERROR, "finished_at": now()},
    )
    if not Domain.objects.filter(account_id=account_id, name=owner.domain).exists():
        register_domain(account_id=account_id, name=owner.domain, actor=owner.email)
