"""A real PostgreSQL is driven for some seconds; what its logs give is what was sent.

``HISTORY_SECONDS=600`` drives it longer. ``HISTORY_POSTGRESQL=/usr/lib/postgresql/15/bin`` takes another
release.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from analytics.history import entries
from analytics.history.rows import Source
from analytics.replay.figures import count_requests
from tenantadmin.run import embedded
from tenantadmin.run.embedded import postgresql
from tenantadmin.run.embedded.layout import PORT, USER, Layout, postgresql_program
from tests.analytics.history.assessing import assess

pytestmark = pytest.mark.django_db(transaction=True)

LOGGING = {
    "logging_collector": "on",
    "log_destination": "csvlog,jsonlog",
    "log_filename": "history.log",
    "log_file_mode": "0644",
    "log_min_duration_statement": "0",
    "log_parameter_max_length": "-1",
}
SECONDS = float(os.environ.get("HISTORY_SECONDS", "2"))
PROGRAMS = os.environ.get("HISTORY_POSTGRESQL")


def program(name: str) -> Path:
    """Return the path of a program of the chosen release. Clients that it lacks are of the usual one."""
    found = Path(PROGRAMS or "") / name
    return found if PROGRAMS and found.exists() else postgresql_program(name)


def set_up_earlier_release(folder: Path) -> Path:
    """Write an initdb that leaves out the locale provider, which releases before 17 do not know."""
    script = folder / "initdb"
    script.write_text(
        f"""#!/bin/sh
for argument; do
    shift
    case $argument in
        --locale-provider | builtin | --builtin-locale | C.UTF-8) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {PROGRAMS}/initdb "$@"
"""
    )
    script.chmod(0o755)
    return script


#: Of pgbench, in a prepared statement: bound values are in DETAIL.
LOOKUP = "SELECT name FROM sales.people WHERE id = :id AND name <> 'x';"
LOOKED_UP = "SELECT name FROM sales.people WHERE id = ? AND name <> ?"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Layout]:
    monkeypatch.setattr(postgresql, "_NOT_DURABLE", {**postgresql._NOT_DURABLE, **LOGGING})
    if PROGRAMS:
        initdb = set_up_earlier_release(tmp_path)
        monkeypatch.setattr(
            postgresql, "postgresql_program", lambda name: initdb if name == "initdb" else program(name)
        )
    with embedded.running(tmp_path / "var", database=True, redis=False, durable=False):
        yield Layout((tmp_path / "var").absolute())


def connect(layout: Layout, user: str = USER, **more: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=str(layout.socket_dir), port=PORT, user=user, dbname="postgres", autocommit=True, **more
    )


def drive(layout: Layout) -> list[tuple[str, list[Any], str]]:
    """Send statements of two users for some seconds. Return each with its values, bound ones as texts."""
    chance = random.Random(3)  # noqa: S311
    sent: list[tuple[str, list[Any], str]] = []
    with connect(layout) as admin:
        for text in (
            "CREATE SCHEMA sales",
            "CREATE TABLE sales.orders (id int, region text)",
            "CREATE TABLE sales.people (id int, name text)",
            "CREATE ROLE ana LOGIN SUPERUSER",
            "CREATE ROLE bo LOGIN SUPERUSER",
        ):
            admin.execute(text)
    sessions = {
        user: connect(layout, user, application_name="starter", prepare_threshold=3) for user in ("ana", "bo")
    }
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        user = chance.choice(["ana", "bo"])
        session, number = sessions[user], chance.randrange(20)
        region = chance.choice(["it's", "north", "süd"])
        match chance.randrange(4):
            case 0:
                session.execute("SELECT count(*) FROM sales.orders WHERE region = %s LIMIT 5", [region])
                sent.append(("SELECT count(*) FROM sales.orders WHERE region = ? LIMIT ?", [region, 5], user))
            case 1:
                session.execute(f"SELECT *\n  FROM sales.orders -- now\n WHERE id = {number}")
                sent.append(("SELECT * FROM sales.orders WHERE id = ?", [number], user))
            case 2:
                session.execute("INSERT INTO sales.orders VALUES (%s, 'x')", [number])
                sent.append(("INSERT INTO sales.orders VALUES (?, ?)", [str(number), "x"], user))
            case 3:
                session.execute("SELECT sum(id) FROM sales.orders")
                sent.append(("SELECT sum(id) FROM sales.orders", [], user))
    for session in sessions.values():
        session.close()
    return sent


def drive_by_pgbench(layout: Layout, folder: Path, *, mode: str) -> int:
    """Let two clients look people up for a while; return how often they did."""
    script = folder / f"{mode}.sql"
    script.write_text(f"\\set id random(1, 20)\n{LOOKUP}\n")
    done = subprocess.run(
        [
            *(program("pgbench"), "-h", str(layout.socket_dir), "-p", str(PORT), "-U", "bo"),
            *("-n", "-c", "2", "-T", str(max(1, round(SECONDS / 4))), "-R", "200", "-M", mode),
            *("-f", str(script), "postgres"),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    (count,) = re.findall(r"transactions actually processed: (\d+)", done.stdout)
    return int(count)


def count_repeats(entries: list[dict[str, Any]]) -> dict[str, float]:
    """Return the shares of entries that an equal one began an hour or a day before, at most."""
    times: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for entry in entries:
        times[entry["standardizedSql"], entry["parameterValues"]].append(entry["timestamp"])
    gaps = [
        later - earlier
        for found in times.values()
        for earlier, later in zip(sorted(found), sorted(found)[1:], strict=False)
    ]
    limits = {"hour": 3_600_000, "day": 86_400_000}
    return {name: sum(gap <= most for gap in gaps) / len(entries) for name, most in limits.items()}


def read_log(path: Path) -> list[tuple[str, int, int]]:
    """Return user, beginning and duration (µs) of what a csvlog says was executed, by another reader."""
    found = []
    with path.open(newline="") as stream:
        for record in csv.reader(stream):
            if "statement: " in record[13] or "execute " in record[13]:
                ended = datetime.strptime(record[0], "%Y-%m-%d %H:%M:%S.%f %Z")  # noqa: DTZ007
                took = round(float(record[13].split(" ms")[0].removeprefix("duration: ")) * 1000)
                ended_us = round((ended - datetime(1970, 1, 1)).total_seconds() * 1_000_000)  # noqa: DTZ001
                found.append((record[1], ended_us - took, took))
    return found


def test_the_report_is_of_what_was_sent(
    server: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "_MINUTE_MS", 0)
    sent = drive(server)
    looked_up = sum(drive_by_pgbench(server, tmp_path, mode=mode) for mode in ("simple", "prepared"))
    time.sleep(0.5)
    folder = server.postgresql_data / "log"
    reports = {}
    for name in ("csv", "json"):
        copy = tmp_path / f"history.{name}"
        copy.write_bytes((folder / f"history.{name}").read_bytes())
        reports[name] = assess(copy, "--from", "postgresql", "--price", "1.00", "--as", name)

    logged = [one for one in read_log(tmp_path / "history.csv") if one[0] in {"ana", "bo"}]
    assert len(logged) - looked_up == len(sent) > 100
    for name, report in reports.items():
        stored = [entry for entry in read_entries(tmp_path, name) if entry["userName"] in {"ana", "bo"}]
        by_pgbench = [entry for entry in stored if entry["standardizedSql"] == LOOKED_UP]
        assert len(by_pgbench) == looked_up > 10
        assert {int(json.loads(entry["parameterValues"])[0]) for entry in by_pgbench} <= set(range(1, 21))
        assert sorted(
            (entry["standardizedSql"], json.loads(entry["parameterValues"]), entry["userName"])
            for entry in stored
            if entry["standardizedSql"] != LOOKED_UP
        ) == sorted(sent)
        assert sorted(
            (entry["userName"], entry["timestamp"], entry["warehouseExecutionTimeMs"]) for entry in stored
        ) == sorted((user, starts // 1000, (took + 500) // 1000) for user, starts, took in logged)
        assert {entry["tables"] for entry in stored} == {
            '["postgres.sales.orders"]',
            '["postgres.sales.people"]',
        }
        everything = read_log(tmp_path / "history.csv")
        read = report["read"]
        assert (read["rows"], read["imported"]) == (len(everything), len(everything))
        assert (read["failed"], read["unparsed"]) == (0, 0)
        assert report["repeats"] == count_repeats(read_entries(tmp_path, name))
        assert count_requests(report["replay"]["total"]) == read["rows"]
        # A server of one's own is billed all day.
        days = report["bill"]["days"]
        assert report["bill"]["without"]["billedMs"] == dict.fromkeys(("low", "high"), days * 86_400_000)
        assert report["bill"]["saved"]["money"]["high"] == "0.00"
    assert reports["csv"]["read"] == reports["json"]["read"]
    assert reports["csv"]["repeats"] == reports["json"]["repeats"]


def read_entries(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    """Return what the reader makes of a log."""
    folder = tmp_path / f"tree-{name}"
    if not folder.exists():
        path, choices = tmp_path / f"history.{name}", entries.Choices(source=Source.POSTGRESQL)
        list(
            entries.write_entries(
                path,
                choices,
                digest=choices.digest(path),
                directory=folder,
                now_ms=round(time.time() * 1000),
            )
        )
    return [json.loads(line) for file in folder.rglob("*.json") for line in file.read_bytes().splitlines()]
