"""Run the vectors against code by docs/rules.md, gateway.md and protocols.md alone: ``python run.py``.

It needs nothing else. Replace `decide`, `answer`, `find_control`, `make_key`, `refuse` and `verify`.
"""

# ruff: noqa: T201

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import sys
from datetime import datetime
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


def answer(
    rule: dict[str, Any], markers: list[dict[str, Any]], born_at: int | None, at: int
) -> dict[str, Any]:
    """Return whether the cached result of a rule, born at ``born_at``, is served at ``at`` (epoch ms)."""
    miss = {"status": "MISS", "missReason": "no-cache-entry", "cacheAgeSeconds": None, "refreshes": False}
    if born_at is None:
        return miss
    expires_at = born_at + 1000 * rule["ttlSeconds"]
    made = [m["invalidatedAt"] for m in markers if m["targetRuleId"] == rule["id"] and not m["deleted"]]
    is_invalid = any(round(datetime.fromisoformat(text).timestamp() * 1000) >= born_at for text in made)
    if is_invalid or at >= expires_at + 1000 * rule.get("staleWhileRevalidate", 0):
        return miss | {"missReason": "ttl-expired" if at >= expires_at else "invalidation-marker"}
    age = (at - born_at) // 1000
    return {"status": "HIT", "missReason": None, "cacheAgeSeconds": age, "refreshes": at >= expires_at}


SESSION = {
    *(
        "BEGIN",
        "START",
        "COMMIT",
        "END",
        "ROLLBACK",
        "ABORT",
        "SAVEPOINT",
        "RELEASE",
        "SET",
        "UNSET",
        "RESET",
    ),
    *("USE", "DISCARD", "DEALLOCATE", "LISTEN", "UNLISTEN"),
}


def find_control(text: str, adapter: str) -> dict[str, str] | None:
    """Return type and status of a control statement, None for others. Of several, all must be such."""
    parts = [part for part in text.split(";") if part.strip()]
    found = [find_one(part, adapter) for part in parts]
    if not parts or None in found or (len(parts) > 1 and {"'", '"', "$"} & {*text}):
        return None
    return found[0]


def find_one(text: str, adapter: str) -> dict[str, str] | None:
    text = without_comments(text)
    words = re.findall(r"[A-Za-z]+", text.upper())[:2]
    if re.fullmatch(r"SELECT\s+PG_ADVISORY_UNLOCK_ALL\(\)", text.upper()):
        return {"statementType": "SELECT", "cacheStatus": "SPOOFED"}
    if words == ["ALTER", "SESSION"]:
        return {"statementType": "ALTER SESSION", "cacheStatus": "SPOOFED"}
    first = words[0] if words else ""
    if first in SESSION or (first == "SHOW" and adapter == "postgresql"):
        return {"statementType": first, "cacheStatus": "SPOOFED"}
    return (
        {"statementType": first, "cacheStatus": "EXECUTOR"} if first in {"FETCH", "MOVE", "CLOSE"} else None
    )


COMMENT = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|--[^\n]*|/\*[\s\S]*?\*/""")


def without_comments(text: str) -> str:
    return COMMENT.sub(lambda match: match[1] or "", text).strip()


def make_key(request: dict[str, Any]) -> str:
    """Return what is in the key beside tenant, `cacheBust`, rule and `varyBy`."""
    parts = [without_comments(request["text"]), request["parameterValues"], request["context"]]
    return json.dumps(parts, sort_keys=True)


STATES = {"BLOCKED": "42501", "INVALIDATION_ERROR": "58000", "AUTH_ERROR": "28P01"}


def refuse(adapter: str, status: str, message: str) -> dict[str, Any]:
    """Return what the consumer is sent. Statuses of HTTP are 200."""
    state, is_final = STATES[status], status == "AUTH_ERROR"
    if adapter == "snowflake":
        code = "390303" if is_final else "003001"
        data = {"errorCode": code, "sqlState": state}
        return {"httpStatus": 200, "body": {"success": False, "code": code, "message": message, "data": data}}
    if adapter == "databricks":
        texts = {"errorMessage": message, "displayMessage": message}
        return {"httpStatus": 200, "TStatus": {"statusCode": 3, "sqlState": state, **texts}}
    severity = "FATAL" if is_final else "ERROR"
    fields = {"S": severity, "V": severity, "C": state, "M": message}
    body = b"".join(name.encode() + text.encode() + b"\0" for name, text in fields.items()) + b"\0"
    return {"fields": fields, "bytes": (b"E" + (len(body) + 4).to_bytes(4, "big") + body).hex()}


def verify(token: str, known: dict[str, Any]) -> str | None:
    """Return the user of an access token, or None if it is refused."""
    try:
        head, body, signature = token.split(".")
        header, claims = json.loads(decode(head)), json.loads(decode(body))
        keys = {key["kid"]: key for key in known["jwks"]["keys"]}
        key = keys[header["kid"]]
        is_signed = header["alg"] == "ES256" and is_signature(
            key, f"{head}.{body}".encode(), decode(signature)
        )
        audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        is_for_us = claims["iss"] == known["issuer"] and "tenant-admin" in audience
        is_current = claims["exp"] > known["now"] - known["leewaySeconds"] and not claims.get("tos_required")
        tenants = claims["tenants"]
        may = isinstance(tenants, list) and bool({"*", known["tenant"]} & {*tenants})
        if is_signed and is_for_us and is_current and may and claims["typ"] == "access":
            return str(claims["sub"])
    except (ValueError, KeyError, TypeError, binascii.Error):
        pass
    return None


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# ECDSA on P-256, in a form that is easy to read. Use a library in a Gateway.
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Point = tuple[int, int] | None


def is_signature(key: dict[str, str], message: bytes, signature: bytes) -> bool:
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    if len(signature) != 64 or not (0 < r < N and 0 < s < N):
        return False
    inverse = pow(s, -1, N)
    public = (int.from_bytes(decode(key["x"]), "big"), int.from_bytes(decode(key["y"]), "big"))
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    point = add(times(digest * inverse % N, G), times(r * inverse % N, public))
    return point is not None and point[0] % N == r


def times(number: int, point: Point) -> Point:
    total: Point = None
    while number:
        if number & 1:
            total = add(total, point)
        point, number = add(point, point), number >> 1
    return total


def add(one: Point, other: Point) -> Point:
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    rise, run = (3 * x1 * x1 - 3, 2 * y1) if one == other else (y2 - y1, x2 - x1)
    slope = rise * pow(run, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def read(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    tokens = read("tokens.json")
    checks = {
        "decisions": [decide(v["rules"], v["request"]) == v["expected"] for v in read("decisions.json")],
        "cached": [
            answer(v["rule"], v["markers"], v["bornAt"], v["at"]) == v["expected"]
            for v in read("cached.json")
        ],
        "control": [find_control(v["text"], v["adapterType"]) == v["expected"] for v in read("control.json")],
        "keys": [(make_key(v["one"]) == make_key(v["other"])) == v["expected"] for v in read("keys.json")],
        "refusals": [
            refuse(v["adapterType"], v["cacheStatus"], v["message"]) == v["expected"]
            for v in read("refusals.json")
        ],
        "tokens": [verify(v["token"], tokens) == v["userName"] for v in tokens["vectors"]],
    }
    for name, results in checks.items():
        wrong = [number for number, holds in enumerate(results) if not holds]
        print(f"{name}: {sum(results)} of {len(results)} hold.{f' Wrong: {wrong[:10]}' if wrong else ''}")
    sys.exit(not all(map(all, checks.values())))
