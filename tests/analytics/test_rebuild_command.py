"""``manage.py rebuild``: its options and output, and that it can be stopped and run again."""

from __future__ import annotations

import json
import os
import shutil
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Tenant
from analytics.models import DayRollup, Kind, MergedRollup
from analytics.numbers.days import rebuild_day
from analytics.numbers.documents import month_document
from analytics.numbers.periods import find_stale_periods, rebuild_period
from analytics.numbers.state import mark_missing_objects
from logs.compaction.build import compact_day
from logs.models import Partition
from tenantadmin.lib.objectstore import StoreError, default_store
from tests.analytics.builds import TENANT, document, entry, put
from tests.factories import make_account, make_tenant
from tests.objects import save_object

pytestmark = pytest.mark.django_db

DAYS = (date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3))


@pytest.fixture(autouse=True)
def _logs() -> None:
    for day in DAYS:
        put("00/a.json", entry(day), day=day)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("rebuild", *arguments)
    return capsys.readouterr().out.strip()


def test_the_first_run_builds_everything_and_the_second_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    # Three days, their month, their year, and the document of all users.
    assert run(capsys) == "6 days and periods rebuilt."
    assert run(capsys) == "Everything is current."


def test_only_the_days_of_one_tenant_within_the_bounds_are_built(capsys: pytest.CaptureFixture[str]) -> None:
    account = make_account()
    Tenant.objects.create(pk=TENANT, account=account)
    other = make_tenant(account)
    assert run(capsys, "--tenant", str(other.pk)) == "Everything is current."

    run(capsys, "--tenant", str(TENANT), "--from", "2026-01-02", "--to", "2026-01-02")
    assert list(Partition.objects.values_list("day", flat=True)) == [DAYS[1]]
    run(capsys, "--from", "2026-01-03")
    assert list(Partition.objects.order_by("day").values_list("day", flat=True)) == [DAYS[1], DAYS[2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "2026-02-30"), "'2026-02-30' is no day"),
        (("--to", "yesterday"), "'yesterday' is no day"),
        (("--from", "2026-01-02", "--to", "2026-01-01"), "--from 2026-01-02 is after --to 2026-01-01"),
        (("--tenant", "x"), "'x' is no tenant's id"),
    ],
)
def test_errors_name_the_invalid_argument(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("rebuild", *arguments)


@pytest.mark.parametrize(
    "failure",
    [StoreError("cannot read: Input/output error"), ValueError("[1] offset overflow")],
    ids=["store", "unexpected"],
)
def test_a_failing_day_is_reported_and_does_not_stop_the_others(
    failure: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = UUID("99999999-2222-4333-8444-555555555555")
    save_object(default_store(), f"{other}/logs/2026/01/03/00/a.json", json.dumps(entry(DAYS[2])).encode())

    def fail_on_the_second_day(store: Any, listing: Any, **options: Any) -> Any:
        if listing.day == DAYS[1]:
            raise failure
        return compact_day(store, listing, **options)

    place = f"{TENANT} 2026-01-02: {type(failure).__name__}: {failure}"
    with monkeypatch.context() as patch:
        patch.setattr("analytics.numbers.days.compact_day", fail_on_the_second_day)
        with pytest.raises(CommandError) as told:
            call_command("rebuild")
    assert str(told.value) == (
        f"9 days and periods rebuilt, 1 not:\n{place}\nFinished builds are kept. Run the command again."
    )
    assert place in capsys.readouterr().err
    assert set(Partition.objects.values_list("tenant_id", "day")) == {
        (TENANT, DAYS[0]),
        (TENANT, DAYS[2]),
        (other, DAYS[2]),
    }
    assert document(Kind.YEAR, "2026")["totalHits"] == 2
    built_at = Partition.objects.get(day=DAYS[0]).built_at

    assert run(capsys) == "4 days and periods rebuilt."
    assert Partition.objects.get(day=DAYS[0]).built_at == built_at
    assert document(Kind.YEAR, "2026")["totalHits"] == 3


def test_a_failing_period_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("00/a.json", entry(date(2026, 2, 1)), day=date(2026, 2, 1))

    def fail_on_january(own: Any, *, month: int) -> Any:
        if month == 1:
            raise ValueError("no such month")
        return month_document(own, month=month)

    with monkeypatch.context() as patch:
        patch.setattr("analytics.numbers.periods.month_document", fail_on_january)
        with pytest.raises(CommandError) as told:
            call_command("rebuild")
    assert str(told.value) == (
        "5 days and periods rebuilt, 3 not:\n"
        f"{TENANT} 2026-01: ValueError: no such month\n"
        f"{TENANT} 2026: Busy: 2026-01 of tenant {TENANT} is not current yet\n"
        f"{TENANT} users: Busy: 2026 of tenant {TENANT} is not current yet\n"
        "Finished builds are kept. Run the command again."
    )
    assert capsys.readouterr().err.count("no such month") == 1
    assert document(Kind.MONTH, "2026-02")["totalHits"] == 1

    assert run(capsys) == "3 days and periods rebuilt."


def test_lost_rollups_are_built_again_in_one_run(
    capsys: pytest.CaptureFixture[str], object_store: Path
) -> None:
    run(capsys)
    (object_store / DayRollup.objects.get(day=DAYS[0]).files["statements"]).unlink()
    (object_store / MergedRollup.objects.get(period="2026-01").files["hours"]).write_bytes(b"PAR1")
    put("01/late.json", entry(DAYS[1]), day=DAYS[1])

    # The day of the late object, the day of the lost rollups, their month and year, and all users.
    assert run(capsys) == "5 days and periods rebuilt."
    assert document(Kind.YEAR, "2026")["totalHits"] == 4
    assert run(capsys) == "Everything is current."


@pytest.mark.slow
@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
def test_everything_except_raw_logs_can_be_built_again(
    inline_bytes: int,
    capsys: pytest.CaptureFixture[str],
    object_store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("analytics.numbers.store.INLINE_BYTES", inline_bytes)
    run(capsys)
    own = object_store / str(TENANT)
    for folder in ("compacted", "rollups"):
        shutil.rmtree(own / folder)

    assert run(capsys) == "6 days and periods rebuilt."
    assert document(Kind.DAY, "2026-01-01")["totalHits"] == 1
    assert document(Kind.YEAR, "2026")["totalHits"] == 3
    assert run(capsys) == "Everything is current."

    # Truncated objects, as after a full disk or an interrupted copy.
    for path in (file for folder in ("compacted", "rollups") for file in (own / folder).rglob("*.*")):
        os.truncate(path, path.stat().st_size // 2)
    assert run(capsys) == "6 days and periods rebuilt."
    assert document(Kind.DAY, "2026-01-01")["totalHits"] == 1
    assert run(capsys) == "Everything is current."

    # Without raw logs, the store counts as unreachable, so nothing counts as lost.
    shutil.rmtree(own)
    mark_missing_objects(default_store(), tenant=TENANT)
    assert find_stale_periods(tenant=TENANT) == []


def test_a_day_that_a_worker_publishes_during_the_run_is_included(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def publish_before_the_year(store: Any, *, tenant: Any, period: str, **options: Any) -> bool:
        if period == "2026" and period not in seen:
            put("01/late.json", entry(DAYS[0]), day=DAYS[0])
            assert rebuild_day(store, tenant=tenant, day=DAYS[0])
        seen.append(period)
        return rebuild_period(store, tenant=tenant, period=period, **options)

    monkeypatch.setattr("analytics.management.commands.rebuild.rebuild_period", publish_before_the_year)
    # Three days with their month, year and users, then these again with the late entry.
    assert run(capsys) == "9 days and periods rebuilt."
    assert seen == ["2026-01", "2026", "", "2026-01", "2026", ""]
    assert document(Kind.YEAR, "2026")["totalHits"] == 4
