"""``manage.py assess``: from files to the report, whose numbers a brute-force judge counts again."""

from __future__ import annotations

import csv
import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Account, Tenant
from analytics.assessments.removal import remove_old_assessments
from analytics.models import Assessment, Digest, ReplayRun
from analytics.replay.runs import describe_replay
from logs.models import Partition
from tenantadmin.lib.core.timestamps import epoch_ms
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.history.assessing import assess, replay
from tests.analytics.history.stream import Sent, as_csvlog, as_databricks, as_snowflake, make_stream
from tests.conftest import ApiClient
from tests.streams import body_of

pytestmark = pytest.mark.django_db(transaction=True)


def repeats(sent: list[Sent]) -> dict[str, float]:
    """Return the shares of statements that repeat one of at most an hour or a day before."""
    counted = {"hour": 0, "day": 0}
    last: dict[tuple[Any, ...], int] = {}
    for one in sorted(sent, key=lambda one: one.at):
        key, at = (one.text, json.dumps(one.values)), epoch_ms(one.at)
        if key in last:
            counted["hour"] += at - last[key] <= 3_600_000
            counted["day"] += at - last[key] <= 86_400_000
        last[key] = at
    return {name: count / len(sent) for name, count in counted.items()}


def billed_ms(sent: list[Sent], *, suspend: int = 300_000) -> int:
    """Return how long the warehouse was awake: all on one host."""
    total, until = 0, None
    for one in sorted(sent, key=lambda one: one.at):
        starts, ends = epoch_ms(one.at), epoch_ms(one.at) + one.ms + suspend
        if until is None or starts > until:
            total += ends - starts
            until = ends
        elif ends > until:
            total += ends - until
            until = ends
    return total


def test_the_numbers_of_the_report_are_those_of_the_stream(tmp_path: Path) -> None:
    sent = make_stream(600)
    path = tmp_path / "history.csv"
    path.write_bytes(as_snowflake(sent))
    report = assess(path, "--from", "snowflake", "--price", "3.00")
    days = sorted({one.at.date().isoformat() for one in sent})
    assert report["window"] == {"from": days[0], "to": days[-1]}
    assert report["read"] == {
        "rows": 600, "imported": 600, "resultCache": 0, "failed": 0, "truncated": 0, "unparsed": 0
    }  # fmt: skip
    assert report["repeats"] == repeats(sent)
    assert report["replay"]["rows"]["exact"] == 600
    assert report["bill"]["without"]["billedMs"] == dict.fromkeys(("low", "high"), billed_ms(sent))
    assert report["bill"]["without"]["money"] == {
        "currency": "USD",
        **dict.fromkeys(("low", "high"), f"{billed_ms(sent) * 3 / 3_600_000:.2f}"),
    }
    assert report["replay"]["calibration"]["share"] == 1
    assert report["url"].endswith(f"#/t/{report['tenantId']}/assessment")
    assert report["rules"] or report["notes"]


def test_of_a_large_history_the_last_days_are_replayed_whole_and_billed(
    tmp_path: Path, settings: Any
) -> None:
    sent = make_stream(4_000)[::10]
    path = tmp_path / "history.csv"
    path.write_bytes(as_snowflake(sent))
    counts = Counter(one.at.date() for one in sent)
    *_, before, last = sorted(counts)
    settings.REPLAY_EXACT_ROWS = counts[before] + counts[last]
    report = assess(path, "--from", "snowflake", "--price", "3.00")
    assert report["replay"]["window"]["from"] == before.isoformat()
    assert report["replay"]["rows"]["decidable"] == counts[before] + counts[last]
    assert report["bill"]["days"] == (last - before).days + 1
    # A day alone is never cut.
    settings.REPLAY_EXACT_ROWS = 1
    report = assess(path, "--from", "snowflake", "--price", "3.00")
    assert report["replay"]["rows"]["decidable"] == counts[last]
    assert report["bill"]["without"]["billedMs"]["low"] > 0


def test_the_same_files_twice_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_bytes(as_databricks(make_stream(300)))
    before = assess(path, "--from", "databricks", "--owner", "ana@example.org")
    builds = list(Partition.objects.values_list("day", "build"))
    after = assess(path, "--from", "databricks", "--owner", "ana@example.org")
    assert after == before
    assert list(Partition.objects.values_list("day", "build")) == builds
    assert Tenant.objects.assessments().count() == 1
    # More files of the same assessment are added; what both have is there once.
    more = tmp_path / "more.json"
    more.write_bytes(as_databricks(make_stream(310)))
    arguments = ("--from", "databricks", "--owner", "ana@example.org", "--as", "databricks: history.json")
    read = assess(path, more, *arguments)["read"]
    assert read == before["read"] | {"rows": 610, "imported": 310}


def test_an_assessment_is_no_tenant_of_a_gateway(tmp_path: Path, world: factories.World) -> None:
    path = tmp_path / "history.csv"
    path.write_bytes(as_csvlog(make_stream(300)))
    report = assess(path, "--from", "postgresql", "--owner", world.owner.email)
    tenant = UUID(report["tenantId"])
    account = Account.objects.get(tenants=tenant)
    assert (account.name, account.plan) == ("assessments", "team")
    assert [user.email for user in account.owners.all()] == [world.owner.email]
    client = ApiClient(factories.sign_in(world.owner))
    for listing in ("/config/tenants", "/config/tenants/manifest"):
        listed = json.dumps(body_of(client.get(listing)))
        assert str(world.tenant.pk) in listed
        assert str(tenant) not in listed
    assert client.get(f"/config/tenants/{tenant}/config").json()["kind"] == "assessment"
    assert "kind" not in client.get(f"/config/tenants/{world.tenant.pk}/config").json()
    assert not Digest.objects.filter(tenant_id=tenant).exists()

    assert client.delete(f"/config/tenants/{tenant}").status_code == 200
    assert not Tenant.objects.filter(pk=tenant).exists()
    assert list(default_store().list(f"{tenant}/")) == []
    for model in (Partition, Assessment, ReplayRun):
        assert not model.objects.filter(tenant_id=tenant).exists()


def test_an_old_assessment_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_bytes(as_snowflake(make_stream(200)))
    tenant = UUID(assess(path, "--from", "snowflake")["tenantId"])
    remove_old_assessments()
    assert Tenant.objects.filter(pk=tenant).exists()
    row = Assessment.objects.get(pk=tenant)
    row.created_at = row.created_at.replace(year=2025)
    row.save()
    remove_old_assessments()
    assert not Tenant.objects.filter(pk=tenant).exists()
    assert not Assessment.objects.exists()
    assert list(default_store().list(f"{tenant}/")) == []


def test_what_cannot_be_read_leaves_nothing(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_bytes(as_snowflake(make_stream(200)))
    bad.write_bytes(b"QUERY_TEXT\nx\n")
    with pytest.raises(CommandError, match="has no column START_TIME"):
        assess(good, bad, "--from", "snowflake")
    with pytest.raises(CommandError, match="There is no file"):
        assess(tmp_path / "none", "--from", "snowflake")
    assert not Tenant.objects.exists()
    assert not Assessment.objects.exists()


def test_the_metering_is_compared_by_warehouse_and_day(tmp_path: Path) -> None:
    sent = [one for one in make_stream(600) if one.at.day == 1]
    path, metering = tmp_path / "history.csv", tmp_path / "metering.csv"
    path.write_bytes(as_snowflake(sent))
    hours = billed_ms(sent) / 3_600_000
    metering.write_text(
        "START_TIME,WAREHOUSE_NAME,CREDITS_USED_COMPUTE\n"
        f"2026-03-01 07:00:00Z,WH,{hours:.6f}\n2026-03-01 08:00:00Z,WH,{hours:.6f}\n"
        "2026-03-01 08:00:00Z,OTHER,1\n"
    )
    rows = assess(path, "--from", "snowflake", "--metering", metering)["bill"]["metering"]
    assert [(row["host"], row["day"], row["modelMs"]) for row in rows] == [
        ("OTHER", "2026-03-01", 0),
        ("WH", "2026-03-01", billed_ms(sent)),
    ]
    assert rows[0]["why"] == ["no-statement-in-history", "size-unknown"]
    assert (round(rows[1]["ratio"], 3), rows[1]["why"]) == (2.0, ["work-past-this-history"])


def count_hits(sent: list[Sent], *, ttl_ms: int) -> int:
    """Return the hits of a rule that caches all that reads: an entry is born when its execution ends."""
    hits = 0
    entries: dict[tuple[Any, ...], int] = {}
    running: dict[tuple[Any, ...], int] = {}
    for one in sorted(sent, key=lambda one: one.at):
        if one.kind != "SELECT":
            continue
        key, at = (one.text, json.dumps(one.values)), epoch_ms(one.at)
        if key in running and running[key] <= at:
            entries[key] = running.pop(key)
        if key in entries and at < entries[key] + ttl_ms:
            hits += 1
        elif key not in running:
            running[key] = at + one.ms
    return hits


def test_replayed_hits_are_those_of_a_judge_and_absent_columns_are_named(tmp_path: Path) -> None:
    sent = make_stream(600)
    path = tmp_path / "history.csv"
    path.write_bytes(as_snowflake(sent))
    tenant = UUID(assess(path, "--from", "snowflake")["tenantId"])
    days = sorted({one.at.date() for one in sent})
    reads = {"isReadOnly": True, "clientIp": {"exists": False}}
    run = replay(
        tenant, [{"id": "all", "conditions": reads, "ttlSeconds": 7200}], first=days[0], last=days[-1]
    )
    assert run.result is not None
    expected = count_hits(sent, ttl_ms=7_200_000)
    assert expected > 20
    hits = run.result["total"]["hits"]
    assert (hits["low"], hits["high"]) == (expected, expected)
    assert run.result["window"]["absentColumns"] == ["clientIp"]
    assert run.result["window"]["daysLeftOut"] == []
    assert "columns-absent" in run.result["caveats"]
    notes = describe_replay(run)["notes"]
    assert any("has nothing for clientIp" in note for note in notes)


def test_what_the_warehouse_cached_itself_takes_no_time_and_wakes_nothing(tmp_path: Path) -> None:
    sent = [one for one in make_stream(600) if one.kind == "SELECT"]
    own = {number for number in range(len(sent)) if number % 5 == 4}
    lines = list(csv.reader(as_snowflake(sent).decode().splitlines(keepends=True)))
    header = lines[0]
    for number in own:
        for name, value in (("WAREHOUSE_SIZE", ""), ("BYTES_SCANNED", "0"), ("EXECUTION_TIME", "40")):
            lines[number + 1][header.index(name)] = value
    path = tmp_path / "history.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(lines)
    report = assess(path, "--from", "snowflake")
    executed = [one for number, one in enumerate(sent) if number not in own]
    assert report["read"]["resultCache"] == len(own)
    assert report["bill"]["without"]["billedMs"]["high"] == billed_ms(executed)
    assert report["replay"]["rows"]["decidable"] == len(sent)


def test_each_warehouse_may_have_its_price(tmp_path: Path) -> None:
    sent = make_stream(300)
    lines = list(csv.reader(as_snowflake(sent).decode().splitlines(keepends=True)))
    place = lines[0].index("WAREHOUSE_NAME")
    for number, line in enumerate(lines[1:]):
        line[place] = ("LOADING", "BI", "IDLE")[number % 3]
    path = tmp_path / "history.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(lines)
    prices = ("--price", "LOADING=6.5", "--price", "3", "--price", "IDLE=0")
    report = assess(path, "--from", "snowflake", *prices)
    awake = [billed_ms(sent[number::3]) for number in range(3)]
    without = report["bill"]["without"]
    assert without["billedMs"]["low"] == sum(awake)
    expected = (awake[0] * 65 + awake[1] * 30) / 36_000_000
    assert without["money"] == {"currency": "USD", **dict.fromkeys(("low", "high"), f"{expected:.2f}")}
    with pytest.raises(CommandError, match="'=3' names no warehouse"):
        assess(path, "--from", "snowflake", "--price", "=3")


def test_people_read_the_report(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_bytes(as_snowflake(make_stream(400)))
    out = StringIO()
    call_command("assess", str(path), "--from", "snowflake", stdout=out, stderr=StringIO())
    text = " ".join(out.getvalue().split())
    for part in (
        "400 statements read",
        "repeat within an hour",
        "Saved in a month:",
        "Not known without the column client_application_id: rules by the client.",
        "A real Gateway may",
        "run this again with --owner EMAIL",
    ):
        assert part in text
    # The rows of the table add up.
    rows = [line.strip("│").split("│") for line in out.getvalue().splitlines() if line.startswith("│")]
    *others, total = [int(row[1]) for row in rows]
    assert rows[-2][0].strip() == "no rule"
    assert sum(others) == total
    out = StringIO()
    owner = ("--owner", "ann@example.org")
    call_command("assess", str(path), "--from", "snowflake", *owner, stdout=out, stderr=StringIO())
    assert "start the service (make run) and sign in as ann@example.org." in out.getvalue()
