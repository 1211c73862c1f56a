"""Draw the test vectors for authors of a Gateway: ``python -m tests.gateway.draw_vectors`` writes them.

A vector of ``decisions.json`` has rules, a request, and what the Gateway must do: which rule decides, the
statuses that the log can show, the values that are part of the key of a cached result, and the rules that
fire. `draw_cached` and `draw_tokens` draw the other files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from rules.explain import explain
from rules.language import read_rules
from tests.gateway.draw_cached import draw_cached
from tests.gateway.draw_statements import draw_control, draw_keys, draw_refusals
from tests.gateway.draw_tokens import draw_tokens

FOLDER: Final = Path(__file__).parent / "vectors"
COUNT: Final = 1_000
_SEED: Final = 20_261_125
#: Composed and decomposed letters are different, and so are cases, except where the rule ignores them.
_NAMES: Final = (
    *("ann", "Ann", "Zo\u00eb", "Zoe\u0308", "ΣΟΦΌΣ", "σοφός", "σοφόσ", "İnci", "inci", "ınci", "INCI"),
    *("STRAẞE", "straße", "strasse", "日本", "😀", ""),
)
_TABLES: Final = ("sales.orders", "Sales.Orders", "sales.eu.orders", "hr.people", "straße.a", "表.一")
_PATTERNS: Final = (
    "sales.*",
    "*.orders",
    "*",
    "hr.people",
    "SALES.*",
    "表.*",
    "s*.*s",
    "straẞe.*",
    "STRASSE.*",
)
_VARY: Final = (
    "userName",
    "userTokenHash",
    "sessionId",
    "serverHostname",
    "host",
    "clientIp",
    "operationType",
)


def draw_vectors() -> list[dict[str, Any]]:
    chance = random.Random(_SEED)  # noqa: S311
    return [_draw_vector(chance) for _ in range(COUNT)]


def _draw_vector(chance: random.Random) -> dict[str, Any]:
    rules = [_draw_rule(chance, number) for number in range(chance.randint(0, 4))]
    request = _draw_request(chance)
    decision = explain(read_rules(rules), request).decision
    return {
        "rules": rules,
        "request": request,
        "expected": {
            "ruleId": decision.rule_id,
            "statuses": list(decision.statuses),
            # Null: no key, so the cache is neither read nor written.
            "key": None if decision.statuses != ("HIT", "MISS") else decision.vary_by,
            "fires": [firing.rule_id for firing in decision.fired],
        },
    }


def _draw_rule(chance: random.Random, number: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": f"r{number}", "conditions": _draw_conditions(chance)}
    if chance.random() < 0.1:
        rule["enabled"] = False
    action = chance.choice([*["cache"] * 6, "bypass", "deny", "invalidate"])
    if action != "cache":
        rule["action"] = action
    elif chance.random() < 0.8:
        rule["varyBy"] = chance.sample(_VARY, chance.randint(0, 3))
    if action == "invalidate" or chance.random() < 0.15:
        rule |= {"action": action, "invalidateRules": ["r0"]}
    return rule


def _draw_conditions(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    kind = chance.randrange(4 if depth < 2 else 1)
    if kind == 1:
        return {"not": _draw_conditions(chance, depth + 1)}
    if kind == 2:
        parts = [_draw_conditions(chance, depth + 1) for _ in range(chance.randint(0, 2))]
        return {chance.choice(["all", "any"]): parts}
    return dict(_draw_test(chance) for _ in range(chance.randint(0, 2)))


def _draw_test(chance: random.Random) -> tuple[str, Any]:
    kind = chance.randrange(5)
    ignoring = {"ignoreCase": True} if chance.random() < 0.4 else {}
    if kind == 0:
        return chance.choice(["isReadOnly", "isDataChange"]), chance.choice([True, False, {"exists": True}])
    if kind == 1:
        operator = chance.choice(["gt", "gte", "lt", "lte", "eq", "ne"])
        return "tableCount", {operator: chance.randint(0, 3)}
    if kind == 2:
        operator = chance.choice(["containsAny", "containsAll", "eq", "in", "notIn"])
        if operator == "eq":
            return "tables", {operator: chance.choice(_TABLES), **ignoring}
        source = _PATTERNS if operator.startswith("contains") else _TABLES
        return "tables", {operator: chance.sample(source, chance.randint(0, 2)), **ignoring}
    key = chance.choice(["userName", "host", "operationType"])
    operator = chance.choice(["eq", "ne", "in", "notIn", "contains", "startsWith", "endsWith", "exists", ""])
    match operator:
        case "":
            return key, chance.choice(_NAMES)
        case "exists":
            return key, {"exists": chance.random() < 0.5}
        case "in" | "notIn":
            return key, {operator: chance.sample(_NAMES, chance.randint(0, 3)), **ignoring}
        case _:
            name = chance.choice(_NAMES)
            return key, {operator: name[: chance.randint(0, len(name))] or name, **ignoring}


def _draw_request(chance: random.Random) -> dict[str, Any]:
    """Return a request. An absent column is null."""
    tables = chance.sample(_TABLES, chance.randint(0, 2))
    request: dict[str, Any] = {
        "tables": chance.choice([tables, tables, None]),
        "tableCount": len(tables),
        "isReadOnly": chance.choice([True, True, False, None]),
        "isDataChange": chance.choice([True, False, False, None]),
        "clientIp": chance.choice(["10.0.0.1", "::1", None]),
        **{column: chance.choice([*_NAMES, None]) for column in _VARY if column != "clientIp"},
    }
    return {name: value for name, value in request.items() if value is not None or chance.random() < 0.5}


def draw_files() -> dict[str, str]:
    """Return the text of each file by its name, with one vector on each line."""
    tokens = draw_tokens()
    vectors = tokens.pop("vectors")
    # The first members of the object stand before the list, which is its last member.
    head = json.dumps(tokens, ensure_ascii=False).removesuffix("}")
    return {
        "decisions.json": _lines(draw_vectors()) + "\n",
        "cached.json": _lines(draw_cached()) + "\n",
        "control.json": _lines(draw_control()) + "\n",
        "keys.json": _lines(draw_keys()) + "\n",
        "refusals.json": _lines(draw_refusals()) + "\n",
        "tokens.json": f'{head}, "vectors": {_lines(vectors)}}}\n',
    }


def _lines(vectors: Iterable[Any]) -> str:
    lines = [json.dumps(msgspec.to_builtins(vector), ensure_ascii=False) for vector in vectors]
    return "[\n" + ",\n".join(lines) + "\n]"


if __name__ == "__main__":
    for name, text in draw_files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
