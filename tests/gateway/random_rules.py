"""Rulesets that test tables in many ways, drawn at random."""

from __future__ import annotations

import random
from typing import Any

PATTERNS = ("hr.*", "HR.*", "*.people", "sales.*", "SALES.targets", "*", "sales.orders", "s*")


def draw_rules(chance: random.Random) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = [
        {"action": "bypass"},
        {"action": "deny"},
        {"action": "cache"},
        *({"action": "cache", "varyBy": columns} for columns in ([], ["host"], ["userName"])),
        {"action": "cache", "varyBy": ["userTokenHash"]},
        {"action": "cache", "varyBy": ["host", "sessionId"]},
    ]
    return [
        {
            "id": f"r{number}",
            "conditions": draw_conditions(chance),
            "enabled": chance.random() < 0.9,
            **chance.choice(actions),
        }
        for number in range(chance.randint(1, 5))
    ]


def draw_conditions(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    kind = chance.randrange(8 if depth < 2 else 5)
    if kind < 3:
        operator = chance.choice(["containsAny", "containsAll", "in", "notIn"])
        test = {operator: chance.sample(PATTERNS, chance.randint(1, 2))}
        return {"tables": test | ({"ignoreCase": True} if chance.random() < 0.6 else {})}
    if kind == 3:
        return chance.choice([{}, {"isReadOnly": True}, {"userName": "ann"}, {"tableCount": {"gte": 2}}])
    if kind == 4:
        return {"userName": {chance.choice(["in", "notIn"]): chance.sample(["ann", "bob", "Ann"], 2)}}
    parts = [draw_conditions(chance, depth + 1) for _ in range(chance.randint(1, 2))]
    return {"not": parts[0]} if kind > 6 else {("all", "any")[kind - 5]: parts}
