"""Random streams behind the reference Gateway: no hit is older than an invalidation of its tables."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from analytics.demo.profile import Markers, Result, TenantGateway, hash_query
from rules.conditions.patterns import glob_matches
from rules.language import complete_rule, read_rules
from rules.lint import lint_ruleset
from rules.table_invalidation import find_rules
from tests.gateway.random_rules import PATTERNS, draw_rules

#: Tables as drivers write them: the same table in several cases.
STATEMENTS: tuple[list[str], ...] = (
    ["hr.people"],
    ["HR.PAY"],
    ["sales.targets"],
    ["Sales.Orders", "hr.people"],
    ["sales.orders"],
    ["shr.people"],
    [],
)
RULESETS = 120
STEPS = 150


def reads(tables: list[str], globs: list[str]) -> bool:
    return any(glob_matches(glob.lower(), table.lower()) for table in tables for glob in globs)


def play(rules: list[dict[str, Any]], chance: random.Random, *, has_markers: bool) -> Counter[str]:
    """Ask and invalidate. Count hits, those older than an invalidation of their tables, and markers.

    A marker is superfluous if its rule has no result in the cache that read one of the tables.
    """
    markers = Markers()
    gateway: TenantGateway[list[str]] = TenantGateway("t", cutoff=markers.cutoff)
    gateway.publish(read_rules(rules), cache_bust="1")
    invalidated: list[tuple[int, list[str]]] = []
    stored: dict[str, tuple[str, Result[list[str]]]] = {}
    counts: Counter[str] = Counter()
    for at in range(0, 10 * STEPS, 10):
        if chance.random() < 0.1:
            globs = chance.sample([*PATTERNS, "Sales.Orders", "HR.pay"], chance.randint(1, 2))
            invalidated.append((at, globs))
            for rule in find_rules(rules, globs) if has_markers else ():
                markers.add(rule["id"], at=at)
                counts["markers"] += 1
                counts["superfluous"] += not any(
                    rule_id == rule["id"] and reads(result.content, globs)
                    for rule_id, result in stored.values()
                )
            continue
        tables = chance.choice(STATEMENTS)
        request = {
            "standardizedSql": f"SELECT * FROM {tables}",
            "statementType": "SELECT",
            "tables": json.dumps(tables) if tables else None,
            "tableCount": len(tables),
            "isReadOnly": True,
            "userName": chance.choice(["ann", "bob"]),
            "userTokenHash": "h",
            "sessionId": "s",
            "host": chance.choice(["a", "b"]),
        }
        answer = gateway.answer(gateway.decide(request), request, hash_query(f"{tables}"), at=at)
        if answer.status == "HIT":
            assert answer.result is not None
            counts["hits"] += 1
            as_of = answer.result.as_of
            counts["older"] += any(as_of < moment and reads(tables, globs) for moment, globs in invalidated)
        elif answer.status == "MISS" and answer.rule is not None:
            # The warehouse takes a while. Meanwhile the table may be invalidated.
            result = gateway.store(answer, tables, as_of=at - 1, ready_at=at + chance.choice([0, 5, 40]))
            stored[answer.key] = (answer.rule.id, result)
    return counts


def play_all(*, has_markers: bool) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in range(RULESETS):
        chance = random.Random(seed)  # noqa: S311
        rules = [complete_rule(rule) for rule in draw_rules(chance)]
        if lint_ruleset({"rules": rules}).valid:
            total += play(rules, chance, has_markers=has_markers)
    return total


def test_no_hit_is_older_than_an_invalidation_of_its_tables() -> None:
    total = play_all(has_markers=True)
    assert total["older"] == 0
    assert total == Counter(hits=3366, markers=2593, superfluous=1126)


def test_without_markers_older_hits_are_served() -> None:
    assert play_all(has_markers=False)["older"] > 1_000
