"""What is found of a tenant. `test_words.py` has the sentences."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Revision
from accounts.models.history import RevisionKind
from analytics.models import Build, Digest, TenantHealth
from analytics.reports.leaks import ClosedLeaks, Closing
from analytics.watch.verdict import (
    About,
    Fall,
    Finding,
    Restore,
    VerdictState,
    find_closed_of_days,
    note_findings,
    read_findings,
)
from logs.models import PendingBuild

#: A Wednesday.
TODAY = dt.date(2026, 11, 25)
YESTERDAY = TODAY - dt.timedelta(days=1)
pytestmark = pytest.mark.django_db

AT = dt.datetime.combine(TODAY, dt.time(9), dt.UTC)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics.watch.verdict.now", lambda: AT)


@pytest.fixture
def tenant() -> UUID:
    tenant = uuid4()
    TenantHealth.objects.create(tenant_id=tenant, last_day=YESTERDAY)
    return tenant


def make_digest(
    tenant: UUID,
    *,
    ago: int,
    rate: float,
    usual: float | None,
    cause: str = "",
    sections: tuple[str, ...] = (),
) -> Digest:
    """Store the digest of a day, with what the verdict reads of it."""
    day = TODAY - dt.timedelta(days=ago)
    facts: list[dict[str, Any]] = [{"id": "hit-rate", "value": rate}, {"id": "requests", "value": 50}]
    if usual is not None:
        facts.append({"id": "hit-rate-median", "value": usual})
    names = [{"id": "moved-1-write", "kind": "revision", "value": cause}] if cause else []
    document = {"facts": facts, "names": names, "sections": [{"id": item} for item in ("totals", *sections)]}
    return Digest.objects.create(
        tenant_id=tenant, period=day.isoformat(), first_day=day, last_day=day, document=document,
        made_at=dt.datetime.combine(TODAY, dt.time(2), dt.UTC),
    )  # fmt: skip


def write(
    tenant: UUID,
    seq: int,
    *,
    hours: float,
    action: str = "update",
    restored_from: int | None = None,
    rules: Sequence[Mapping[str, Any]] = (),
    kind: str = "rules",
    document: Mapping[str, Any] | None = None,
) -> None:
    """Store a revision, else of the rules, made some hours after the start of 2026-11-23."""
    at = dt.datetime(2026, 11, 23, tzinfo=dt.UTC) + dt.timedelta(hours=hours)
    Revision.objects.create(
        kind=kind, tenant_id=tenant, account_id=uuid4(), seq=seq, user="x@example.org", action=action,
        restored_from=restored_from, document=document or {"rules": [*rules]}, changed_at=at,
    )  # fmt: skip


def find_all(tenant: UUID) -> Sequence[Finding]:
    return read_findings([tenant], at=AT)[tenant]


def find_one(tenant: UUID) -> Finding:
    (finding,) = find_all(tenant)
    return finding


def find_fall(tenant: UUID) -> Fall:
    (fall,) = (finding.fall for finding in find_all(tenant) if finding.fall is not None)
    return fall


def has_open(tenant: UUID) -> bool:
    return any(finding.is_open for finding in find_all(tenant))


def moment(hours: float) -> dt.datetime:
    """Return a time, so many hours after the start of 2026-11-23."""
    return dt.datetime(2026, 11, 23, tzinfo=dt.UTC) + dt.timedelta(hours=hours)


def test_a_tenant_without_a_log() -> None:
    assert find_one(uuid4()) == Finding(VerdictState.NO_LOG_YET, About.NO_LOG, None)


@pytest.mark.parametrize(
    ("last_day", "state", "about"),
    [
        (dt.date(2026, 11, 18), VerdictState.LOG_LATE, About.LOG_LATE),
        (YESTERDAY, VerdictState.NOT_JUDGED_YET, About.NO_DIGEST),
        (TODAY, VerdictState.HEALTHY, About.NOTHING),
    ],
)
def test_a_log_that_stopped(tenant: UUID, last_day: dt.date, state: VerdictState, about: About) -> None:
    TenantHealth.objects.update(last_day=last_day)
    assert find_one(tenant) == Finding(state, about, last_day)


@pytest.mark.parametrize("last_day", [None, dt.date(2026, 11, 18)])
def test_a_log_whose_first_days_are_being_built(tenant: UUID, last_day: dt.date | None) -> None:
    TenantHealth.objects.update(last_day=last_day)
    for day in (YESTERDAY, YESTERDAY - dt.timedelta(days=1), None):
        PendingBuild.objects.create(tenant_id=tenant, day=day)
    assert find_one(tenant) == Finding(VerdictState.NOT_JUDGED_YET, About.SUMMARISING, YESTERDAY)
    # A day before the last that has requests is no news of later ones.
    PendingBuild.objects.update(tenant_id=uuid4())
    assert find_one(tenant).about is (About.LOG_LATE if last_day else About.NO_LOG)


def test_a_log_that_could_not_be_read(tenant: UUID) -> None:
    last = dt.date(2026, 11, 20)
    TenantHealth.objects.update(last_day=last)
    for day in ("2026-11-19", "2026-11-22", "2026-11-23"):
        Build.objects.create(tenant_id=tenant, period=day, state=Build.State.FAILED)
    failed = Finding(VerdictState.LOG_LATE, About.LOG_LATE, last, failed=dt.date(2026, 11, 23))
    assert find_one(tenant) == failed
    PendingBuild.objects.create(tenant_id=tenant, day="2026-11-23")
    assert find_one(tenant) == failed
    PendingBuild.objects.create(tenant_id=tenant, day="2026-11-24")
    assert find_one(tenant).about is About.SUMMARISING
    PendingBuild.objects.all().delete()
    Build.objects.filter(period__gt="2026-11-20").delete()
    assert find_one(tenant) == Finding(VerdictState.LOG_LATE, About.LOG_LATE, last)


def test_a_hit_rate_as_usual(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=40.1, usual=45.0)
    assert find_one(tenant) == Finding(VerdictState.HEALTHY, About.NOTHING, YESTERDAY)


def test_a_fall_without_a_known_cause(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=7.2, usual=42.9)
    fall = Fall(42.9, 7.2, is_over=False)
    assert find_one(tenant) == Finding(VerdictState.HIT_RATE_FELL, About.FALL, YESTERDAY, fall=fall)


def test_a_fall_has_a_first_day_once_earlier_digests_are_made(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=7.2, usual=42.9, cause="revision 2 (2026-11-24 10:00 UTC)")
    Digest.objects.update(made_at=dt.datetime.combine(TODAY, dt.time(8, 56), dt.UTC))
    assert find_fall(tenant) == Fall(42.9, 7.2, is_over=False, has_start=False)
    make_digest(tenant, ago=2, rate=40.0, usual=42.9)
    fall = Fall(42.9, 7.2, is_over=False, revision=2)
    assert find_fall(tenant) == fall
    # The log may begin with the fall.
    Digest.objects.filter(last_day__lt=YESTERDAY).delete()
    Digest.objects.update(made_at=dt.datetime.combine(TODAY, dt.time(8, 54), dt.UTC))
    assert find_fall(tenant) == fall


def test_a_fall_after_a_revision_that_was_restored(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=42.0, usual=42.9)
    make_digest(tenant, ago=2, rate=7.2, usual=42.9, cause="revision 2 (2026-11-23 10:00 UTC)")
    write(tenant, 1, hours=-100)
    write(tenant, 2, hours=10)
    fall = Fall(42.9, 7.2, is_over=True, revision=2, revised_at=moment(10))
    assert find_one(tenant) == Finding(
        VerdictState.HIT_RATE_RECOVERED, About.FALL, dt.date(2026, 11, 23), fall=fall
    )
    # Neither another update nor the restore of the revision itself repairs it.
    write(tenant, 3, hours=11)
    write(tenant, 4, hours=12, action="restore", restored_from=2)
    assert find_fall(tenant) == fall
    write(tenant, 5, hours=15.5, action="restore", restored_from=1)
    restore = Restore(5, 1, moment(15.5), is_untried=False)
    assert find_fall(tenant) == replace(fall, restore=restore, is_judged_since=True)


def test_the_worst_fall_of_a_week_is_told(tenant: UUID) -> None:
    for ago, rate in enumerate((40.0, 30.0, 40.0, 10.0, 40.0, 40.0, 40.0, 0.0), start=1):
        make_digest(tenant, ago=ago, rate=rate, usual=40.0)
    assert (find_one(tenant).day, find_fall(tenant).rate) == (dt.date(2026, 11, 21), 10.0)
    # One that goes on is told before a deeper one that is over.
    Digest.objects.filter(period=YESTERDAY.isoformat()).delete()
    (fell,) = (finding for finding in find_all(tenant) if finding.fall is not None)
    assert fell == Finding(
        VerdictState.HIT_RATE_FELL,
        About.FALL,
        dt.date(2026, 11, 23),
        fall=Fall(40.0, 30.0, is_over=False),
    )


def test_a_fall_that_began_before_the_week_is_told_from_its_first_day(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=40.0, usual=40.0)
    make_digest(tenant, ago=7, rate=30.0, usual=40.0)
    make_digest(tenant, ago=8, rate=6.5, usual=40.0, cause="revision 2 (2026-11-17 10:00 UTC)")
    make_digest(tenant, ago=9, rate=40.0, usual=40.0)
    make_digest(tenant, ago=10, rate=0.0, usual=40.0)
    assert find_one(tenant).day == dt.date(2026, 11, 17)
    assert find_fall(tenant) == Fall(40.0, 6.5, is_over=True, revision=2)


def test_a_fall_is_told_from_its_first_day_across_days_without_a_log(tenant: UUID) -> None:
    # A weekend has nothing to compare with; on the other days no log came.
    TenantHealth.objects.update(last_day=YESTERDAY - dt.timedelta(days=1))
    make_digest(tenant, ago=2, rate=0.0, usual=40.0)
    make_digest(tenant, ago=3, rate=0.0, usual=None)
    make_digest(tenant, ago=6, rate=2.0, usual=30.0, cause="revision 2 (2026-11-19 00:00 UTC)")
    # This day fell less, before the revision.
    make_digest(tenant, ago=7, rate=30.0, usual=35.0)
    make_digest(tenant, ago=8, rate=31.0, usual=30.0)
    write(tenant, 1, hours=-500)
    write(tenant, 2, hours=-96)
    fall = Fall(30.0, 2.0, is_over=False, revision=2, revised_at=moment(-96))
    late, fell = find_all(tenant)
    assert (late.state, fell.day, fell.fall) == (VerdictState.LOG_LATE, dt.date(2026, 11, 19), fall)
    # The log ends before the restore.
    write(tenant, 3, hours=56.85, action="restore", restored_from=1)
    restore = Restore(3, 1, moment(56.85), is_untried=True)
    assert find_fall(tenant) == replace(fall, restore=restore)
    assert has_open(tenant)
    TenantHealth.objects.update(last_day=TODAY)
    assert find_fall(tenant) == replace(fall, restore=replace(restore, is_untried=False))


def test_a_fall_after_days_without_a_log_names_the_revision_of_these_days(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=7.0, usual=40.0)
    make_digest(tenant, ago=5, rate=40.0, usual=40.0)
    for seq, hours in enumerate((-90, -60, 12), start=1):
        write(tenant, seq, hours=hours)
    fall = Fall(40.0, 7.0, is_over=False, revision=3, revised_at=moment(12))
    assert find_fall(tenant) == fall
    write(tenant, 4, hours=30, action="restore", restored_from=2)
    make_digest(tenant, ago=0, rate=9.0, usual=40.0)
    restore = Restore(4, 2, moment(30), is_untried=False)
    assert find_fall(tenant) == replace(fall, restore=restore, is_judged_since=True)
    assert has_open(tenant)


@pytest.mark.parametrize(
    ("sections", "found"),
    [
        (("errors", "leaks"), [About.ERRORS, About.LEAKS]),
        (("stale", "leaks"), [About.LEAKS, About.STALE]),
        (("publishes", "new-statements"), [About.NOTHING]),
    ],
)
def test_what_the_last_digest_found(tenant: UUID, sections: tuple[str, ...], found: list[About]) -> None:
    make_digest(tenant, ago=1, rate=42.0, usual=42.9, sections=sections)
    make_digest(tenant, ago=2, rate=42.0, usual=42.9, sections=("errors",))
    assert [(finding.about, finding.day) for finding in find_all(tenant)] == [
        (about, YESTERDAY) for about in found
    ]


def test_a_fall_is_not_over_on_a_weekend_with_few_hits(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=0.0, usual=4.0)
    make_digest(tenant, ago=2, rate=0.0, usual=40.0)
    assert find_one(tenant).day == dt.date(2026, 11, 23)
    assert find_fall(tenant) == Fall(40.0, 0.0, is_over=False)


def test_all_that_was_found_is_told_the_worst_first(tenant: UUID) -> None:
    make_digest(tenant, ago=2, rate=42.0, usual=42.9, sections=("errors", "leaks", "stale"))
    make_digest(tenant, ago=3, rate=10.0, usual=40.0)
    found = [finding.about for finding in find_all(tenant)]
    assert found == [About.ERRORS, About.LEAKS, About.STALE, About.NO_DIGEST, About.FALL]
    TenantHealth.objects.update(last_day=YESTERDAY - dt.timedelta(days=1))
    late, *others = find_all(tenant)
    assert (late.about, len(others)) == (About.LOG_LATE, 4)


MINE = {"standardizedSql": "SELECT current_user()", "tables": "[]", "isReadOnly": True, "cacheOverride": None}
PAY = {"standardizedSql": "SELECT * FROM hr.pay", "tables": '["hr.pay"]', "isReadOnly": True}
SHARED = {"id": "all", "conditions": {"isReadOnly": True}, "varyBy": []}


def leak(tenant: UUID, *leaking: Mapping[str, Any], ago: int = 1) -> None:
    """Store a digest of a day, else yesterday, with statements that leaked."""
    digest = make_digest(tenant, ago=ago, rate=42.0, usual=42.9, sections=("leaks",))
    digest.document["leaking"] = leaking
    digest.save()


def closed_by_rules(seq: int, *leaking: Mapping[str, Any]) -> ClosedLeaks:
    return ClosedLeaks(Closing(RevisionKind.RULES, seq), {item["standardizedSql"] for item in leaking})


def test_a_leak_is_closed_once_no_rule_shares_its_statements(tenant: UUID) -> None:
    def publish(seq: int, *rules: Mapping[str, Any]) -> None:
        write(tenant, seq, hours=24 + seq, rules=rules)

    leak(tenant, MINE, PAY)
    pay = {"id": "pay", "conditions": {"tables": {"containsAny": ["hr.*"]}}, "varyBy": ["userName"]}
    publish(1, SHARED)
    publish(2, pay, SHARED)
    assert find_one(tenant) == Finding(VerdictState.FINDING, About.LEAKS, YESTERDAY)
    publish(3, pay, SHARED | {"conditions": {"not": {"standardizedSql": {"contains": "current_user"}}}})
    publish(4, pay, {"id": "mine", "varyBy": ["sessionId"]}, SHARED)
    note_findings(tenant)
    closing = Closing(RevisionKind.RULES, 3)
    closed = Finding(VerdictState.FINDING_CLOSED, About.LEAKS, YESTERDAY, closing=closing)
    assert (find_one(tenant), has_open(tenant)) == (closed, False)
    # Other rules may open it again, so it stays noted.
    assert TenantHealth.objects.get().has_findings
    publish(5, pay, {"id": "mine", "enabled": False, "varyBy": ["userName"]}, SHARED)
    assert find_one(tenant).state is VerdictState.FINDING


def test_a_leak_is_not_closed_by_a_revision_of_before(tenant: UUID) -> None:
    leak(tenant, MINE)
    # The verdict reads the revisions since its first digest.
    make_digest(tenant, ago=5, rate=42.0, usual=42.9)
    write(tenant, 1, hours=-1)
    assert find_one(tenant).state is VerdictState.FINDING
    assert find_closed_of_days(tenant, YESTERDAY, YESTERDAY) is None
    write(tenant, 2, hours=1)
    assert find_one(tenant).closing == Closing(RevisionKind.RULES, 2)
    assert find_closed_of_days(tenant, YESTERDAY, YESTERDAY) == closed_by_rules(2, MINE)


def test_a_leak_is_closed_while_the_configuration_has_the_cache_off(tenant: UUID) -> None:
    def configure(seq: int, *, hours: float, enabled: bool) -> None:
        document = {"defaults": {"cacheEnabled": enabled, "ttlSeconds": 60}}
        write(tenant, seq, kind="config", hours=hours, document=document)

    leak(tenant, MINE)
    write(tenant, 1, hours=1, rules=[SHARED])
    configure(1, hours=-1, enabled=False)
    assert find_one(tenant).state is VerdictState.FINDING
    configure(2, hours=25, enabled=True)
    assert find_one(tenant).state is VerdictState.FINDING
    configure(3, hours=30, enabled=False)
    configure(4, hours=31, enabled=False)
    closing = Closing(RevisionKind.CONFIG, 3)
    assert find_one(tenant).closing == closing
    closed = find_closed_of_days(tenant, YESTERDAY, YESTERDAY)
    assert closed == ClosedLeaks(closing, {"SELECT current_user()"})
    configure(5, hours=32, enabled=True)
    assert find_one(tenant).state is VerdictState.FINDING
    write(tenant, 2, hours=33, rules=[])
    assert find_closed_of_days(tenant, YESTERDAY, YESTERDAY) == closed_by_rules(2, MINE)


def test_leaks_of_two_days_are_closed_once_none_of_them_can_happen_again(tenant: UUID) -> None:
    leak(tenant, MINE, ago=2)
    leak(tenant, PAY)
    days = YESTERDAY - dt.timedelta(days=1), YESTERDAY
    pay = {"id": "pay", "conditions": {"tables": {"containsAny": ["hr.*"]}}, "varyBy": ["userName"]}
    mine = {"id": "mine", "conditions": {"tables": {"exists": False}}, "varyBy": ["userName"]}
    write(tenant, 1, hours=1, rules=[SHARED | {"conditions": {"tables": {"containsAny": ["hr.*"]}}}])
    assert find_closed_of_days(tenant, *days) is None
    write(tenant, 2, hours=2, rules=[pay])
    write(tenant, 3, hours=3, rules=[pay, mine])
    assert find_closed_of_days(tenant, *days) == closed_by_rules(2, MINE, PAY)
    # It does not say what leaked.
    leak(tenant, ago=3)
    assert find_closed_of_days(tenant, YESTERDAY - dt.timedelta(days=2), YESTERDAY) is None


@pytest.mark.parametrize(
    ("rules", "is_closed"),
    [
        ([SHARED], False),
        ([], True),
        ([SHARED | {"enabled": False}], True),
        ([SHARED | {"action": "bypass"}], True),
        ([SHARED | {"varyBy": ["host"]}], False),
        ([SHARED | {"varyBy": ["host", "userTokenHash"]}], True),
        ([SHARED | {"conditions": {"tables": {"containsAny": ["sales.*"]}}}], True),
        ([SHARED | {"conditions": {"cacheOverride": "cache"}}], True),
        # Who asks is not known.
        ([SHARED | {"conditions": {"userName": "ann"}}], False),
        ([SHARED | {"conditions": {"userName": "ann", "isReadOnly": False}}], True),
        ([{"id": "deny", "action": "deny", "conditions": {"userName": "ann"}}, SHARED], False),
        ([{"id": "none", "action": "bypass", "conditions": {}}, SHARED], True),
    ],
)
def test_what_closes_a_leak(tenant: UUID, rules: list[dict[str, Any]], is_closed: bool) -> None:
    leak(tenant, MINE)
    write(tenant, 1, hours=30, rules=rules)
    assert (find_one(tenant).state is VerdictState.FINDING_CLOSED) == is_closed
    closed = find_closed_of_days(tenant, TODAY - dt.timedelta(days=7), TODAY)
    assert closed == (closed_by_rules(1, MINE) if is_closed else None)


@pytest.mark.parametrize(
    ("digest", "is_noted"),
    [
        ({"ago": 1, "rate": 42.0, "usual": 42.9}, False),
        ({"ago": 1, "rate": 42.0, "usual": None}, False),
        ({"ago": 1, "rate": 42.0, "usual": None, "sections": ("stale",)}, True),
        ({"ago": 7, "rate": 7.0, "usual": 42.9}, True),
        ({"ago": 8, "rate": 7.0, "usual": 42.9}, False),
    ],
)
def test_an_upgrade_notes_the_findings_of_earlier_digests(
    tenant: UUID, digest: dict[str, Any], is_noted: bool
) -> None:
    make_digest(tenant, **digest)
    TenantHealth.objects.create(tenant_id=uuid4(), last_day=YESTERDAY)
    module: Any = import_module("analytics.migrations.0021_findings_of_earlier_digests")
    with connection.cursor() as cursor:
        cursor.execute(module._NOTE_FINDINGS)
    noted = TenantHealth.objects.filter(has_findings=True).values_list("pk", flat=True)
    assert list(noted) == ([tenant] if is_noted else [])
    assert has_open(tenant) == is_noted


def test_a_leak_of_which_the_digest_keeps_no_statements_stays_open(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=42.0, usual=42.9, sections=("leaks",))
    write(tenant, 1, hours=30, rules=[])
    assert find_one(tenant).state is VerdictState.FINDING


def test_it_takes_five_queries_for_all_tenants(tenant: UUID) -> None:
    write(tenant, 2, hours=10)
    for ago in range(1, 7):
        make_digest(tenant, ago=ago, rate=7.0, usual=40.0, cause="revision 2 (2026-11-23 10:00 UTC)")
    other = uuid4()
    TenantHealth.objects.create(tenant_id=other, last_day=YESTERDAY - dt.timedelta(days=30))
    make_digest(other, ago=31, rate=7.0, usual=40.0)
    with CaptureQueriesContext(connection) as captured:
        found = read_findings([tenant, other], at=AT)
    # The last two are for the tenant whose log is late.
    assert len(captured) == 5
    assert found[other][1].fall == Fall(40.0, 7.0, is_over=False)
