"""Explain why requests got no recommendation."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from analytics.advice.options import is_candidate
from analytics.advice.requests import NO_RULE
from logs.definitions import BYPASSED
from rules.language import Action
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analytics.advice.options import Option
    from analytics.advice.proposal import Current
    from analytics.advice.requests import Statement

_MAX_EXAMPLES: Final = 3
_MAX_WORDS: Final = 10

REASONS: Final = {
    "per-user": "The result depends on who asks. A cache would serve one user's result to another.",
    "non-deterministic": "The result of these statements changes by itself, or the log does not say.",
    "no-tables": "The log does not say which tables these statements read.",
    "not-read-only": "These statements change something, or the log does not say that they only read.",
    "changes-too-often": "The tables change so often that more than 1% of hits would be at risk, or that "
    "results would be invalidated before they are asked for again.",
    "too-little-to-save": "They are too rarely asked again, or too cheap, to be worth a rule.",
    "decided-not-to-cache": "A rule bypasses or denies these requests. Recommendations never undo that.",
}


class NotProposed(JsonStruct):
    """Requests that go to the warehouse, and for which nothing is proposed."""

    code: str
    why: str
    statements: Count
    requests: Count
    warehouse_ms: Count
    examples: Annotated[list[str], Meta(description="The dearest statements.")]
    words: Annotated[
        tuple[str, ...],
        Meta(description="The words on which their results depend, such as `CURRENT_USER`, at most 10."),
    ] = ()


@dataclass
class Refusal:
    """Requests without a proposal, for one reason. ``warehouse_ms`` is their warehouse time."""

    code: str
    requests: int = 0
    warehouse_ms: int = 0
    by_statement: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    words: set[str] = field(default_factory=set)

    def add(self, statement: str, *, requests: int, ms: int, word: str | None = None) -> None:
        self.requests += requests
        self.warehouse_ms += ms
        self.by_statement[statement] += ms
        if word is not None:
            self.words.add(word)

    def describe(self) -> NotProposed:
        dearest = sorted(self.by_statement.items(), key=lambda found: (-found[1], found[0]))
        return NotProposed(
            code=self.code,
            why=REASONS[self.code],
            statements=len(self.by_statement),
            requests=self.requests,
            warehouse_ms=self.warehouse_ms,
            examples=[text for text, _ in dearest[:_MAX_EXAMPLES]],
            words=tuple(sorted(self.words)[:_MAX_WORDS]),
        )


def find_refusals(
    current: Current, options: Iterable[Option], *, proposed: frozenset[int]
) -> list[NotProposed]:
    """Return, by reason, the requests that go to the warehouse and got no proposal.

    Args:
        proposed: the numbers of the statements that a proposal covers.
    """
    refusals = {code: Refusal(code) for code in REASONS}
    unsafe = _find_unsafe(options)
    for series in current.series_of(NO_RULE):
        statement = series.statement
        if statement.number in proposed:
            continue
        code = _find_reason(statement, is_unsafe=statement.number in unsafe)
        word = {"per-user": statement.word, "non-deterministic": statement.time_word}.get(code)
        refusals[code].add(statement.text, requests=series.answered, ms=sum(series.works), word=word)
    for text, requests, ms in _find_decided(current):
        refusals["decided-not-to-cache"].add(text, requests=requests, ms=ms)
    return [refusal.describe() for refusal in refusals.values() if refusal.by_statement]


def _find_reason(statement: Statement, *, is_unsafe: bool) -> str:
    request = statement.request
    if statement.word:
        return "per-user"
    if request["isReadOnly"] is not True:
        return "not-read-only"
    if request["hasNonDeterministicFunctions"] is not False or statement.time_word:
        return "non-deterministic"
    if not is_candidate(statement):
        return "no-tables"
    return "changes-too-often" if is_unsafe else "too-little-to-save"


def _find_unsafe(options: Iterable[Option]) -> set[int]:
    """Return the statements whose options were refused only because of stale risk."""
    return {
        number
        for option in options
        if not option.saving.is_safe
        for number, saving in option.savings.items()
        if saving.high.hits
    }


def _find_decided(current: Current) -> Sequence[tuple[str, int, int]]:
    rules = [
        index
        for index, rule in enumerate(current.rules)
        if rule.enabled and rule.action in {Action.BYPASS, Action.DENY}
    ]
    return current.connection.execute(
        f"""
        SELECT statement.text, count(*) FILTER ({BYPASSED.of("status")}), sum(work_ms)::BIGINT
        FROM current JOIN statement USING (statement)
        WHERE is_counted AND NOT is_change AND list_contains($rules::BIGINT[], rule)
        GROUP BY statement.text ORDER BY statement.text
        """,  # noqa: S608
        {"rules": rules},
    ).fetchall()
