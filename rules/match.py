"""What a ruleset does with one request, and why.

Contract: "Cache rules (ruleset)", "Cache status (per request)". Pure: the Gateway, an explain page and a
replay over the log can share it. For a replay in bulk, ``rules.conditions.compile_sql`` says the same in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rules.conditions.evaluate import ConditionTrace, holds, trace
from rules.conditions.request import read_request
from rules.language import Action, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rules.conditions.request import Request

#: What the log records of a request that the action decides, unless something fails. Whether a cached
#: entry serves it is not the rules' to say.
STATUSES: Final[dict[Action | None, tuple[str, ...]]] = {
    Action.CACHE: ("HIT", "MISS"),
    Action.BYPASS: ("BYPASS",),
    Action.INVALIDATE: ("BYPASS",),
    Action.DENY: ("BLOCKED",),
    None: ("PASSTHROUGH",),
}


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule whose markers are made once the statement has succeeded.

    ``required``: the Gateway refuses the statement when the markers cannot be recorded.
    """

    rule_id: str
    targets: tuple[str, ...]
    required: bool


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """What one rule had to do with a request. ``conditions`` is None where the rule is disabled."""

    rule_id: str
    enabled: bool
    matched: bool
    decided: bool
    fired: bool
    conditions: ConditionTrace | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a request. ``action`` and ``rule_id`` are None where no rule matched."""

    action: Action | None
    rule_id: str | None
    fired: tuple[Firing, ...]
    trace: tuple[RuleTrace, ...] = ()

    @property
    def statuses(self) -> tuple[str, ...]:
        """The cache statuses that the log may show for it."""
        return STATUSES[self.action]


def match(rules: Iterable[Rule], request: Mapping[str, object]) -> Decision:
    """Decide a request and trace every rule and condition, those that no longer matter too.

    Rules are read with ``rules.language.read_rules``; the request maps condition keys to values as a row of
    ``proxy_logs`` does, absent meaning null.

    Raises:
        rules.conditions.InvalidRequest: a value of the request has the wrong type.
    """
    ordered = tuple(rules)
    values = read_request(request)
    traces = [trace(rule.condition, values) if rule.enabled else None for rule in ordered]
    matching = [
        rule for rule, traced in zip(ordered, traces, strict=True) if traced is not None and traced.holds
    ]
    decision = _decide(matching)
    firing = {fired.rule_id for fired in decision.fired}
    return Decision(
        decision.action,
        decision.rule_id,
        decision.fired,
        tuple(
            RuleTrace(
                rule_id=rule.id,
                enabled=rule.enabled,
                matched=traced is not None and traced.holds,
                decided=rule.id == decision.rule_id,
                fired=rule.id in firing,
                conditions=traced,
            )
            for rule, traced in zip(ordered, traces, strict=True)
        ),
    )


def decide(rules: Iterable[Rule], request: Request) -> Decision:
    """Decide a request that has been read, without a trace and without testing what cannot matter."""
    matching: list[Rule] = []
    for rule in rules:
        if rule.enabled and (rule.invalidate_rules or not matching) and holds(rule.condition, request):
            matching.append(rule)
            if matching[0].action is Action.DENY:
                break
    return _decide(matching)


def _decide(matching: list[Rule]) -> Decision:
    if not matching:
        return Decision(None, None, ())
    first = matching[0]
    if first.action is Action.DENY:
        return Decision(first.action, first.id, ())
    return Decision(
        first.action,
        first.id,
        tuple(
            Firing(rule.id, rule.invalidate_rules, rule.require_invalidation)
            for rule in matching
            if rule.invalidate_rules
        ),
    )
