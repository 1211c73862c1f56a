"""Decide a request by a ruleset, and trace why.

Contract: "Cache rules (ruleset)", "Cache status (per request)". Imports no Django. To test conditions on many
log rows, ``rules.conditions.compile_sql`` compiles them to SQL with the same results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rules.conditions.evaluate import ConditionTrace, matches, matches_partly, read_request, trace
from rules.language import Action, Rule
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from rules.conditions.evaluate import Request

#: The cache statuses that the log can show for each action if nothing fails. Rules do not decide whether a
#: result is in the cache.
STATUSES: Final[dict[Action | None, tuple[str, ...]]] = {
    Action.CACHE: ("HIT", "MISS"),
    Action.BYPASS: ("BYPASS",),
    Action.INVALIDATE: ("BYPASS",),
    Action.DENY: ("BLOCKED",),
    None: ("PASSTHROUGH",),
}


# A rule that invalidates other rules after the statement has succeeded. If ``required`` is true, the Gateway
# refuses the statement when it cannot record the markers.
class Firing(JsonStruct):
    component = "ExplainedFiring"

    rule_id: str
    targets: tuple[str, ...]
    required: bool


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """The part of one rule in a decision. ``conditions`` is None if the rule is disabled."""

    rule_id: str
    enabled: bool
    matched: bool
    decided: bool
    fired: bool
    conditions: ConditionTrace | None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a request. ``action`` and ``rule_id`` are None if no rule matches."""

    action: Action | None
    rule_id: str | None
    fired: tuple[Firing, ...]
    trace: tuple[RuleTrace, ...] = ()

    @property
    def statuses(self) -> tuple[str, ...]:
        """The cache statuses that the log can show for the request."""
        return STATUSES[self.action]


def match(rules: Iterable[Rule], request: Mapping[str, object]) -> Decision:
    """Decide a request, and trace every rule and condition, even if it does not affect the decision.

    ``rules.language.read_rules`` reads the rules. The request maps condition keys to values like a row of
    ``proxy_logs``; an absent key is null.

    Raises:
        rules.conditions.InvalidRequest: a value of the request has the wrong type.
    """
    ordered = tuple(rules)
    values = read_request(request)
    traces = [trace(rule.condition, values) if rule.enabled else None for rule in ordered]
    matching = [
        rule for rule, traced in zip(ordered, traces, strict=True) if traced is not None and traced.matched
    ]
    decision = _decide(matching)
    fired_ids = {firing.rule_id for firing in decision.fired}
    return Decision(
        decision.action,
        decision.rule_id,
        decision.fired,
        tuple(
            RuleTrace(
                rule_id=rule.id,
                enabled=rule.enabled,
                matched=traced is not None and traced.matched,
                decided=rule.id == decision.rule_id,
                fired=rule.id in fired_ids,
                conditions=traced,
            )
            for rule, traced in zip(ordered, traces, strict=True)
        ),
    )


def decide(rules: Iterable[Rule], request: Request) -> Decision:
    """Decide a request without a trace. Only rules that can affect the decision are tested."""
    matching: list[Rule] = []
    for rule in rules:
        if rule.enabled and (rule.invalidate_rules or not matching) and matches(rule.condition, request):
            matching.append(rule)
            if matching[0].action is Action.DENY:
                break
    return _decide(matching)


def find_possible(rules: Iterable[Rule], known: Request) -> Iterator[Rule]:
    """Yield the rules that may decide a request of which only some condition keys are known."""
    for rule in rules:
        matched = matches_partly(rule.condition, known) if rule.enabled else False
        if matched is not False:
            yield rule
        if matched:
            return


def vary_values(rule: Rule, request: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a rule's ``varyBy`` columns, which are a part of the key of its results.

    With a None among them, the request does without the cache. The request is a row of ``proxy_logs``, in
    which an absent column is null.
    """
    return {column: request.get(column) for column in rule.vary_by or ()}


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
            Firing(rule_id=rule.id, targets=rule.invalidate_rules, required=rule.require_invalidation)
            for rule in matching
            if rule.invalidate_rules
        ),
    )
