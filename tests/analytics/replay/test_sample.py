"""Samples of large logs: the exact counts lie within the bounds, and nothing depends on chance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.replay.figures import bounds_of, figures_of_replay, rows_of_replay
from analytics.replay.load import DayFile, Job
from analytics.replay.sample import Sampling
from analytics.replay.words import describe_notes, judge
from logs.layout import DAY_MS
from rules.language import read_rules
from tests.analytics.replay.streams import DAYS, SCHEMA, make_row, run_replay

KINDS: Final = ("zipf", "uniform", "heavy", "per-user", "bursts")
#: What is compared with the exact replay, and what its change is.
COUNTS: Final = ("hits", "savedMs", "misses", "spentMs")
SIZE: Final = 6_000


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def make_rules(ttl: int, *, vary: bool = False) -> Any:
    return read_rules(
        [
            {
                "id": f"r{number}",
                "name": f"Rule {number}",
                "conditions": {"isReadOnly": True, "tables": {"containsAny": [f"s.t{number}"]}},
                "ttlSeconds": ttl,
                **({"varyBy": ["userName"]} if vary else {}),
            }
            for number in range(2)
        ]
        + [
            {
                "id": "changes",
                "name": "Changes",
                "conditions": {"isDataChange": True},
                "invalidateRules": ["r0"],
            }
        ]
    )


def make_log(directory: Path, kind: str, seed: int, *, size: int = SIZE) -> Job:
    """Return a job of two days, the first of which fills the cache, with rules of two lifetimes."""
    chance = random.Random(seed)  # noqa: S311
    identities = chance.randint(size // 8, size // 3)
    power = chance.uniform(0.7, 1.1) if kind != "uniform" else 0
    weights = [(number + 1) ** -power for number in range(identities)]
    if kind == "heavy":
        weights[0] = sum(weights)
    times = [chance.randint(1, 4_000) for _ in range(identities)]
    rows = []
    for number, identity in enumerate(chance.choices(range(identities), weights, k=size)):
        ms = times[identity] * chance.randint(8, 12) // 10
        rows.append(
            make_row(
                at=chance.randrange(2 * DAY_MS),
                logId=f"id{number}",
                standardizedSql=f"SELECT * FROM s.t{identity % 3} WHERE kind = {identity % 40} AND id = ?",
                parameterValues=f"[{identity}]",
                cacheStatus=chance.choice(["HIT", "MISS", "PASSTHROUGH"]),
                warehouseExecutionTimeMs=ms,
                responseSize=identity,
                isReadOnly=True,
                isDataChange=False,
                tables=f'["s.t{identity % 3}"]',
                userName=f"user{chance.randrange(30)}",
            )
        )
    bursts = chance.sample(range(48), 6 if kind == "bursts" else 1)
    rows += [
        make_row(
            at=hour * DAY_MS // 24 + chance.randrange(60_000),
            logId=f"change{hour}-{number}",
            standardizedSql="INSERT INTO s.t0 VALUES (?)",
            parameterValues=f"[{hour}, {number}]",
            cacheStatus="BYPASS",
            warehouseExecutionTimeMs=40,
            isReadOnly=False,
            isDataChange=True,
            tables='["s.t0"]',
            userName="loader",
        )
        for hour in bursts
        for number in range(10)
    ]
    directory.mkdir()
    files = []
    for day in DAYS[:2]:
        path = directory / f"{day}.parquet"
        of_day = [row for row in rows if row["day"] == day.isoformat()]
        pq.write_table(pa.Table.from_pylist(sorted(of_day, key=lambda row: row["timestamp"]), SCHEMA), path)
        files.append(DayFile(day, str(path)))
    vary = kind == "per-user"
    return Job(
        files,
        DAYS[1],
        DAYS[1],
        subject=make_rules(chance.choice([3_600, 14_400, 43_200]), vary=vary),
        current=make_rules(chance.choice([600, 1_800]), vary=vary),
    )


def sampled(job: Job, seed: int = 0, **options: Any) -> Job:
    return replace(
        job,
        sampling=Sampling(
            str(seed), most=SIZE, **{"heaviest": 20, "weight": 0.2, "share": 0.1, "least": 15, **options}
        ),
    )


def compare(connection: duckdb.DuckDBPyConnection, directory: Path, kind: str, seed: int) -> dict[str, Any]:
    """Return whether each exact count and change is within its bounds, and how wide bounds of hits are."""
    job = make_log(directory, kind, seed)
    exact, sample = run_replay(connection, job), run_replay(connection, sampled(job, seed))
    assert "sample" not in exact
    assert sample["sample"]["share"] < 0.95
    found: dict[str, Any] = {}
    for name in COUNTS:
        truth = bounds_of(exact["total"], name)["low"]
        before = bounds_of(exact["against"]["total"], name)["low"]
        bounds = sample["total"]["sampled"][name]
        change = sample["sampledChanges"]["total"][name]
        found[name] = bounds["low"] <= truth <= bounds["high"]
        found[f"change of {name}"] = change["low"] <= truth - before <= change["high"]
    hits = sample["total"]["sampled"]["hits"]
    found["width"] = (hits["high"] - hits["low"]) / max(exact["total"]["hits"]["low"], 1)
    # Without a share of any other, these are exact.
    for name in ("fired", "markers"):
        assert sample["total"][name] == exact["total"][name]
    assert abs(sample["total"]["requests"] - exact["total"]["requests"]) <= 10
    return found


def check_bounds(connection: duckdb.DuckDBPyConnection, directory: Path, seeds: range) -> None:
    found = [compare(connection, directory / str(seed), KINDS[seed % len(KINDS)], seed) for seed in seeds]
    for name in found[0].keys() - {"width"}:
        inside = sum(one[name] for one in found)
        assert inside >= 0.95 * len(found), (name, inside)


@pytest.mark.slow
def test_exact_counts_lie_within_the_bounds(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    check_bounds(connection, tmp_path, range(25))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_exact_counts_of_400_logs_lie_within_the_bounds(
    part: int, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    check_bounds(connection, tmp_path, range(1_000 + 100 * part, 1_100 + 100 * part))


def test_a_sample_of_all_identities_counts_the_same(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    job = make_log(tmp_path / "log", "bursts", 1, size=600)
    exact = run_replay(connection, job)
    sample = run_replay(connection, sampled(job, heaviest=10_000))
    assert sample.pop("sample") == {
        "share": 1.0,
        "identities": sample["rows"]["decidable"] and len(identities_of(job)),
        "entries": exact["rows"]["decidable"],
    }
    # The bounds have no width.
    changes = sample.pop("sampledChanges")
    assert all(low == high for low, high in map(dict.values, changes["total"].values()))
    assert sample["caveats"].pop(sample["caveats"].index("sampled"))
    del exact["billed"]
    for counts in (
        sample["total"],
        *sample["rules"],
        sample["against"]["total"],
        *sample["against"]["rules"],
    ):
        assert all(one["low"] == one["high"] for one in counts.pop("sampled").values())
    for hour in (
        *sample["publishCost"]["byHour"],
        sample["publishCost"]["best"],
        sample["publishCost"]["now"],
    ):
        assert hour.pop("sampled")
    assert sample == exact


def test_a_log_of_few_identities_is_replayed_whole(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_log(tmp_path / "log", "bursts", 1, size=600)
    exact = run_replay(connection, job)
    entries = exact["rows"]["decidable"]
    assert run_replay(connection, sampled(job, heaviest=10_000, whole_up_to=entries)) == exact
    assert "sample" in run_replay(connection, sampled(job, heaviest=10_000, whole_up_to=entries - 1))
    monkeypatch.setattr("analytics.replay.sample._MOST", 1)
    assert "sample" in run_replay(connection, sampled(job, heaviest=10_000, whole_up_to=entries))


def identities_of(job: Job) -> set[tuple[str, str]]:
    """Return the exact identities of the counted day, and the statements that have others."""
    rows = pq.read_table(job.files[1].file, columns=["standardizedSql", "parameterValues"]).to_pylist()
    return {
        (
            row["standardizedSql"],
            "" if row["standardizedSql"].startswith("INSERT") else row["parameterValues"],
        )
        for row in rows
    }


def test_the_same_builds_give_the_same_result(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    job = make_log(tmp_path / "log", "zipf", 2, size=2_000)
    first, again, other = (
        msgspec.json.encode(run_replay(connection, sampled(job, seed))) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_leaks_are_found_on_all_entries(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    job = make_log(tmp_path / "log", "uniform", 3, size=600)
    add_rows(
        job,
        [
            make_row(
                at=DAY_MS + number,
                logId=f"leak{number}",
                standardizedSql=f"SELECT CURRENT_USER, {number // 2} FROM s.t9",
                isReadOnly=True,
                tables='["s.t9"]',
                userName=f"user{number}",
            )
            for number in range(20)
        ],
    )
    job = replace(job, subject=read_rules([{"id": "all", "name": "All", "conditions": {"isReadOnly": True}}]))
    leaks = run_replay(connection, sampled(job, heaviest=1, weight=0, least=1, share=0))["leaks"]
    assert leaks == run_replay(connection, job)["leaks"]
    assert leaks["begun"][0]["statements"] == 10


def test_requests_on_which_a_rule_fires_are_in_every_sample(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    job = make_log(tmp_path / "log", "uniform", 4, size=600)
    reads = {
        "conditions": {"tables": {"containsAny": ["s.t2"]}},
        "action": "bypass",
        "invalidateRules": ["r0"],
    }
    kept = [{"id": "r0", "name": "Rule 0", "conditions": {"isReadOnly": True}, "ttlSeconds": 600}]
    job = replace(job, subject=read_rules([{"id": "reads", "name": "Reads", **reads}, *kept]))
    sample = run_replay(connection, sampled(job, heaviest=1, weight=0, least=1, share=0))
    exact = run_replay(connection, job)
    assert sample["total"]["fired"] == exact["total"]["fired"] > 50
    assert sample["rules"][0]["requests"] == exact["rules"][0]["requests"]


def add_rows(job: Job, rows: list[dict[str, Any]]) -> None:
    """Add rows to the counted day."""
    file = job.files[1].file
    table = pa.concat_tables([pq.read_table(file, schema=SCHEMA), pa.Table.from_pylist(rows, SCHEMA)])
    pq.write_table(table, file)


def test_pages_say_that_counts_are_estimates(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    result = run_replay(connection, sampled(make_log(tmp_path / "log", "uniform", 5, size=2_000)))
    assert result["caveats"].count("sampled") == 1
    notes = describe_notes(result)
    share = round(100 * result["sample"]["share"], 1)
    assert any(note.startswith(f"Replayed were {share}% of the log entries: ") for note in notes)
    assert "would answer about " in judge(result).text
    figures = {figure.name: figure for figure in figures_of_replay(result)}
    assert "On the bill" not in figures
    assert figures["Hits"].text.startswith("≈ ")
    total = result["sampledChanges"]["total"]["hits"]
    assert figures["Hits"].note == f"bounds: {total['low']:,} to {total['high']:,} more"
    hits = rows_of_replay(result, {})[0].counts[1]
    bounds = result["total"]["sampled"]["hits"]
    assert (hits.name, hits.text) == ("Hits", f"≈ {result['total']['hits']['low']:,}")
    assert hits.note is not None
    assert bounds["low"] < result["total"]["hits"]["low"] < bounds["high"]
