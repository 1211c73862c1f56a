"""What is recommended for logs whose best ruleset is known, and beside an exhaustive search."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pytest

from analytics.advice.estimate import RISK_CAP, estimate
from analytics.advice.kinds.cache import find_options
from analytics.advice.measure import Measurer, SignedBounds
from analytics.advice.mine import MAX_PROPOSALS, read_current
from analytics.advice.proposal import MIN_SHARE, Current, RuleEdit, apply_edits
from analytics.demo.logs import read_demo
from analytics.replay.load import Job
from rules.language import complete_rule, read_rules
from rules.tables.warehouse import ANY_TABLES
from tests.analytics.advice.logs import Arrival, change, make_log, office_traffic, read
from tests.analytics.advice.searching import (
    Rules,
    cached,
    check_promises,
    firing,
    make_job,
    replay_of,
    run,
    run_log,
    the,
    times,
    with_it,
)
from tests.analytics.replay.streams import FIRST, demo_rows, make_row, write_days

if TYPE_CHECKING:
    from analytics.advice.mine import Advice
    from analytics.replay.load import DayFile
    from rules.language import Rule


def test_a_rule_without_invalidation_gets_a_rule_that_fires(tmp_path: Path) -> None:
    reads = [read("SELECT count(*) FROM s.orders WHERE x = ?", "s.orders", at=at) for at in times(3, 10)]
    writes = [change("s.orders", at=at) for at in times(3, 480, offset=35)]
    files, rules, advice = run_log(tmp_path, reads + writes, [cached("orders", "s.orders")])
    found = the(advice, "invalidator")
    assert found["patch"] == [
        {
            "op": "insert",
            "ruleId": "orders-changes",
            "before": None,
            "rule": complete_rule(
                {
                    "id": "orders-changes",
                    "name": "Changes make orders stale",
                    "conditions": {"isDataChange": True, "tables": {"containsAny": ["s.orders"]}},
                    "invalidateRules": ["orders"],
                }
            ),
        }
    ]
    before, after = found["predicted"]["against"]["risk"], found["predicted"]["total"]["risk"]
    assert (before["low"] > 100, after) == (True, {"low": 0, "high": 0})
    check_promises(files, rules, advice)


def test_a_comment_that_changes_hides_nothing(tmp_path: Path) -> None:
    """dbt-databricks writes an id into each statement, which is new in each run."""

    def search(comment: str, folder: str) -> Advice:
        texts = ["SELECT a FROM s.orders WHERE x = ?", 'SELECT b FROM s.orders WHERE "--" = ?']
        reads = [
            read(f"{comment.format(at)}{text}", "s.orders", at=at, ms=5000)
            for at in times(3, 10)
            for text in texts
        ]
        (tmp_path / folder).mkdir()
        files, rules, advice = run_log(tmp_path / folder, reads, [])
        check_promises(files, rules, advice)
        return advice

    plain = search("", "plain")
    varied = search('/* {{"app": "dbt", "invocation_id": "{}"}} */ ', "varied")
    (found,), (expected,) = varied.recommendations, plain.recommendations
    assert found["patch"] == expected["patch"]
    assert found["predicted"] == expected["predicted"]
    assert varied.report.caveats is not None
    assert plain.report.caveats is not None
    assert {*varied.report.caveats} - {*plain.report.caveats} == {"comments-vary"}
    # The same comment each time does no harm, and a hint may change the result.
    assert search("/* dbt */ ", "same").report.caveats == plain.report.caveats
    assert search("/*+ hint({}) */ ", "hints").recommendations == []


def test_a_rule_with_the_same_conditions_is_extended(tmp_path: Path) -> None:
    reads = [
        read(f"SELECT count(*) FROM s.orders WHERE {name} = ?", "s.orders", at=at)
        for at in times(3, 10)
        for name in ("x", "y")
    ]
    writes = [change("s.orders", at=at) for at in times(3, 480, offset=35)]
    fires = firing("s.orders", "first")
    first = cached("first", "s.orders")
    first["conditions"]["standardizedSql"] = {"contains": "x = ?"}
    files, rules, advice = run_log(tmp_path, reads + writes, [fires, first, cached("orders", "s.orders")])
    (edit,) = the(advice, "invalidator")["patch"]
    assert (edit["op"], edit["rule"]["invalidateRules"]) == ("replace", ["first", "orders"])
    check_promises(files, rules, advice)


def test_the_part_of_a_rule_that_becomes_stale_is_split_off(tmp_path: Path) -> None:
    slow = [read("SELECT a FROM s.orders WHERE x = ?", "s.orders", at=at, ms=9000) for at in times(3, 10)]
    joined = [
        Arrival(at, "SELECT b FROM s.orders, c.names", ("s.orders", "c.names"), "[]", 1000)
        for at in times(3, 60, offset=3)
    ]
    writes = [change("c.names", at=at) for at in times(3, 90, offset=5)]
    files, rules, advice = run_log(tmp_path, slow + joined + writes, [cached("orders", "s.*")])
    found = the(advice, "split")
    own, fires = (edit["rule"] for edit in found["patch"])
    assert (own["id"], found["patch"][0]["before"]) == ("orders-part", "orders")
    assert own["conditions"] == {"all": [rules[0]["conditions"], {"tables": {"containsAny": ["c.names"]}}]}
    assert fires["invalidateRules"] == ["orders-part"]
    assert found["predicted"]["total"]["risk"]["low"] == 0 < found["predicted"]["against"]["risk"]["low"]
    assert not [row for row in advice.recommendations if row["kind"] == "invalidator"]
    check_promises(files, rules, advice)


@pytest.mark.slow
def test_a_longer_lifetime_and_a_stale_window(tmp_path: Path) -> None:
    reads = [read("SELECT a FROM s.orders WHERE x = ?", "s.orders", at=at) for at in times(3, 20)]
    writes = [change("s.orders", at=at) for at in times(3, 720, offset=35)]
    fires = firing("s.orders", "orders")
    files, rules, advice = run_log(tmp_path, reads + writes, [fires, cached("orders", "s.*", ttl=600)])
    (longer,) = the(advice, "ttl")["patch"]
    assert (longer["op"], longer["rule"]["ttlSeconds"]) == ("replace", 43_200)
    # Requests come ten minutes after the result expired.
    assert not [row for row in advice.recommendations if row["kind"] == "swr"]
    check_promises(files, rules, advice)
    files, rules, advice = run_log(tmp_path, reads + writes, [fires, cached("orders", "s.*", ttl=900)])
    (window,) = the(advice, "swr")["patch"]
    assert window["rule"]["staleWhileRevalidate"] == 300
    check_promises(files, rules, advice)


def test_results_without_later_requests_are_not_stored(tmp_path: Path) -> None:
    once = [read("SELECT a FROM s.log WHERE id = ?", "s.log", at=at, value=at) for at in times(3, 5)]
    often = [read("SELECT a FROM s.orders WHERE x = ?", "s.orders", at=at) for at in times(3, 20)]
    files, rules, advice = run_log(tmp_path, once + often, [cached("all", "s.*")])
    (edit,) = the(advice, "bypass")["patch"]
    assert (edit["before"], edit["rule"]["action"]) == ("all", "bypass")
    assert edit["rule"]["conditions"]["all"][1] == {"isReadOnly": True, "tables": {"containsAny": ["s.log"]}}
    assert the(advice, "bypass")["predicted"]["gain"]["hits"]["high"] == 0
    check_promises(files, rules, advice)


@pytest.mark.parametrize(("ttl", "kind"), [(43_200, "reorder"), (60, "remove")])
def test_a_rule_that_never_decides_is_moved_or_removed(tmp_path: Path, ttl: int, kind: str) -> None:
    reads = [read("SELECT a FROM s.orders WHERE x = ?", "s.orders", at=at) for at in times(3, 20)]
    fires = firing("s.orders", "narrow")
    given = [fires, cached("wide", "s.*", ttl=600), cached("narrow", "s.orders", ttl=ttl)]
    files, rules, advice = run_log(tmp_path, reads, given)
    found = the(advice, kind)
    assert found["patch"] == (
        [{"op": "move", "ruleId": "narrow", "before": "wide"}]
        if kind == "reorder"
        else [{"op": "remove", "ruleId": "changes"}, {"op": "remove", "ruleId": "narrow"}]
    )
    check_promises(files, rules, advice)


@pytest.mark.slow
def test_each_refusal_has_its_reason(tmp_path: Path) -> None:
    arrivals = office_traffic(random.Random(1), days=3)  # noqa: S311
    arrivals += [read("SELECT a FROM live.x", "live.x", at=at) for at in times(3, 60)]
    arrivals += [Arrival(at, "SELECT 1", (), "[]") for at in times(3, 60)]
    bypass = {"id": "live", "action": "bypass", "conditions": {"tables": {"containsAny": ["live.*"]}}}
    files, rules, advice = run_log(tmp_path, arrivals, [bypass])
    assert {row.code: row.examples[0] for row in advice.report.not_proposed} == {
        "per-user": "SELECT current_user, * FROM h.staff",
        "non-deterministic": "SELECT now(), * FROM h.clock",
        "no-tables": "SELECT 1",
        "changes-too-often": "SELECT * FROM k.stock WHERE id = ?",
        "decided-not-to-cache": "SELECT a FROM live.x",
    }
    words = {row.code: row.words for row in advice.report.not_proposed if row.words}
    assert words == {"per-user": ("current_user",), "non-deterministic": ("now()",)}
    assert not [
        row
        for row in advice.recommendations
        for rule in row["rules"]
        if "live" in str(rule["conditions"]) or "h." in str(rule["conditions"].get("tables"))
    ]
    check_promises(files, rules, advice)


@pytest.mark.slow
def test_a_dismissed_one_is_not_measured(tmp_path: Path) -> None:
    files, rules, advice = run_log(tmp_path, office_traffic(random.Random(1), days=3), [])  # noqa: S311
    first = advice.recommendations[0]
    rest = run(files, rules, dismissed={first["fingerprint"]: first["estimate_ms"]})
    assert first["fingerprint"] not in {row["fingerprint"] for row in rest.recommendations}
    back = run(files, rules, dismissed={first["fingerprint"]: first["estimate_ms"] // 2})
    assert back.recommendations[0]["fingerprint"] == first["fingerprint"]


def log_of(name: str, directory: Path) -> tuple[list[DayFile], Rules]:
    """Return four days of a log, and the rules that made it."""
    if name == "office":
        return write_days(make_log(office_traffic(random.Random(7), days=4), (0, [])), directory), []  # noqa: S311
    profile = next(profile for profile in read_demo().profiles if name in profile.name.lower())
    rows = demo_rows(profile, tenant_id="advice", days=4, entries=5000)
    return write_days(rows, directory), [complete_rule(rule) for rule in profile.publications(FIRST)[0].rules]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["office", "retail", "product"])
def test_the_proposals_save_as_much_as_an_exhaustive_search(tmp_path: Path, name: str) -> None:
    """Of few candidates, no two together save more than 1 / 0.95 of what is proposed."""
    files, rules = log_of(name, tmp_path)
    advice = run(files, rules)
    assert len(advice.recommendations) <= MAX_PROPOSALS
    proposed = [row for row in advice.recommendations if row["kind"] == "cache"]
    accepted = rules
    for found in proposed:
        accepted = with_it(accepted, found)
        total = found["predicted"]["total"]
        added = total["hits"]["high"] - found["predicted"]["against"]["hits"]["high"]
        more = total["risk"]["high"] - found["predicted"]["against"]["risk"]["high"]
        assert more <= RISK_CAP * added
    result = replay_of(files, accepted, rules)
    best = max(_search(files, rules))
    assert best > MIN_SHARE * (advice.report.warehouse_ms or 0)
    assert _middle(result["total"]) - _middle(result["against"]["total"]) >= 0.95 * best
    check_promises(files, rules, advice)


def _middle(total: Mapping[str, Any]) -> float:
    return float(total["savedMs"]["low"] + total["savedMs"]["high"]) / 2


def _search(files: Sequence[DayFile], rules: Rules) -> list[float]:
    """Return what every one and every two of few candidates save, if few enough hits are at risk."""
    candidates = _candidates(files, rules)
    saved = []
    with duckdb.connect(config={"threads": 1}) as connection:
        measurer = Measurer(connection, make_job(files, rules))
        measurer.play_current()
        for chosen in [*combinations(candidates, 1), *combinations(candidates, 2)]:
            edits = [edit for candidate in chosen for edit in candidate]
            prediction, _ = measurer.predict(read_rules(apply_edits(rules, edits)))
            gain = msgspec.to_builtins(prediction.gain)
            if gain["risk"]["high"] <= RISK_CAP * gain["hits"]["high"]:
                saved.append(_middle(gain))
    return saved


def _candidates(files: Sequence[DayFile], rules: Rules) -> list[list[RuleEdit]]:
    """Return the dearest tables or schemas, for one and twelve hours, with and without invalidation."""
    candidates: list[list[RuleEdit]] = []
    with duckdb.connect(config={"threads": 1}) as connection:
        for option in find_options(_current(connection, files, rules)):
            if option.ttl_seconds not in {3600, 43_200} or option.scope.is_statement:
                continue
            rule_id = f"c{len(candidates)}"
            rule = complete_rule(
                {"id": rule_id, "conditions": option.scope.conditions, "ttlSeconds": option.ttl_seconds}
            )
            edits = [RuleEdit.insert(rule)]
            if option.invalidator is not None:
                edit = option.invalidator.edit(rule_id, name="x")
                if edit.op != "insert":
                    continue
                edits.append(edit)
            candidates.append(edits)
    return candidates[:6]


def _current(connection: duckdb.DuckDBPyConnection, files: Sequence[DayFile], rules: Rules) -> Current:
    measurer = Measurer(connection, make_job(files, rules))
    measurer.play_current()
    return read_current(measurer, rules, tables=ANY_TABLES)


@pytest.mark.parametrize("name", ["office", "retail", "product"])
def test_estimates_match_a_replay(tmp_path: Path, name: str) -> None:
    """The estimate of each cache rule as it is, with its markers, has the hits and the risk of the replay."""
    files, rules = log_of(name, tmp_path)
    if not rules:
        rules = [complete_rule(cached("all", "m.*", "s.*", "k.*", ttl=3600, staleWhileRevalidate=600))]
    result = replay_of(files, rules, rules)
    by_rule = {row["ruleId"]: row for row in result["rules"]}
    compared = 0
    with duckdb.connect(config={"threads": 1}) as connection:
        current = _current(connection, files, rules)
        for index, rule in current.cache_rules():
            totals = [0, 0, 0]
            for series in current.series_of(index):
                if series.is_hidden:
                    continue
                found = estimate(
                    series,
                    current.lifetimes[index],
                    changes=current.requests.changes_of(series.statement),
                    counted_from=current.requests.counted_from,
                )
                totals = [a + b for a, b in zip(totals, found[:3], strict=True)]
            row = by_rule[rule.id]
            assert totals == [row["hits"]["low"], row["risk"]["low"], row["risk"]["high"]]
            compared += totals[0]
    assert compared > 50


def keep(seconds: int) -> tuple[Rule, ...]:
    return read_rules([{"id": "c", "conditions": {"isReadOnly": True}, "ttlSeconds": seconds}])


def test_a_gain_has_the_bounds_of_the_change(tmp_path: Path) -> None:
    """If two results take turns, there are two hits more: more than the upper bounds differ."""
    # A column of statements without a value would leave the day out.
    read = {"tables": "[]", "isReadOnly": True, "warehouseExecutionTimeMs": 100}
    read |= dict.fromkeys(("isDataChange", "isDDL", "hasNonDeterministicFunctions"), False)
    rows = [make_row(at=second * 1000, standardizedSql="SELECT ?", **read) for second in (0, 2, 10, 12)]
    files = write_days(rows, tmp_path)
    with duckdb.connect(config={"threads": 1}) as connection:
        measurer = Measurer(connection, Job(files, FIRST, FIRST, keep(5), keep(5)))
        measurer.play_current()
        prediction, _ = measurer.predict(keep(20))
    hits = [(bounds.hits.low, bounds.hits.high) for bounds in (prediction.against, prediction.total)]
    assert hits == [(0, 2), (0, 3)]
    gain = prediction.gain
    assert gain.hits == SignedBounds(low=-2, likely=None, high=3)
    assert gain.saved_ms == SignedBounds(low=-200, likely=None, high=300)
