"""Whose result serves whom: a warehouse whose rows depend on the user, behind the reference Gateway.

Where ``perUserTables`` names the tables that differ, no ruleset that lint accepts serves one user the rows of
another. A rule that shares them does, and lint and the leak report find it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from analytics.demo.profile import Markers, TenantGateway, hash_query
from rules.language import read_rules
from rules.lint import lint_ruleset
from rules.tables.warehouse import WarehouseTables
from tests.gateway.random_rules import draw_rules

PER_USER = WarehouseTables(per_user=("hr.*", "Sales.Targets"))
#: Statements with the tables that they read, written as drivers write them, and whether rows differ per user.
STATEMENTS = (
    ("SELECT * FROM hr.people", ["hr.people"], True),
    ("SELECT * FROM HR.PAY", ["HR.PAY"], True),
    ("SELECT * FROM sales.targets", ["sales.targets"], True),
    ("SELECT * FROM sales.orders JOIN hr.people", ["sales.orders", "hr.people"], True),
    ("SELECT * FROM sales.orders", ["sales.orders"], False),
    ("SELECT * FROM shr.people", ["shr.people"], False),
)
USERS = ("ann", "bob", "Ann", None)
RULESETS = 2_000


def execute(statement: str, user: str | None, *, differs: bool) -> str:
    """Return the rows: whose they are, where they depend on who asks."""
    return f"{statement} of {user if differs else 'all'}"


def serve(rules: Sequence[dict[str, Any]], chance: random.Random, *, requests: int) -> tuple[int, int]:
    """Return how many hits there were, and how many of them served rows of another user."""
    gateway: TenantGateway[str] = TenantGateway("t", cutoff=Markers().cutoff)
    gateway.publish(read_rules(rules), cache_bust="1")
    hits = leaks = 0
    for at in range(requests):
        statement, tables, differs = chance.choice(STATEMENTS)
        user = chance.choice(USERS)
        request = {
            "standardizedSql": statement,
            "statementType": "SELECT",
            "tables": json.dumps(tables),
            "tableCount": len(tables),
            "isReadOnly": True,
            "userName": user,
            "userTokenHash": chance.choice([user, None]),
            "sessionId": None if user is None else f"{user} {chance.randrange(2)}",
            "host": chance.choice(["a", "b"]),
            "clientIp": "10.0.0.1",
        }
        answer = gateway.answer(gateway.decide(request), request, hash_query(statement), at=at)
        rows = execute(statement, user, differs=differs)
        if answer.result is not None:
            hits += 1
            leaks += answer.result.content != rows
        elif answer.status == "MISS":
            gateway.store(answer, rows, as_of=at, ready_at=at)
    return hits, leaks


@pytest.mark.slow
def test_no_ruleset_that_lint_accepts_serves_rows_of_another_user() -> None:
    accepted = hits = refused_leaks = 0
    for seed in range(RULESETS):
        chance = random.Random(seed)  # noqa: S311
        rules = draw_rules(chance)
        is_valid = lint_ruleset({"rules": rules}, tables=PER_USER).valid
        served, leaks = serve(rules, chance, requests=60)
        if is_valid:
            assert leaks == 0, (seed, rules)
            accepted += 1
            hits += served
        else:
            refused_leaks += leaks > 0
    # Lint does not refuse everything, and what it refuses does leak.
    assert accepted > RULESETS / 5
    assert hits > 4_000
    assert refused_leaks > RULESETS / 10


def test_a_planted_rule_that_shares_leaks_and_lint_finds_it() -> None:
    keyed = {"id": "reports", "conditions": {"isReadOnly": True}, "varyBy": ["userName"]}
    planted = keyed | {"varyBy": []}
    chance = random.Random(1)  # noqa: S311
    assert serve([keyed], chance, requests=300)[1] == 0
    assert serve([planted], chance, requests=300)[1] > 50
    assert lint_ruleset({"rules": [keyed]}, tables=PER_USER).valid
    (finding,) = lint_ruleset({"rules": [planted]}, tables=PER_USER).errors
    assert (finding.code, finding.rule_id) == ("per-user-table-shared", "reports")
