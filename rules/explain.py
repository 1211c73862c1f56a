"""Explain what a ruleset does with a request: each rule's outcome, and what keeps a rule from matching.

Contract: "Cache rules (ruleset)". Imports no Django.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from msgspec import Meta

from rules.conditions.evaluate import read_request, trace
from rules.language import Action
from rules.match import STATUSES, Firing, match, vary_values
from rules.tables.names import Likeness, TablePattern, read_name
from tenantadmin.lib.core.serving import TooCostly, check_work
from tenantadmin.lib.core.structs import Count, JsonStruct, free_form
from tenantadmin.lib.core.timestamps import Timestamp

if TYPE_CHECKING:
    from rules.conditions.evaluate import ConditionTrace, Request
    from rules.language import Rule
    from rules.match import Decision

#: Values are cut: a statement may have a megabyte, and each rule may test it.
_MAX_CHARACTERS: Final = 500
_MAX_ELEMENTS: Final = 50
#: Each test repeats the value of the request, in ``failed`` and ``conditions``. An answer has at most this
#: many characters of such values.
_MAX_REPEATED: Final = 32 << 20
_CACHE_DISABLED: Final = (
    "The tenant's configuration has defaults.cacheEnabled false, so the Gateway declines every cache rule."
)


class Outcome(StrEnum):
    """The part of a rule in the decision."""

    DECIDED = "decided"
    MATCHED_LATER = "matched-later"
    NOT_MATCHED = "not-matched"
    DISABLED = "disabled"


class ExplainedDecision(JsonStruct):
    """What happens. ``ruleId`` and ``action`` are null if no rule matches."""

    rule_id: str | None
    action: Action | None
    statuses: Annotated[tuple[str, ...], Meta(description="The cache statuses that the log can show.")]
    fired: tuple[Firing, ...]
    vary_by: Annotated[
        dict[str, str | None] | None,
        Meta(
            description="The request's values of the rule's `varyBy` columns, which keep results apart. "
            "With a null among them, the status is `BYPASS`. Null unless a cache rule decides."
        ),
    ]
    note: Annotated[
        str | None, Meta(description="Why the Gateway does something else than the rule says.")
    ] = None


class FailedTest(JsonStruct):
    """A test that keeps the rule from matching."""

    path: Annotated[str, Meta(description="JSON Pointer into the rule's conditions.")]
    key: str
    operator: str
    operand: Any
    value: Annotated[Any, Meta(description="The value of the request.")]
    negated: Annotated[
        bool,
        Meta(description="True inside an odd number of `not`: the test is true, and must be false."),
    ]
    note: Annotated[
        str | None,
        Meta(description="Which table the request spells otherwise than the condition, which compares text."),
    ] = None


class TracedCondition(JsonStruct):
    """The result of a condition, which is a `TracedTest` or a `TracedGroup`."""

    path: str
    operator: str
    matched: bool


class TracedTest(TracedCondition):
    key: str
    operand: Any
    value: Any


class TracedGroup(TracedCondition):
    parts: list[TracedCondition]


class ExplainedRule(JsonStruct):
    """A rule, and what keeps it from matching."""

    rule_id: str
    name: str
    position: Count
    action: Action
    outcome: Outcome
    fired: bool
    distance: Annotated[
        Count | None,
        Meta(
            description="The fewest tests that must change their result; null if the conditions never match."
        ),
    ]
    failed: list[FailedTest]
    conditions: Annotated[TracedCondition, free_form()]


class ChosenRuleset(JsonStruct):
    """The rules that decided."""

    seq: Annotated[Count, Meta(description="Of a draft, the revision that it is based on.")]
    draft_id: UUID | None
    changed_at: Timestamp
    in_force: Annotated[
        bool,
        Meta(description="False if the history begins after the moment: then these are the current rules."),
    ]


class RequestExplanation(JsonStruct):
    """What a ruleset does with a request. The rules that are closest to a match come first."""

    ruleset: ChosenRuleset
    decision: ExplainedDecision
    rules: list[ExplainedRule]


class _RequestValues:
    """The values of a request, as one answer shows them."""

    def __init__(self, request: Request) -> None:
        self._shown = {key: _shown(value) for key, value in request.items()}
        self._sizes = {key: len(str(value)) for key, value in self._shown.items()}
        self._left = _MAX_REPEATED

    def of(self, key: str) -> Any:
        """Return the value of a condition key.

        Raises:
            TooCostly: the answer repeats too much.
        """
        self._left -= self._sizes[key]
        if self._left < 0:
            raise TooCostly(
                f"The answer would repeat more than {_MAX_REPEATED >> 20} MiB of the request's values. "
                "Ask with fewer table names and shorter values."
            )
        return self._shown[key]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision, and all rules: the closest first, disabled ones last."""

    decision: ExplainedDecision
    rules: list[ExplainedRule]


def explain(
    rules: Sequence[Rule], request: Mapping[str, object], *, cache_enabled: bool = True
) -> Explanation:
    """Explain the decision on a request, which maps condition keys to values like a row of ``proxy_logs``.

    If ``cache_enabled`` is false, the tenant's configuration has the Gateway decline every cache rule.

    Raises:
        rules.conditions.InvalidRequest: a value of the request has the wrong type.
        TooCostly, CallerGone: see `check_work`; or the answer would be too large.
    """
    decision = match(rules, request)
    values = read_request(request)
    shown = _RequestValues(values)
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
                rule_id=rule.id,
                name=rule.name,
                position=position,
                action=rule.action,
                outcome=outcome,
                fired=traced.fired,
                distance=count_flips(conditions),
                failed=list(_failed(conditions, shown, target=True)),
                conditions=_traced(conditions, shown),
            )
        )
    explained.sort(key=_closeness)
    return Explanation(_explain_decision(decision, rules, request, cache_enabled=cache_enabled), explained)


def _explain_decision(
    decision: Decision, rules: Sequence[Rule], request: Mapping[str, object], *, cache_enabled: bool
) -> ExplainedDecision:
    if decision.action is not Action.CACHE:
        return ExplainedDecision.of(decision, vary_by=None, note=None)
    (decides,) = (rule for rule in rules if rule.id == decision.rule_id)
    values = {
        column: None if value is None else str(value)
        for column, value in vary_values(decides, request).items()
    }
    note = None if cache_enabled else _CACHE_DISABLED
    if note is None and None in values.values():
        missing = ", ".join(column for column, value in values.items() if value is None)
        note = f"The rule varies by {missing}, which the request lacks."
    statuses = decision.statuses if note is None else STATUSES[Action.BYPASS]
    return ExplainedDecision.of(decision, statuses=statuses, vary_by=values, note=note)


def _closeness(explained: ExplainedRule) -> tuple[bool, bool, int, int]:
    distance = explained.distance
    is_disabled = explained.outcome is Outcome.DISABLED
    return is_disabled, distance is None, distance or 0, explained.position


def count_flips(conditions: ConditionTrace, *, target: bool = True) -> int | None:
    """Return how few tests must change their result for the conditions to have the result ``target``.

    Tests count as independent. None if the target cannot be reached (``any`` of nothing).
    """
    if conditions.matched is target:
        return 0
    if conditions.operator == "not":
        return count_flips(conditions.parts[0], target=not target)
    if conditions.operator not in {"all", "any"}:
        return 1
    flips = [count_flips(part, target=target) for part in conditions.parts]
    possible = [count for count in flips if count is not None]
    if (conditions.operator == "all") is target:
        return sum(possible) if len(possible) == len(flips) else None
    return min(possible, default=None)


def _failed(conditions: ConditionTrace, shown: _RequestValues, *, target: bool) -> Iterator[FailedTest]:
    if conditions.matched is target:
        return
    if conditions.operator == "not":
        yield from _failed(conditions.parts[0], shown, target=not target)
    elif conditions.operator in {"all", "any"}:
        for part in conditions.parts:
            yield from _failed(part, shown, target=target)
    elif conditions.key is not None:
        check_work()
        yield FailedTest(
            path=conditions.path,
            key=conditions.key,
            operator=conditions.operator,
            operand=_shown(conditions.operand),
            value=shown.of(conditions.key),
            negated=not target,
            note=_describe_spelling(conditions) if target and conditions.key == "tables" else None,
        )


def _describe_spelling(test: ConditionTrace) -> str | None:
    """Say that the request has a table of a test in another spelling; None if it does not."""
    operands = test.operand if isinstance(test.operand, tuple) else (test.operand,)
    names = sorted(test.value)[:_MAX_ELEMENTS] if isinstance(test.value, frozenset) else ()
    for text in [text for text in operands if isinstance(text, str)][:_MAX_ELEMENTS]:
        check_work()
        pattern = TablePattern.of(text)
        for name in names:
            likeness = pattern.compare(read_name(name))
            if name != text and likeness.counts:
                may = "is" if likeness is Likeness.SAME else "may be"
                name, text = (value[:_MAX_CHARACTERS] for value in (name, text))
                return f"The request names {name}, which {may} {text}. Conditions compare the text."
    return None


def _traced(conditions: ConditionTrace, shown: _RequestValues) -> TracedCondition:
    path, operator, matched = conditions.path, conditions.operator, conditions.matched
    if conditions.key is None:
        parts = [_traced(part, shown) for part in conditions.parts]
        return TracedGroup(path=path, operator=operator, matched=matched, parts=parts)
    check_work()
    return TracedTest(
        path=path,
        operator=operator,
        matched=matched,
        key=conditions.key,
        operand=_shown(conditions.operand),
        value=shown.of(conditions.key),
    )


def _shown(value: object) -> Any:
    """Return a value as JSON. Long texts and lists are cut."""
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        return value[: _MAX_CHARACTERS - 1] + "…"
    if isinstance(value, frozenset | tuple):
        elements = nsmallest(_MAX_ELEMENTS, value) if isinstance(value, frozenset) else value[:_MAX_ELEMENTS]
        return [*map(_shown, elements), *(["…"] if len(value) > _MAX_ELEMENTS else [])]
    return value
