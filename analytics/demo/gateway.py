"""A simulated Gateway: decide a request by the rules, and answer it from the cache.

Contract: "Cache rules (ruleset)", "Cache status (per request)". The caller runs the statements and stores
their results. Times are in epoch ms.

The logs of the demo, some logs of tests and the reference Gateway of the tests use it.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from rules.conditions.evaluate import read_request
from rules.language import Action
from rules.match import decide, vary_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rules.language import Rule
    from rules.match import Decision

#: The version of cache keys. Raise it when keys are made in another way.
KEY_VERSION: Final = 3

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class Result(Generic[Content]):
    """A result in the cache.

    Attributes:
        as_of: a marker after this time makes the result stale.
        ready_at: the time when the warehouse is done. Until then, requests wait for the result.
        expires_at: the end of the rule's TTL.
    """

    content: Content
    as_of: int
    ready_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Answer(Generic[Content]):
    """The Gateway's decision about a request.

    Attributes:
        status: ``cacheStatus`` of the log, unless the statement fails.
        rule: the rule that decided.
        key: ``cacheKey``; empty unless a cache rule decided.
        ttl_seconds: the rule's TTL for a result.
        result: the result that a HIT returns or a HOLD waits for.
        miss_reason: ``missReason`` of a MISS.
        refreshes: the result has expired. Return it, execute the statement, and store the new result.
    """

    status: str
    rule: Rule | None
    key: str = ""
    ttl_seconds: int = 0
    result: Result[Content] | None = None
    miss_reason: str | None = None
    refreshes: bool = False


class Markers:
    """The invalidation markers of a tenant's rules."""

    def __init__(self) -> None:
        self._times: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, rule_id: str, *, at: int) -> None:
        """Add a marker: older results of the rule are stale from ``at`` on."""
        insort(self._times[rule_id], at)

    def cutoff(self, rule_id: str, at: int) -> int | None:
        """Return the time of the newest marker of a rule up to a time."""
        times = self._times[rule_id]
        count = bisect_right(times, at)
        return times[count - 1] if count else None


class TenantGateway(Generic[Content]):
    """The rules and the cache of one tenant.

    Args:
        cutoff: returns the time of the newest marker of a rule up to a time, see `Markers.cutoff`.
    """

    def __init__(self, tenant_id: str, *, cutoff: Callable[[str, int], int | None]) -> None:
        self._tenant_id = tenant_id
        self._cutoff = cutoff
        self._rules: dict[str, Rule] = {}
        self._cache_bust = ""
        self._results: dict[str, Result[Content]] = {}
        #: Results that are not ready yet.
        self._pending: dict[str, Result[Content]] = {}

    def publish(self, rules: Iterable[Rule], *, cache_bust: str) -> None:
        """Use a new ruleset, with an empty cache."""
        self._rules = {rule.id: rule for rule in rules}
        self._cache_bust = cache_bust
        self._results.clear()
        self._pending.clear()

    def decide(self, request: Mapping[str, object]) -> Decision:
        """Decide a request by the rules. It has the condition keys of a row of ``proxy_logs``."""
        return decide(self._rules.values(), read_request(request))

    def answer(
        self, decision: Decision, request: Mapping[str, object], query_hash: str, *, at: int
    ) -> Answer[Content]:
        """Answer a request that came at a time. It also has the columns that results can vary by."""
        rule = self._rules[decision.rule_id] if decision.rule_id else None
        if rule is None or decision.action is not Action.CACHE:
            (status,) = decision.statuses
            return Answer(status, rule)
        values = vary_values(rule, request)
        if None in values.values():
            return Answer("BYPASS", rule)
        key = self._key(rule, values, query_hash)
        pending = self._pending.get(key)
        if pending is not None and pending.ready_at <= at:
            self._results[key] = self._pending.pop(key)
            pending = None
        result = self._results.get(key)
        if result is None:
            reason = "no-cache-entry"
        else:
            cutoff = self._cutoff(rule.id, at)
            is_valid = cutoff is None or cutoff <= result.as_of
            has_expired = at >= result.expires_at
            if is_valid and at < result.expires_at + 1000 * (rule.stale_while_revalidate or 0):
                refreshes = has_expired and pending is None
                return Answer("HIT", rule, key, rule.ttl_seconds, result, refreshes=refreshes)
            reason = "ttl-expired" if has_expired else "invalidation-marker"
        if pending is not None:
            return Answer("HOLD", rule, key, rule.ttl_seconds, pending)
        return Answer("MISS", rule, key, rule.ttl_seconds, miss_reason=reason)

    def store(
        self, answer: Answer[Content], content: Content, *, as_of: int, ready_at: int
    ) -> Result[Content]:
        """Store the new result of a MISS or of a refreshed HIT."""
        result = Result(content, as_of, ready_at, ready_at + 1000 * answer.ttl_seconds)
        self._pending[answer.key] = result
        return result

    def _key(self, rule: Rule, values: Mapping[str, object], query_hash: str) -> str:
        parts = [self._tenant_id, str(KEY_VERSION), self._cache_bust, rule.id, query_hash]
        # JSON keeps values apart that contain a separator.
        parts += [json.dumps(values, sort_keys=True)] if values else []
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def hash_query(text: str, parameters: str = "") -> str:
    """Return ``queryHash`` of a statement with its literals, and of its parameters."""
    return hashlib.sha256(f"{text}\x1f{parameters}".encode()).hexdigest()
