"""``manage.py rebuild``: its bounds, its words, and that it may be stopped and run again."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from analytics.days import rebuild_day
from analytics.models import Kind
from analytics.rebuild import rebuild_period
from logs.compaction.build import compact_day
from logs.models import Partition
from tenantadmin.objectstore import StoreError
from tests.analytics.pipeline import TENANT
from tests.analytics.test_rebuild import document, entry, put

pytestmark = pytest.mark.django_db

DAYS = (date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3))


@pytest.fixture(autouse=True)
def _logs() -> None:
    for day in DAYS:
        put("00/a.json", entry(day), day=day)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("rebuild", *arguments)
    return capsys.readouterr().out.strip()


def test_everything_then_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    # Three days, their month, their year, the users.
    assert run(capsys) == "6 days and periods rebuilt."
    assert run(capsys) == "Everything is current."


def test_one_tenant_within_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    other = "99999999-2222-4333-8444-555555555555"
    assert run(capsys, "--tenant", other) == "Everything is current."

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
        (("--tenant", "x"), "invalid UUID value"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("rebuild", *arguments)


def test_it_goes_on_where_it_was_stopped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_on_the_second_day(store: Any, listing: Any, **options: Any) -> Any:
        if listing.day == DAYS[1]:
            raise StoreError("cannot read: Input/output error")
        return compact_day(store, listing, **options)

    with monkeypatch.context() as patch:
        patch.setattr("analytics.days.compact_day", fail_on_the_second_day)
        with pytest.raises(CommandError, match=r"Input/output error\. What was built stays"):
            call_command("rebuild")
    assert list(Partition.objects.values_list("day", flat=True)) == [DAYS[0]]
    built_at = Partition.objects.get().built_at

    assert run(capsys) == "5 days and periods rebuilt."
    assert Partition.objects.get(day=DAYS[0]).built_at == built_at
    assert Partition.objects.count() == 3


def test_a_day_that_a_worker_publishes_meanwhile_is_taken_in(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def publish_before_the_year(store: Any, *, tenant: Any, period: str, wait: bool) -> bool:
        if period == "2026" and period not in seen:
            put("01/late.json", entry(DAYS[0]), day=DAYS[0])
            assert rebuild_day(store, tenant=tenant, day=DAYS[0])
        seen.append(period)
        return rebuild_period(store, tenant=tenant, period=period, wait=wait)

    monkeypatch.setattr("analytics.management.commands.rebuild.rebuild_period", publish_before_the_year)
    # Three days and a month; then the month anew, the year, the users.
    assert run(capsys) == "7 days and periods rebuilt."
    assert seen == ["2026-01", "2026", "", "2026-01", "2026", ""]
    assert document(Kind.YEAR, "2026")["totalHits"] == 4
