"""Explain what a ruleset does with a request: each rule's outcome, and what keeps a rule from matching.

Contract: "Cache rules (ruleset)". Imports no Django.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rules.conditions.evaluate import trace
from rules.conditions.request import read_request
from rules.match import match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rules.conditions.evaluate import ConditionTrace
    from rules.language import Rule
    from rules.match import Decision

#: A statement may have a megabyte, and each rule may test it.
_MAX_CHARACTERS: Final = 500


class Outcome(StrEnum):
    """The part of a rule in the decision."""

    DECIDED = "decided"
    MATCHED_LATER = "matched-later"
    NOT_MATCHED = "not-matched"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A test that must have another result so that the rule can match.

    ``is_negated`` says that it is inside an odd number of ``not``: it is true, and would have to be false.
    """

    test: ConditionTrace
    is_negated: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.test.path,
            "key": self.test.key,
            "operator": self.test.operator,
            "operand": _shown(self.test.operand),
            "value": _shown(self.test.value),
            "negated": self.is_negated,
        }


@dataclass(frozen=True, slots=True)
class ExplainedRule:
    """One rule.

    Attributes:
        position: its index in the ruleset.
        distance: the fewest tests that must change their result so that the conditions match: 0 if they
            match, None if they cannot.
        failed: all tests that keep the conditions from matching, in document order.
    """

    rule: Rule
    position: int
    outcome: Outcome
    fired: bool
    distance: int | None
    failed: tuple[FailedTest, ...]
    conditions: ConditionTrace

    def as_json(self) -> dict[str, Any]:
        return {
            "ruleId": self.rule.id,
            "name": self.rule.name,
            "position": self.position,
            "action": self.rule.action.value,
            "outcome": self.outcome.value,
            "fired": self.fired,
            "distance": self.distance,
            "failed": [test.as_json() for test in self.failed],
            "conditions": _trace_as_json(self.conditions),
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision, and all rules: the closest first, disabled ones last."""

    decision: Decision
    rules: tuple[ExplainedRule, ...]

    def as_json(self) -> dict[str, Any]:
        """Return ``{decision: {ruleId, action, statuses, fired}, rules}``."""
        decision = self.decision
        return {
            "decision": {
                "ruleId": decision.rule_id,
                "action": None if decision.action is None else decision.action.value,
                "statuses": list(decision.statuses),
                "fired": [
                    {"ruleId": firing.rule_id, "targets": list(firing.targets), "required": firing.required}
                    for firing in decision.fired
                ],
            },
            "rules": [rule.as_json() for rule in self.rules],
        }


def explain(rules: Sequence[Rule], request: Mapping[str, object]) -> Explanation:
    """Explain the decision on a request, which maps condition keys to values like a row of ``proxy_logs``.

    Raises:
        rules.conditions.InvalidRequest: a value of the request has the wrong type.
    """
    decision = match(rules, request)
    values = read_request(request)
    explained = []
    for position, (rule, traced) in enumerate(zip(rules, decision.trace, strict=True)):
        # A disabled rule is not traced; it is shown what it would need.
        conditions = traced.conditions or trace(rule.condition, values)
        if not traced.enabled:
            outcome = Outcome.DISABLED
        elif traced.decided:
            outcome = Outcome.DECIDED
        else:
            outcome = Outcome.MATCHED_LATER if traced.matched else Outcome.NOT_MATCHED
        explained.append(
            ExplainedRule(
                rule=rule,
                position=position,
                outcome=outcome,
                fired=traced.fired,
                distance=count_flips(conditions),
                failed=tuple(_failed(conditions, wanted=True)),
                conditions=conditions,
            )
        )
    return Explanation(decision, tuple(sorted(explained, key=_closeness)))


def _closeness(explained: ExplainedRule) -> tuple[bool, bool, int, int]:
    distance = explained.distance
    is_disabled = explained.outcome is Outcome.DISABLED
    return is_disabled, distance is None, distance or 0, explained.position


def count_flips(conditions: ConditionTrace, *, wanted: bool = True) -> int | None:
    """Return the fewest tests that must change their result so that the conditions have the ``wanted`` one.

    Tests count as independent. None: no results of tests give the wanted one (``any`` of nothing).
    """
    if conditions.matched is wanted:
        return 0
    if conditions.operator == "not":
        return count_flips(conditions.parts[0], wanted=not wanted)
    if conditions.operator not in {"all", "any"}:
        return 1
    flips = [count_flips(part, wanted=wanted) for part in conditions.parts]
    possible = [count for count in flips if count is not None]
    if (conditions.operator == "all") is wanted:
        return sum(possible) if len(possible) == len(flips) else None
    return min(possible, default=None)


def _failed(conditions: ConditionTrace, *, wanted: bool) -> Iterator[FailedTest]:
    if conditions.matched is wanted:
        return
    if conditions.operator == "not":
        yield from _failed(conditions.parts[0], wanted=not wanted)
    elif conditions.operator in {"all", "any"}:
        for part in conditions.parts:
            yield from _failed(part, wanted=wanted)
    else:
        yield FailedTest(conditions, is_negated=not wanted)


def _trace_as_json(conditions: ConditionTrace) -> dict[str, Any]:
    document: dict[str, Any] = {
        "path": conditions.path,
        "operator": conditions.operator,
        "matched": conditions.matched,
    }
    if conditions.key is None:
        return {**document, "parts": [_trace_as_json(part) for part in conditions.parts]}
    return {
        **document,
        "key": conditions.key,
        "operand": _shown(conditions.operand),
        "value": _shown(conditions.value),
    }


def _shown(value: object) -> Any:
    """Return a value as JSON, with long texts cut."""
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        return value[: _MAX_CHARACTERS - 1] + "…"
    if isinstance(value, frozenset):
        return sorted(_shown(name) for name in value)
    if isinstance(value, tuple):
        return [_shown(element) for element in value]
    return value
