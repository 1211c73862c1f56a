"""Check that log entries could come from one Gateway with one cache. Uses only the entries and markers."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from rules.conditions.evaluate import read_request
from rules.language import read_rules
from rules.match import decide
from tenantadmin.lib.core.timestamps import from_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.demo.generate import GeneratedMarker, Hour
    from analytics.demo.profile import Profile
    from rules.language import Rule

#: Statuses that an entry may have instead of the one that the ruleset decides.
EXCEPTIONS = {"ERROR", "INVALIDATION_ERROR", "HOLD"}
WITHOUT_RULES = {"SPOOFED", "TELEMETRY", "EXECUTOR", "AUTH_ERROR"}


def check_coherence(profile: Profile, hours: Sequence[Hour]) -> None:
    """Assert that rules, cache and markers explain every entry. The hours are the first ones of a tenant."""
    entries = [entry for hour in hours for entry in hour.entries]
    rulesets = _Rulesets(profile, hours[0].start)
    markers = [marker for hour in hours for marker in hour.markers]
    _check_decisions(rulesets, entries)
    _check_markers(rulesets, entries, markers)
    _check_cache(entries, markers)


class _Rulesets:
    """The rulesets of a tenant whose logs begin at ``start`` (epoch ms)."""

    def __init__(self, profile: Profile, start: int) -> None:
        self._publications = [
            (published.at, str(published.seq), read_rules(published.rules))
            for published in profile.publications(from_epoch_ms(start).date())
        ]

    def in_force(self, entry: dict[str, Any]) -> tuple[str, tuple[Rule, ...]]:
        """Return the version and the rules that decide an entry."""
        return [(version, rules) for at, version, rules in self._publications if at <= entry["timestamp"]][-1]


def _check_decisions(rulesets: _Rulesets, entries: Iterable[dict[str, Any]]) -> None:
    for entry in entries:
        version, rules = rulesets.in_force(entry)
        if entry["cacheStatus"] in WITHOUT_RULES:
            assert entry["matchedRule"] is None
            continue
        decision = decide(rules, read_request(entry))
        assert entry["matchedRule"] == decision.rule_id
        assert entry["cacheStatus"] in {*decision.statuses, *EXCEPTIONS}
        if decision.rule_id:
            rule = next(rule for rule in rules if rule.id == decision.rule_id)
            assert entry["ruleVersion"] == version
            assert entry["matchedRuleName"] == rule.name
            if entry["cacheStatus"] in {"HIT", "MISS", "HOLD"}:
                assert entry["cacheTtlSeconds"] == rule.ttl_seconds
        if entry["cacheStatus"] == "INVALIDATION_ERROR":
            assert any(firing.required for firing in decision.fired)


def _check_markers(
    rulesets: _Rulesets, entries: Iterable[dict[str, Any]], markers: Iterable[GeneratedMarker]
) -> None:
    expected = []
    unmeasured = 0
    for entry in entries:
        if entry["cacheStatus"] == "BYPASS":
            fired = decide(rulesets.in_force(entry)[1], read_request(entry)).fired
            targets = [(target, firing.rule_id) for firing in fired for target in firing.targets]
            spent = entry["warehouseExecutionTimeMs"]
            if spent is None:
                unmeasured += len(targets)
            else:
                expected += [(target, entry["timestamp"] + spent, by) for target, by in targets]
    made = [(marker.target_rule_id, marker.at, marker.fired_rule_id) for marker in markers]
    assert len(made) == len(expected) + unmeasured
    assert set(expected) <= set(made)


def _check_cache(entries: Iterable[dict[str, Any]], markers: Iterable[GeneratedMarker]) -> None:
    cutoffs: dict[str, list[int]] = {}
    for marker in markers:
        cutoffs.setdefault(marker.target_rule_id, []).append(marker.at)
    stored: dict[str, tuple[int, int]] = {}
    for entry in entries:
        status, at, key = entry["cacheStatus"], entry["timestamp"], entry["cacheKey"]
        if status not in {"HIT", "MISS", "HOLD"}:
            assert status == "ERROR" or key is None
            if entry["standardizedSql"] and key is None:
                assert entry["queryHash"] == sha256(entry["standardizedSql"].encode()).hexdigest()
            continue
        born_at, expires_at = stored.get(key, (None, None))
        state = _cache_state(at, born_at, expires_at, cutoffs.get(entry["matchedRule"], []))
        if status == "HIT":
            assert born_at is not None
            assert state == "fresh"
            assert entry["cacheAgeSeconds"] == (at - born_at) // 1000
            assert entry["cacheExpiresAt"] == expires_at
            assert entry["warehouseExecutionTimeMs"] is None
        elif status == "HOLD":
            assert state == "in-flight"
            assert entry["cacheExpiresAt"] == expires_at
        else:
            assert state not in {"fresh", "in-flight"}
            assert entry["missReason"] in {state, None}
            ttl_ms = entry["cacheTtlSeconds"] * 1000
            stored[key] = (entry["cacheExpiresAt"] - ttl_ms, entry["cacheExpiresAt"])
            spent = entry["warehouseExecutionTimeMs"]
            assert spent is None or stored[key][0] == at + spent


def _cache_state(at: int, born_at: int | None, expires_at: int | None, cutoffs: Iterable[int]) -> str:
    if born_at is None or expires_at is None:
        return "no-cache-entry"
    if at < born_at:
        return "in-flight"
    if at >= expires_at:
        return "ttl-expired"
    return "invalidation-marker" if any(born_at < cutoff <= at for cutoff in cutoffs) else "fresh"
