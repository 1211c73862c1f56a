"""Draw the vectors of cached results: may a result be served, by its age and its rule's markers?"""

from __future__ import annotations

import random
from typing import Any, Final

from analytics.demo.profile import TenantGateway
from rules.language import read_rules
from tenantadmin.lib.core.timestamps import format_timestamp, from_epoch_ms
from tests.gateway.gateway import find_cutoff

COUNT: Final = 300
_SEED: Final = 20_261_126
#: 2026-01-01, in epoch ms. Each result is born then.
BORN: Final = 1_767_225_600_000


def draw_cached() -> list[dict[str, Any]]:
    chance = random.Random(_SEED)  # noqa: S311
    return [_draw(chance) for _ in range(COUNT)]


def _draw(chance: random.Random) -> dict[str, Any]:
    ttl, window = chance.choice([(10, None), (10, 5), (10, 0), (1, 604_800)])
    ends = [0, 1000 * ttl, 1000 * (ttl + (window or 0))]
    at = BORN + max(0, chance.choice(ends) + chance.choice([-1, 0, 1, 999, 1000, 1001]))
    markers = [_draw_marker(chance, ttl) for _ in range(chance.choice([0, 1, 1, 2]))]
    stored = chance.random() < 0.95
    rule = {"id": "r", "conditions": {}, "ttlSeconds": ttl, "varyBy": []}
    if window is not None:
        rule["staleWhileRevalidate"] = window
    return {
        "rule": rule,
        "markers": markers,
        "bornAt": BORN if stored else None,
        "at": at,
        "expected": _decide(rule, markers, is_stored=stored, at=at),
    }


def _draw_marker(chance: random.Random, ttl: int) -> dict[str, Any]:
    """Return a marker as the feed has it. One of another rule, and a deleted one, end nothing."""
    invalidated_at = BORN + chance.choice([-1000, -1, 0, 0, 1, 500])
    return {
        "markerId": f"m{chance.randrange(10**6)}",
        "targetRuleId": chance.choice(["r", "r", "r", "other"]),
        "invalidatedAt": format_timestamp(from_epoch_ms(invalidated_at)),
        "expiresAt": format_timestamp(from_epoch_ms(invalidated_at + 1000 * ttl)),
        "deleted": chance.random() < 0.15,
    }


def _decide(
    rule: dict[str, Any], markers: list[dict[str, Any]], *, is_stored: bool, at: int
) -> dict[str, Any]:
    cutoff = find_cutoff((marker for marker in markers if not marker["deleted"]), "r")
    gateway: TenantGateway[str] = TenantGateway("t", cutoff=lambda _rule, _at: cutoff)
    gateway.publish(read_rules([rule]), cache_bust="1")
    decision = gateway.decide({})
    if is_stored:
        miss = gateway.answer(decision, {}, "hash", at=BORN)
        gateway.store(miss, "rows", as_of=BORN - 1, ready_at=BORN)
    answer = gateway.answer(decision, {}, "hash", at=at)
    is_hit = answer.status == "HIT"
    return {
        "status": answer.status,
        "missReason": answer.miss_reason,
        "cacheAgeSeconds": (at - BORN) // 1000 if is_hit else None,
        "refreshes": answer.refreshes,
    }
