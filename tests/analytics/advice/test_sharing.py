"""Recommendations and whose result may serve whom: the cures of leaks, and rules that share or vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analytics.advice.mine import MAX_PROPOSALS, MAX_REPLAYS
from analytics.demo.logs import read_demo
from rules.language import complete_rule
from rules.lint import lint_ruleset
from rules.tables.warehouse import WarehouseTables
from tests.analytics.advice.logs import Arrival, make_log, read
from tests.analytics.advice.searching import (
    MINUTE,
    cached,
    check_promises,
    firing,
    run,
    run_log,
    the,
    times,
    with_it,
)
from tests.analytics.replay.streams import demo_rows, write_days

OWN = "SELECT current_user, x FROM s.own"
USERS = ("ann", "bob")


def own_reads(text: str = OWN, table: str = "s.own", every: int = 60) -> list[Arrival]:
    """Return reads of a statement by two users, one after the other."""
    return [
        read(text, table, at=at + number * MINUTE, userName=name)
        for at in times(3, every)
        for number, name in enumerate(USERS)
    ]


def shared_reads() -> list[Arrival]:
    """Return reads of results that each user asks for once, so that only sharing saves something."""
    return [
        read(
            "SELECT a FROM s.orders WHERE x = ?",
            "s.orders",
            at=at + number * MINUTE,
            value=at,
            ms=5000,
            userName=name,
        )
        for at in times(3, 20)
        for number, name in enumerate(USERS)
    ]


def middle(found: Mapping[str, Any]) -> float:
    saved = found["predicted"]["total"]["savedMs"]
    return float(saved["low"] + saved["high"]) / 2


def test_a_rule_that_leaks_varies(tmp_path: Path) -> None:
    """No result of the rule is shared rightfully, so a part that varies would keep no more."""
    files, rules, advice = run_log(tmp_path, own_reads(), [cached("all", "s.*")])
    found = the(advice, "leak-fix")
    (edit,) = found["patch"]
    assert edit == {"op": "replace", "ruleId": "all", "rule": {**rules[0], "varyBy": ["userName"]}}
    assert found["evidence"][0]["rows"] == [{"standardizedSql": OWN, "served": 96, "users": 2}]
    assert (found["variant"], [other["variant"] for other in found["alternatives"]]) == (
        "vary",
        ["bypass", "narrower"],
    )
    bypass, narrower = found["alternatives"]
    assert (middle(bypass), middle(narrower)) == (0, middle(found))
    check_promises(files, rules, advice)


@pytest.mark.slow
def test_the_cure_that_keeps_the_most_is_recommended(tmp_path: Path) -> None:
    fires = firing("s.own", "all")
    given = [fires, cached("all", "s.*")]
    files, rules, advice = run_log(tmp_path, own_reads() + shared_reads(), given)
    found = the(advice, "leak-fix")
    part, changes = (edit["rule"] for edit in found["patch"])
    assert part == {
        **rules[1],
        "id": "all-per-user",
        "name": "all: per user",
        "varyBy": ["userName"],
        "conditions": {"all": [rules[1]["conditions"], {"standardizedSql": {"in": [OWN]}}]},
    }
    assert changes == {**rules[0], "invalidateRules": ["all", "all-per-user"]}
    assert (found["variant"], [other["variant"] for other in found["alternatives"]]) == (
        "narrower",
        ["vary", "bypass"],
    )
    assert all(middle(other) < middle(found) for other in found["alternatives"])
    check_promises(files, rules, advice)


@pytest.mark.slow
def test_of_equal_cures_the_simpler_is_recommended(tmp_path: Path) -> None:
    """No user asks twice for what leaks, so to keep it per user saves nothing."""
    once = [
        read(OWN + " WHERE y = ?", "s.own", at=at + number, value=at, userName=name)
        for at in times(3, 60)
        for number, name in enumerate(USERS)
    ]
    files, rules, advice = run_log(tmp_path, once + shared_reads(), [cached("all", "s.*")])
    found = the(advice, "leak-fix")
    (edit,) = found["patch"]
    assert (found["variant"], edit["before"], edit["rule"]["action"]) == ("bypass", "all", "bypass")
    assert [(other["variant"], middle(other) == middle(found)) for other in found["alternatives"]] == [
        ("vary", False),
        ("narrower", True),
    ]
    check_promises(files, rules, advice)


@pytest.mark.slow
def test_the_leak_of_the_demo_is_cured(tmp_path: Path) -> None:
    profile = read_demo().profiles[0]
    files = write_days(demo_rows(profile, tenant_id="advice", days=4, entries=5000), tmp_path)
    rules = [complete_rule(rule) for rule in profile.rules]
    advice = run(files, rules)
    found = the(advice, "leak-fix")
    assert {edit["before"] for edit in found["patch"] if edit["op"] == "insert"} == {"customers"}
    kept = [middle(variant) for variant in (found, *found["alternatives"])]
    assert (found["variant"], len(kept), kept[0]) == ("narrower", 3, max(kept))
    check_promises(files, rules, advice)


@pytest.mark.parametrize(
    "cured",
    [
        [cached("all", "s.*", varyBy=["userTokenHash"])],
        [
            {"id": "own", "action": "bypass", "conditions": {"standardizedSql": OWN}},
            cached("all", "s.*"),
        ],
        [{**cached("all", "s.*"), "enabled": False}],
    ],
)
def test_a_leak_of_an_earlier_revision_that_was_cured_is_not_cured_again(
    tmp_path: Path, cured: list[dict[str, Any]]
) -> None:
    log = make_log(own_reads(), (0, [complete_rule(cached("all", "s.*"))]))
    advice = run(write_days(log, tmp_path), [complete_rule(rule) for rule in cured])
    assert not [row for row in advice.recommendations if row["kind"] == "leak-fix"]


def test_a_rule_that_shares_a_table_that_differs_per_user(tmp_path: Path) -> None:
    """Lint refuses such a rule today. Every cure has no finding, whatever the case of the name."""
    given = [cached("all", "S.people", "s.orders", varyBy=[])]
    log = own_reads("SELECT name FROM S.people", "S.people") + own_reads()
    tables = WarehouseTables(per_user=("s.own", "s.people", "hr.*"))
    files, rules, advice = run_log(tmp_path, log, given, tables=tables)
    assert not lint_ruleset({"rules": rules}, tables=tables).valid
    found = the(advice, "leak-fix")
    assert found["variant"] == "vary"
    part = {"tables": {"containsAny": list(tables.personal), "ignoreCase": True}}
    for other in found["alternatives"]:
        assert other["rules"][0]["conditions"] == {"all": [rules[0]["conditions"], part]}
    for variant in (found, *found["alternatives"]):
        lint = lint_ruleset({"rules": with_it(rules, variant)}, tables=tables)
        assert (lint.errors, lint.warnings) == ((), ())
    check_promises(files, rules, advice, tables)


def test_a_cure_names_a_table_as_the_log_spells_it(tmp_path: Path) -> None:
    """Lint refuses what shares such a table by another spelling, so no cure may."""
    given = [cached("all", "hr.*", '"hr".*', "s.orders", varyBy=[])]
    log = own_reads('SELECT name FROM "hr"."people"', '"hr"."people"') + own_reads()
    tables = WarehouseTables(per_user=("hr.people",), logged=("s.orders", '"hr"."people"'))
    files, rules, advice = run_log(tmp_path, log, given, tables=tables)
    found = the(advice, "leak-fix")
    (bypass,) = [other for other in found["alternatives"] if other["variant"] == "bypass"]
    part = {"tables": {"containsAny": ["hr.people", '"hr"."people"'], "ignoreCase": True}}
    assert bypass["rules"][0]["conditions"] == {"all": [rules[0]["conditions"], part]}
    for variant in (found, *found["alternatives"]):
        lint = lint_ruleset({"rules": with_it(rules, variant)}, tables=tables)
        assert (lint.errors, lint.warnings) == ((), ())
    check_promises(files, rules, advice, tables)


def test_more_statements_than_a_rule_names_are_cured_by_varying(tmp_path: Path) -> None:
    many = [
        arrival
        for number in range(21)
        for arrival in own_reads(f"SELECT current_user, c{number} FROM s.own", every=480)
    ]
    files, rules, advice = run_log(tmp_path, many + shared_reads(), [cached("all", "s.*")])
    found = the(advice, "leak-fix")
    assert (found["variant"], found["alternatives"], len(found["evidence"][0]["rows"])) == ("vary", [], 20)
    check_promises(files, rules, advice)


@pytest.mark.parametrize(
    ("per_user", "columns", "is_warned"),
    [
        (("S.*",), ["userName"], False),
        (("hr.people",), [], False),
        (("orders",), ["userName"], False),
        ((), [], False),
        (None, [], True),
    ],
)
def test_results_of_tables_that_differ_per_user_are_never_shared(
    tmp_path: Path, per_user: tuple[str, ...] | None, columns: list[str], *, is_warned: bool
) -> None:
    """A statement that reads s.orders can read hr.people too, but not if the rule is for one table alone."""
    reads = [
        read("SELECT count(*) FROM s.orders WHERE x = ?", "s.orders", at=at, userName=USERS[number % 2])
        for number, at in enumerate(times(3, 10))
    ]
    tables = WarehouseTables(per_user=per_user)
    files, rules, advice = run_log(tmp_path, reads, [], tables=tables)
    found = the(advice, "cache")
    (rule,) = found["rules"]
    assert rule["varyBy"] == columns
    if per_user == ("hr.people",):
        assert rule["conditions"]["tables"] == {"in": ["s.orders"]}
    assert lint_ruleset({"rules": [rule]}, tables=tables).errors == ()
    assert found["variant"] == ("per-user" if columns else "shared")
    caveats = ["row-level-security-invisible"] if is_warned else []
    assert found["caveats"] == caveats
    assert [code for code in advice.report.caveats or () if code.startswith("row")] == caveats
    assert found["predicted"]["gain"]["hits"]["low"] > 100
    check_promises(files, rules, advice)


def test_statements_on_several_tables_are_shared_without_the_tables_that_differ(tmp_path: Path) -> None:
    """The rule excludes such a table in each spelling of the log."""
    tables = WarehouseTables(per_user=("hr.people",))
    shared = [
        replace(
            read("SELECT ? FROM s.orders JOIN s.items", "", at=at, userName=USERS[number % 2]),
            tables=("s.orders", "s.items"),
        )
        for number, at in enumerate(times(3, 10))
    ]
    own = [
        replace(
            read('SELECT ? FROM s.orders JOIN "HR".PEOPLE', "", at=at + 5, userName="ann"),
            tables=("s.orders", '"HR".PEOPLE'),
        )
        for at in times(3, 10)
    ]
    files, rules, advice = run_log(tmp_path, shared + own, [], tables=tables)
    (found,) = [row for row in advice.recommendations if row["variant"] == "shared"]
    (rule,) = found["rules"]
    assert rule["conditions"]["not"] == {
        "tables": {"containsAny": ["hr.people", '"HR".PEOPLE'], "ignoreCase": True}
    }
    assert rule["varyBy"] == []
    assert lint_ruleset({"rules": [rule]}, tables=tables).errors == ()
    check_promises(files, rules, advice, tables)


def test_where_row_level_security_is_invisible_the_rule_per_user_is_beside(tmp_path: Path) -> None:
    reads = own_reads("SELECT count(*) FROM s.orders WHERE x = ?", "s.orders", every=30)
    files, rules, advice = run_log(tmp_path, reads, [])
    found = the(advice, "cache")
    (twin,) = found["alternatives"]
    assert found["why"][0] == "No rule decides 288 requests of 1 statement."
    (rule,) = found["rules"]
    assert twin["rules"] == [{**rule, "varyBy": ["userName"]}]
    assert twin["patch"] == [{**found["patch"][0], "rule": twin["rules"][0]}]
    assert (twin["variant"], twin["title"]) == ("per-user", "Cache s.orders per user for 12 hours")
    hits = [one["predicted"]["gain"]["hits"] for one in (found, twin)]
    # The other user's first request of each lifetime is a miss too.
    assert [count["low"] - count["high"] for count in hits] == [0, 0]
    assert hits[0]["low"] > hits[1]["low"] > 100
    check_promises(files, rules, advice)


def test_the_number_of_replays_is_limited(tmp_path: Path) -> None:
    """Four rules leak, and each has three cures."""
    reads = [
        arrival
        for number in range(5)
        for arrival in own_reads(f"SELECT current_user FROM s{number}.own", f"s{number}.own", every=120)
    ]
    given = [cached(f"all{number}", f"s{number}.*") for number in range(5)]
    _, _, advice = run_log(tmp_path, reads, given)
    played = [1 + len(found["alternatives"]) for found in advice.recommendations]
    assert played == [3, 3, 3, 3]
    assert (sum(played), len(played) < MAX_PROPOSALS) == (MAX_REPLAYS, True)
