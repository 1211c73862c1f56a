"""Run the vectors against a decision written from docs/rules.md alone: ``python run.py``. Needs nothing else.

Replace `decide` by your own.
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

STATUSES = {"cache": ["HIT", "MISS"], "bypass": ["BYPASS"], "invalidate": ["BYPASS"], "deny": ["BLOCKED"]}


def decide(rules: list[dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Return what the Gateway does with a request."""
    matching = [r for r in rules if r.get("enabled", True) and holds(r["conditions"], request)]
    if not matching:
        return {"ruleId": None, "statuses": ["PASSTHROUGH"], "key": None, "fires": []}
    rule = matching[0]
    action = action_of(rule)
    key = {c: request.get(c) for c in rule.get("varyBy", [])} if action == "cache" else None
    if key is not None and None in key.values():
        key = None
    statuses = ["BYPASS"] if action == "cache" and key is None else STATUSES[action]
    fires = [] if action == "deny" else [r["id"] for r in matching if r.get("invalidateRules")]
    return {"ruleId": rule["id"], "statuses": statuses, "key": key, "fires": fires}


def action_of(rule: dict[str, Any]) -> str:
    return str(rule.get("action", "invalidate" if "invalidateRules" in rule else "cache"))


def holds(conditions: dict[str, Any], request: dict[str, Any]) -> bool:
    return all(test(name, value, request) for name, value in conditions.items())


def test(name: str, value: Any, request: dict[str, Any]) -> bool:
    if name == "not":
        return not holds(value, request)
    if name in {"all", "any"}:
        parts = [holds(part, request) for part in value]
        return all(parts) if name == "all" else any(parts)
    operators = dict(value) if isinstance(value, dict) else {"eq": value}
    ignores = operators.pop("ignoreCase", False)
    return all(compare(op, operand, request.get(name), ignores=ignores) for op, operand in operators.items())


def compare(op: str, operand: Any, seen: Any, *, ignores: bool) -> bool:  # noqa: C901
    if op == "exists":
        return bool((seen is not None) is operand)
    if seen is None:
        return op in {"ne", "notIn"}
    if ignores:
        seen, operand = fold(seen), fold(operand)
    if op in {"ne", "notIn"}:
        return not compare({"ne": "eq", "notIn": "in"}[op], operand, seen, ignores=False)
    if op in {"eq", "in"}:
        wanted = operand if op == "in" else [operand]
        return any(set(seen) == {one} if isinstance(seen, list) else seen == one for one in wanted)
    if op == "containsAny":
        return any(glob(pattern, table) for pattern in operand for table in seen)
    if op == "containsAll":
        return all(any(glob(pattern, table) for table in seen) for pattern in operand)
    match op:
        case "contains":
            return bool(operand in seen)
        case "startsWith":
            return bool(seen.startswith(operand))
        case "endsWith":
            return bool(seen.endswith(operand))
        case "gt":
            return bool(seen > operand)
        case "gte":
            return bool(seen >= operand)
        case "lt":
            return bool(seen < operand)
        case _:
            return bool(seen <= operand)


def glob(pattern: str, name: str) -> bool:
    regex = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(regex, name, re.DOTALL) is not None


def fold(value: Any) -> Any:
    """Unicode's simple case folding: one character for each. Python's ``casefold`` may give several."""
    if isinstance(value, list):
        return [fold(one) for one in value]
    if not isinstance(value, str):
        return value
    choices = ((c.casefold(), c.lower(), c) for c in value)
    return "".join(next(folded for folded in choice if len(folded) == 1) for choice in choices)


if __name__ == "__main__":
    vectors = json.loads(Path(__file__).with_name("decisions.json").read_text(encoding="utf-8"))
    wrong = [n for n, v in enumerate(vectors) if decide(v["rules"], v["request"]) != v["expected"]]
    print(f"{len(vectors) - len(wrong)} of {len(vectors)} vectors hold. Wrong: {wrong[:10]}")
    sys.exit(bool(wrong))
