"""The truth lies between the bounds: known literals are hidden, and rules are erased from their log."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from msgspec import structs

from analytics.demo.logs import read_demo
from analytics.replay.load import Gateway, Job, Ruleset
from rules.language import read_rules
from tests.analytics.replay.judge import judge
from tests.analytics.replay.streams import DAYS, FIRST, demo_rows, make_row, run_replay, write_days

if TYPE_CHECKING:
    from analytics.demo.profile import Profile

STREAMS = 100


@pytest.mark.parametrize("stale", [None, 1, 30])
def test_the_hits_of_hidden_requests_are_within_the_bounds(stale: int | None) -> None:
    for seed in range(STREAMS):
        chance = random.Random(seed)  # noqa: S311
        rule: dict[str, Any] = {"id": "c", "conditions": {"isReadOnly": True}}
        rule["ttlSeconds"] = chance.choice([1, 5, 20])
        if stale is not None:
            rule["staleWhileRevalidate"] = stale
        fire = {"id": "f", "conditions": {"isDataChange": True}, "invalidateRules": ["c"]}
        rules = read_rules([rule, fire])
        rows = keyed_rows(chance, chance.choice([10, 40, 100]))
        share = chance.choice([0.3, 1.0])
        hidden = [
            row | {"cacheKey": None, "queryHash": None} if chance.random() < share else row for row in rows
        ]
        counted = {FIRST.isoformat()}
        truth = judge(rows, rules=rules, counted=counted).counts["c"]["hits"]
        judgement = judge(hidden, rules=rules, counted=counted)
        assert judgement.counts["c"]["hits"] <= truth <= judgement.high_hits["c"], seed


def keyed_rows(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Return requests with keys for a few results that the warehouse gives at once: no request waits.

    A request that waits is no hit. So the truth may have fewer hits than the lower bound, by the requests
    that wait for an execution that a hidden request starts.
    """
    span = chance.choice([10_000, 60_000, 600_000])
    rows = []
    for _ in range(count):
        is_change = chance.random() < 0.05
        statement = chance.choice(["SELECT ?", "SELECT ?, ?"])
        rows.append(
            make_row(
                at=chance.randrange(span),
                standardizedSql="UPDATE t SET a = ?" if is_change else statement,
                isDataChange=is_change,
                isReadOnly=not is_change,
                cacheKey="k",
                queryHash=statement + chance.choice("abcd"),
                cacheStatus=chance.choice(["MISS"] * 9 + ["ERROR"]),
            )
        )
    return sorted(rows, key=lambda row: row["timestamp"])


def erase_rule(rows: list[dict[str, Any]], rule_id: str) -> list[dict[str, Any]]:
    """Return the log without a cache rule: what it decided passed through, and has no key."""
    times = mean_times(rows)
    erased = []
    for row in rows:
        if row["matchedRule"] == rule_id and row["cacheStatus"] in {"HIT", "MISS", "HOLD"}:
            statement = row["standardizedSql"]
            time = row["warehouseExecutionTimeMs"] if row["cacheStatus"] == "MISS" else times.get(statement)
            row = row | {
                "matchedRule": None,
                "cacheStatus": "PASSTHROUGH",
                "cacheKey": None,
                "queryHash": hashlib.sha256(statement.encode()).hexdigest(),
                "warehouseExecutionTimeMs": time,
            }
        erased.append(row)
    return erased


def mean_times(rows: list[dict[str, Any]]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for row in rows:
        if row["cacheStatus"] == "MISS" and row["warehouseExecutionTimeMs"] is not None:
            sums[row["standardizedSql"]] += row["warehouseExecutionTimeMs"]
            counts[row["standardizedSql"]] += 1
    return {statement: sums[statement] // count for statement, count in counts.items()}


def test_the_demo_is_replayed_as_it_was_while_its_rules_change(tmp_path: Path) -> None:
    profile = read_demo().profiles[0]
    assert profile.mistake is not None
    profile = structs.replace(
        profile, mistake=structs.replace(profile.mistake, published=2_000, restored=3_500)
    )
    calibration = replay_history(profile, tmp_path)["calibration"]
    assert (calibration["causes"], calibration["equal"]) == ([], calibration["rows"])
    assert "month-end" in {rule["ruleId"] for rule in calibration["rules"]}


@pytest.mark.slow
def test_a_rule_that_begins_to_vary_is_replayed_as_it_was(tmp_path: Path) -> None:
    """The log that is partly keyed per user agrees in every row, and nothing is learned of the Gateway."""
    profile = read_demo().profiles[1]
    assert profile.leak is not None
    profile = structs.replace(profile, leak=structs.replace(profile.leak, cured=2_400))
    result = replay_history(profile, tmp_path)
    calibration = result["calibration"]
    assert (calibration["causes"], calibration["equal"]) == ([], calibration["rows"])
    assert (calibration["share"], calibration["grade"]) == (1, "good")
    assert result["gateway"]["keysPerUser"] is False
    # Whether users share a result is what makes the difference.
    hits = {
        name: {rule["ruleId"]: rule["hits"]["low"] for rule in ruleset["rules"]}["billing"]
        for name, ruleset in replay_both(profile, tmp_path / "both").items()
    }
    assert hits["shared"] > hits["per user"] > 0


def replay_both(profile: Profile, directory: Path) -> dict[str, dict[str, Any]]:
    """Replay a log under the rules before and after a leak was cured."""
    shared, per_user = (read_rules(publication.rules) for publication in profile.publications(FIRST)[:2])
    files = write_days(demo_rows(profile, tenant_id="t", days=3, entries=6_000), directory)
    with duckdb.connect(config={"threads": 1}) as connection:
        result = run_replay(connection, Job(files, DAYS[1], DAYS[2], per_user, shared))
    return {"per user": result, "shared": result["against"]}


def replay_history(profile: Profile, directory: Path) -> dict[str, Any]:
    """Replay the log of a tenant of the demo with all its rulesets."""
    history = [
        Ruleset(publication.at, read_rules(publication.rules)) for publication in profile.publications(FIRST)
    ]
    files = write_days(demo_rows(profile, tenant_id="t", days=3, entries=6_000), directory)
    current = history[-1].rules
    job = Job(
        files,
        DAYS[1],
        DAYS[2],
        current,
        current,
        in_force=history,
        changes=[ruleset.starts_at for ruleset in history],
        gateway=Gateway(nocache=False, non_deterministic=False),
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        return run_replay(connection, job)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "is_cured"), [(0, False), (1, False), (1, True)])
def test_the_demo_is_replayed_as_it_was_and_erased_rules_are_within_the_bounds(
    number: int, tmp_path: Path, *, is_cured: bool
) -> None:
    profile = read_demo().profiles[number]
    if is_cured:
        profile = structs.replace(profile, leak=None)
    rules = read_rules(profile.publications(FIRST)[0].rules)
    rows = demo_rows(profile, tenant_id="t", days=3, entries=6_000)
    logged = Counter(
        row["matchedRule"]
        for row in rows
        if row["cacheStatus"] == "HIT" and row["day"] != DAYS[0].isoformat()
    )
    # The demo's Gateway never declines by itself.
    gateway = Gateway(nocache=False, non_deterministic=False)
    with duckdb.connect(config={"threads": 1}) as connection:

        def run(log: list[dict[str, Any]], name: str) -> dict[str, Any]:
            files = write_days(log, tmp_path / name)
            return run_replay(connection, Job(files, DAYS[1], DAYS[2], rules, rules, gateway=gateway))

        calibration = run(rows, "whole")["calibration"]
        assert calibration["causes"] == []
        assert calibration["equal"] == calibration["rows"]
        assert len(logged) >= 5
        for rule_id, truth in logged.items():
            result = run(erase_rule(rows, rule_id), rule_id)
            hits = {rule["ruleId"]: rule["hits"] for rule in result["rules"]}[rule_id]
            assert hits["low"] <= truth <= hits["high"], rule_id
