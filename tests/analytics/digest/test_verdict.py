"""One sentence on how a tenant is."""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Revision
from accounts.models.history import RevisionKind
from analytics.models import Build, Digest, TenantHealth
from analytics.reports.leaks import ClosedLeaks, Closing
from analytics.watch.verdict import (
    VerdictState,
    find_closed_of_days,
    find_open,
    note_findings,
    read_verdict,
    read_verdicts,
)
from logs.models import PendingBuild

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

#: A Wednesday.
TODAY = dt.date(2026, 11, 25)
YESTERDAY = TODAY - dt.timedelta(days=1)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    at = dt.datetime.combine(TODAY, dt.time(9), dt.UTC)
    monkeypatch.setattr("analytics.watch.verdict.now", lambda: at)


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


def test_a_tenant_without_a_log() -> None:
    verdict = read_verdict(uuid4())
    assert (verdict.state, verdict.text, verdict.day) == (VerdictState.NO_LOG_YET, "No log yet", None)


@pytest.mark.parametrize(
    ("last_day", "text"),
    [
        ("2026-11-20", "No log since Friday, 20 November"),
        ("2026-11-18", "No log since Wednesday, 18 November"),
        ("2026-11-24", "Not judged yet: there is no digest of Tuesday, 24 November yet"),
        ("2026-11-25", "Healthy"),
    ],
)
def test_a_log_that_stopped(tenant: UUID, last_day: str, text: str) -> None:
    TenantHealth.objects.update(last_day=last_day)
    assert read_verdict(tenant).text == text


@pytest.mark.parametrize("last_day", [None, "2026-11-18"])
def test_a_log_whose_first_days_are_being_built(tenant: UUID, last_day: str | None) -> None:
    TenantHealth.objects.update(last_day=last_day)
    for day in (YESTERDAY, YESTERDAY - dt.timedelta(days=1), None):
        PendingBuild.objects.create(tenant_id=tenant, day=day)
    verdict = read_verdict(tenant)
    assert (verdict.state, verdict.day) == (VerdictState.NOT_JUDGED_YET, YESTERDAY)
    assert verdict.text == "The log of the days up to 2026-11-24 is being summarised"
    # A day before the last that has requests is no news of later ones.
    PendingBuild.objects.update(tenant_id=uuid4())
    assert read_verdict(tenant).text == ("No log since Wednesday, 18 November" if last_day else "No log yet")


def test_a_log_that_could_not_be_read(tenant: UUID) -> None:
    TenantHealth.objects.update(last_day="2026-11-20")
    for day in ("2026-11-19", "2026-11-22", "2026-11-23"):
        Build.objects.create(tenant_id=tenant, period=day, state=Build.State.FAILED)
    read = "No log was read since Friday, 20 November: the build of Monday, 23 November failed"
    assert read_verdict(tenant).text == read
    PendingBuild.objects.create(tenant_id=tenant, day="2026-11-23")
    assert read_verdict(tenant).text == read
    PendingBuild.objects.create(tenant_id=tenant, day="2026-11-24")
    assert read_verdict(tenant).text == "The log of the days up to 2026-11-24 is being summarised"
    PendingBuild.objects.all().delete()
    Build.objects.filter(period__gt="2026-11-20").delete()
    assert read_verdict(tenant).text == "No log since Friday, 20 November"


def test_a_hit_rate_as_usual(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=40.1, usual=45.0)
    assert read_verdict(tenant).state is VerdictState.HEALTHY
    assert read_verdict(tenant).text == "Healthy"


def test_a_fall_without_a_known_cause(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=7.2, usual=42.9)
    verdict = read_verdict(tenant)
    assert (verdict.state, verdict.day) == (VerdictState.HIT_RATE_FELL, YESTERDAY)
    assert verdict.text == "Hit rate fell from 42.9% to 7.2% on Tuesday, 24 November"


def test_a_fall_has_a_first_day_once_earlier_digests_are_made(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=7.2, usual=42.9, cause="revision 2 (2026-11-24 10:00 UTC)")
    Digest.objects.update(made_at=dt.datetime.combine(TODAY, dt.time(8, 56), dt.UTC))
    verdict = read_verdict(tenant)
    assert verdict.state is VerdictState.HIT_RATE_FELL
    assert verdict.text == (
        "Hit rate fell from 42.9% to 7.2%; since when and why is not known yet, because the digests of "
        "earlier days are still being made"
    )
    make_digest(tenant, ago=2, rate=40.0, usual=42.9)
    told = "Hit rate fell from 42.9% to 7.2% on Tuesday, 24 November after revision 2"
    assert read_verdict(tenant).text == told
    # The log may begin with the fall.
    Digest.objects.filter(last_day__lt=YESTERDAY).delete()
    Digest.objects.update(made_at=dt.datetime.combine(TODAY, dt.time(8, 54), dt.UTC))
    assert read_verdict(tenant).text == told


def test_a_fall_after_a_revision_that_was_restored(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=42.0, usual=42.9)
    make_digest(tenant, ago=2, rate=7.2, usual=42.9, cause="revision 2 (2026-11-23 10:00 UTC)")
    write(tenant, 1, hours=-100)
    write(tenant, 2, hours=10)
    verdict = read_verdict(tenant)
    assert (
        verdict.text
        == "Hit rate fell from 42.9% to 7.2% on Monday, 23 November after revision 2, and has recovered"
    )
    # Neither another update nor the restore of the revision itself repairs it.
    write(tenant, 3, hours=11)
    write(tenant, 4, hours=12, action="restore", restored_from=2)
    assert read_verdict(tenant).text == verdict.text
    write(tenant, 5, hours=15.5, action="restore", restored_from=1)
    verdict = read_verdict(tenant)
    assert (
        verdict.text
        == "Hit rate fell from 42.9% to 7.2% on Monday, 23 November after revision 2, restored 6 hours later"
    )
    assert (verdict.state, verdict.is_bad) == (VerdictState.HIT_RATE_RECOVERED, False)


def test_the_worst_fall_of_a_week_is_told(tenant: UUID) -> None:
    for ago, rate in enumerate((40.0, 30.0, 40.0, 10.0, 40.0, 40.0, 40.0, 0.0), start=1):
        make_digest(tenant, ago=ago, rate=rate, usual=40.0)
    verdict = read_verdict(tenant)
    assert verdict.text == "Hit rate fell from 40.0% to 10.0% on Saturday, 21 November, and has recovered"
    assert verdict.state is VerdictState.HIT_RATE_RECOVERED
    # One that goes on is told before a deeper one that is over.
    Digest.objects.filter(period=YESTERDAY.isoformat()).delete()
    assert read_verdict(tenant).text == "Hit rate fell from 40.0% to 30.0% on Monday, 23 November"


def test_a_fall_that_began_before_the_week_is_told_from_its_first_day(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=40.0, usual=40.0)
    make_digest(tenant, ago=7, rate=30.0, usual=40.0)
    make_digest(tenant, ago=8, rate=6.5, usual=40.0, cause="revision 2 (2026-11-17 10:00 UTC)")
    make_digest(tenant, ago=9, rate=40.0, usual=40.0)
    make_digest(tenant, ago=10, rate=0.0, usual=40.0)
    verdict = read_verdict(tenant)
    assert verdict.text.startswith(
        "Hit rate fell from 40.0% to 6.5% on Tuesday, 17 November after revision 2"
    )
    assert verdict.state is VerdictState.HIT_RATE_RECOVERED


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
    (verdict,) = read_verdict(tenant).more
    told = "Hit rate fell from 30.0% to 2.0% on Thursday, 19 November after revision 2"
    assert (verdict.text, verdict.day) == (told, dt.date(2026, 11, 19))
    # The log ends before the restore, which nine minutes passed since.
    write(tenant, 3, hours=56.85, action="restore", restored_from=1)
    (verdict,) = read_verdict(tenant).more
    assert verdict.text == f"{told}; revision 3 restored revision 1, 9 minutes ago; no requests since"
    assert verdict.is_open
    TenantHealth.objects.update(last_day=TODAY)
    assert read_verdict(tenant).text == f"{told}; revision 3 restored revision 1, 9 minutes ago"


def test_a_fall_after_days_without_a_log_names_the_revision_of_these_days(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=7.0, usual=40.0)
    make_digest(tenant, ago=5, rate=40.0, usual=40.0)
    for seq, hours in enumerate((-90, -60, 12), start=1):
        write(tenant, seq, hours=hours)
    told = "Hit rate fell from 40.0% to 7.0% on Tuesday, 24 November after revision 3"
    assert read_verdict(tenant).text == told
    write(tenant, 4, hours=30, action="restore", restored_from=2)
    make_digest(tenant, ago=0, rate=9.0, usual=40.0)
    verdict = read_verdict(tenant)
    assert (verdict.text, verdict.is_open) == (f"{told}, restored 18 hours later, and is still down", True)


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        (("errors", "leaks"), "Requests failed in bursts on Tuesday, 24 November"),
        (
            ("stale", "leaks"),
            "Cached results that depend on the user went to several users on Tuesday, 24 November",
        ),
        (("stale",), "Hits were older than a change of a table that they read on Tuesday, 24 November"),
        (("publishes", "new-statements"), "Healthy"),
    ],
)
def test_what_the_last_digest_found(tenant: UUID, sections: tuple[str, ...], text: str) -> None:
    make_digest(tenant, ago=1, rate=42.0, usual=42.9, sections=sections)
    make_digest(tenant, ago=2, rate=42.0, usual=42.9, sections=("errors",))
    assert read_verdict(tenant).text == text


def test_a_fall_is_not_over_on_a_weekend_with_few_hits(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=0.0, usual=4.0)
    make_digest(tenant, ago=2, rate=0.0, usual=40.0)
    verdict = read_verdict(tenant)
    assert (verdict.state, verdict.text) == (
        VerdictState.HIT_RATE_FELL,
        "Hit rate fell from 40.0% to 0% on Monday, 23 November",
    )


def test_all_that_was_found_is_told_the_worst_first(tenant: UUID) -> None:
    make_digest(tenant, ago=2, rate=42.0, usual=42.9, sections=("errors", "leaks", "stale"))
    make_digest(tenant, ago=3, rate=10.0, usual=40.0)
    verdict = read_verdict(tenant)
    said = [verdict.text, *(sentence.text for sentence in verdict.more)]
    assert said == [
        "Requests failed in bursts on Monday, 23 November",
        "Cached results that depend on the user went to several users on Monday, 23 November",
        "Hits were older than a change of a table that they read on Monday, 23 November",
        "Not judged yet: there is no digest of Tuesday, 24 November yet",
        "Hit rate fell from 40.0% to 10.0% on Sunday, 22 November, and has recovered",
    ]
    TenantHealth.objects.update(last_day=YESTERDAY - dt.timedelta(days=1))
    verdict = read_verdict(tenant)
    assert (verdict.text, len(verdict.more)) == ("No log since Monday, 23 November", 4)


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
    told = "Cached results that depend on the user went to several users on Tuesday, 24 November"
    pay = {"id": "pay", "conditions": {"tables": {"containsAny": ["hr.*"]}}, "varyBy": ["userName"]}
    publish(1, SHARED)
    publish(2, pay, SHARED)
    verdict = read_verdict(tenant)
    assert (verdict.text, verdict.is_bad, len(verdict.open_findings)) == (told, True, 1)
    publish(3, pay, SHARED | {"conditions": {"not": {"standardizedSql": {"contains": "current_user"}}}})
    publish(4, pay, {"id": "mine", "varyBy": ["sessionId"]}, SHARED)
    note_findings(tenant)
    verdict = read_verdict(tenant)
    assert verdict.text == f"{told}, closed by revision 3: digests of the days after it no longer show this"
    assert (verdict.state, verdict.is_bad, find_open([tenant])) == (VerdictState.FINDING_CLOSED, False, {})
    # Other rules may open it again, so it stays noted.
    assert TenantHealth.objects.get().has_findings
    publish(5, pay, {"id": "mine", "enabled": False, "varyBy": ["userName"]}, SHARED)
    assert read_verdict(tenant).state is VerdictState.FINDING


def test_a_leak_is_not_closed_by_a_revision_of_before(tenant: UUID) -> None:
    leak(tenant, MINE)
    # The verdict reads the revisions since its first digest.
    make_digest(tenant, ago=5, rate=42.0, usual=42.9)
    write(tenant, 1, hours=-1)
    assert read_verdict(tenant).state is VerdictState.FINDING
    assert find_closed_of_days(tenant, YESTERDAY, YESTERDAY) is None
    write(tenant, 2, hours=1)
    verdict = read_verdict(tenant)
    assert "closed by revision 2" in verdict.text
    assert find_closed_of_days(tenant, YESTERDAY, YESTERDAY) == closed_by_rules(2, MINE)


def test_a_leak_is_closed_while_the_configuration_has_the_cache_off(tenant: UUID) -> None:
    def configure(seq: int, *, hours: float, enabled: bool) -> None:
        document = {"defaults": {"cacheEnabled": enabled, "ttlSeconds": 60}}
        write(tenant, seq, kind="config", hours=hours, document=document)

    leak(tenant, MINE)
    write(tenant, 1, hours=1, rules=[SHARED])
    configure(1, hours=-1, enabled=False)
    assert read_verdict(tenant).state is VerdictState.FINDING
    configure(2, hours=25, enabled=True)
    assert read_verdict(tenant).state is VerdictState.FINDING
    configure(3, hours=30, enabled=False)
    configure(4, hours=31, enabled=False)
    verdict = read_verdict(tenant)
    assert verdict.state is VerdictState.FINDING_CLOSED
    assert ", closed by revision 3 of the configuration: digests of the days after it" in verdict.text
    closed = find_closed_of_days(tenant, YESTERDAY, YESTERDAY)
    assert closed == ClosedLeaks(Closing(RevisionKind.CONFIG, 3), {"SELECT current_user()"})
    configure(5, hours=32, enabled=True)
    assert read_verdict(tenant).state is VerdictState.FINDING
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
    assert (read_verdict(tenant).state is VerdictState.FINDING_CLOSED) == is_closed
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
    assert bool(find_open([tenant])) == is_noted


def test_a_leak_of_which_the_digest_keeps_no_statements_stays_open(tenant: UUID) -> None:
    make_digest(tenant, ago=1, rate=42.0, usual=42.9, sections=("leaks",))
    write(tenant, 1, hours=30, rules=[])
    assert read_verdict(tenant).state is VerdictState.FINDING


def test_it_takes_five_queries_for_all_tenants(tenant: UUID) -> None:
    write(tenant, 2, hours=10)
    for ago in range(1, 7):
        make_digest(tenant, ago=ago, rate=7.0, usual=40.0, cause="revision 2 (2026-11-23 10:00 UTC)")
    other = uuid4()
    TenantHealth.objects.create(tenant_id=other, last_day=YESTERDAY - dt.timedelta(days=30))
    make_digest(other, ago=31, rate=7.0, usual=40.0)
    with CaptureQueriesContext(connection) as captured:
        verdicts = read_verdicts([tenant, other])
    # The last two are for the tenant whose log is late.
    assert len(captured) == 5
    assert verdicts[other].more[0].text == "Hit rate fell from 40.0% to 7.0% on Sunday, 25 October"
