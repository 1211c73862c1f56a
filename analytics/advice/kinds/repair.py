"""``leak-fix``: stop serving one user's results to another.

``invalidator`` and ``split``: prevent hits that are older than a change of their tables.
"""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from analytics.advice.estimate import find_saving
from analytics.advice.proposal import (
    Invalidator,
    Kind,
    Proposal,
    RuleEdit,
    Variant,
    changes_evidence,
    new_rule_id,
    rule_evidence,
    split_rule,
)
from analytics.replay.result import EvidenceQuery
from analytics.reports.sql import leak_findings_sql
from logs.quoting import quote_text
from rules.conditions import parse_conditions
from rules.language import complete_rule
from rules.tables.logged import LoggedNames
from rules.tables.names import TableName
from tenantadmin.lib.core.formats import number

if TYPE_CHECKING:
    from analytics.advice.proposal import Current
    from rules.language import Rule

#: The most statements that a new rule names.
_MAX_STATEMENTS: Final = 20
_CERTAIN: Final = "grade = 'certain'"


@dataclass(frozen=True, slots=True)
class _Leak:
    """A statement whose cached results several users got, how many times, and to how many users."""

    statement: str
    served: int
    users: int


def propose_cures(current: Current) -> list[Proposal]:
    """Propose to cure each rule that shares results which depend on the user, as the leak report finds them.

    A proposal is the simplest cure; the other cures are its ``others``.
    """
    sql = f"SELECT ruleId, statement, served::BIGINT, len(users) FROM ({_findings(current)}) WHERE {_CERTAIN}"
    leaks: dict[str | None, list[_Leak]] = defaultdict(list)
    for rule_id, *found in current.connection.execute(sql).fetchall():
        leaks[rule_id].append(_Leak(*found))
    proposals = []
    for index, rule in current.cache_rules():
        # A leak that an earlier revision made may be cured.
        decided = {series.statement.text for series in current.series_of(index)}
        own = [leak for leak in leaks[rule.id] if leak.statement in decided]
        if own and rule.is_shared:
            proposals += _choose_cure(current, _find_cures(current, index, rule, own))
    return proposals


def _choose_cure(current: Current, cures: Iterable[Proposal]) -> list[Proposal]:
    """Return the first cure that is clean, with the others."""
    clean = [cure for cure in cures if current.is_clean(cure.edits)]
    return [replace(clean[0], others=tuple(clean[1:]))] if clean else []


def _find_cures(current: Current, index: int, rule: Rule, leaks: Sequence[_Leak]) -> list[Proposal]:
    document = current.documents[index]
    columns = [*(rule.vary_by or ()), "userName"]
    evidence = _evidence(current, rule.id)
    served, users = sum(leak.served for leak in leaks), max(leak.users for leak in leaks)
    why = (
        f"Statements whose results depend on who asks, and that shared a result: {number(len(leaks))}.",
        f"Shared results were served {number(served)} times, to up to {number(users)} users.",
    )

    def cure(variant: Variant, title: str, reason: str, edits: Sequence[RuleEdit]) -> Proposal:
        return Proposal(
            Kind.LEAK_FIX, rule.id, title, (*why, reason), tuple(edits), (evidence,), variant=variant
        )

    cures = [
        cure(
            Variant.VARY,
            f"Give each user their own results of {rule.name}",
            "The whole rule varies by userName, so users share none of its results.",
            [RuleEdit.replace({**document, "varyBy": columns})],
        )
    ]
    part = _find_part(current, index, leaks)
    if part is None:
        return cures
    bypass = complete_rule(
        {
            "id": new_rule_id(f"bypass-{rule.id}-per-user", current.ids),
            "name": f"{rule.name}: results that depend on the user"[:200],
            "action": "bypass",
            "conditions": {"all": [document["conditions"], part]},
        }
    )
    narrower = split_rule(
        current,
        index,
        part,
        part_id=new_rule_id(f"{rule.id}-per-user", current.ids),
        name=f"{rule.name}: per user",
        vary_by=columns,
    )
    return [
        *cures,
        cure(
            Variant.BYPASS,
            f"Do not cache statements of {rule.name} whose results depend on who asks",
            "These statements go to the warehouse each time. Users share the other results as before.",
            [RuleEdit.insert(bypass, before=rule.id)],
        ),
        cure(
            Variant.NARROWER,
            f"Give each user their own results of statements of {rule.name} that depend on who asks",
            "Only these statements get a rule that varies by userName. Users share the others as before.",
            narrower,
        ),
    ]


def _find_part(current: Current, index: int, leaks: Sequence[_Leak]) -> Mapping[str, Any] | None:
    """Return conditions for the statements that leak; None if they are too many to name."""
    texts = {leak.statement for leak in leaks}
    leaking = {series.statement for series in current.series_of(index) if series.statement.text in texts}
    parts: list[dict[str, Any]] = []
    if personal := current.tables.personal:
        logged = LoggedNames(current.tables)
        missed = {
            name for text in personal for name in logged.find_missed(text, current.tables.pattern(text))
        }
        tables = {"tables": {"containsAny": [*personal, *sorted(missed)], "ignoreCase": True}}
        condition = parse_conditions(tables)
        others = {statement for statement in leaking if not statement.fits(condition)}
        parts += [tables] if others != leaking else []
        leaking = others
    named = sorted({statement.text for statement in leaking})
    if len(named) > _MAX_STATEMENTS:
        return None
    if named:
        parts.append({"standardizedSql": {"in": named}})
    return parts[0] if len(parts) == 1 else {"any": parts}


def _findings(current: Current) -> str:
    return leak_findings_sql(first=current.first_day, last=current.last_day, warehouse=current.tables)


def _evidence(current: Current, rule_id: str) -> EvidenceQuery:
    return EvidenceQuery(
        name="shared-results",
        sql="SELECT statement AS standardizedSql, served::BIGINT AS served, len(users) AS users"
        f" FROM ({_findings(current)}) WHERE {_CERTAIN} AND ruleId = {quote_text(rule_id)}"
        f" ORDER BY served DESC, standardizedSql LIMIT {_MAX_STATEMENTS}",
    )


def propose_repairs(current: Current) -> list[Proposal]:
    """Propose one repair for each cache rule with hits at risk."""
    proposals = []
    for index, rule in current.cache_rules():
        low, _, hits = current.risk.get(rule.id, (0, 0, 0))
        if low and (proposal := _repair(current, index, rule, low=low, hits=hits)):
            proposals.append(proposal)
    return proposals


def _repair(current: Current, index: int, rule: Rule, *, low: int, hits: int) -> Proposal | None:
    lifetime = current.lifetimes[index]
    all_series = current.series_of(index)
    fired = set(lifetime.markers)
    # Writes to tables that the rule's statements read, if they do not invalidate the rule.
    requests = current.requests
    statements = [series.statement for series in all_series]
    writes = requests.writes_to(requests.changed_by(statements))
    missed = [(write, tables) for write, tables in writes if not fired.issuperset(write.times)]
    if not missed:
        return None
    changed = frozenset[TableName]().union(*(tables for _, tables in missed))
    invalidator = Invalidator(current, [write for write, _ in missed], changed)
    repaired = replace(lifetime, markers=sorted({*lifetime.markers, *invalidator.times}))
    part = {"tables": {"containsAny": requests.spell(statements, changed)}}
    condition = parse_conditions(part)
    inside = [series for series in all_series if series.statement.fits(condition)]
    outside = [series for series in all_series if not series.statement.fits(condition)]
    now = find_saving(current.requests, all_series, lifetime)
    inside_repaired, outside_now = (
        find_saving(current.requests, inside, repaired),
        find_saving(current.requests, outside, lifetime),
    )
    whole = inside_repaired.plus(find_saving(current.requests, outside, repaired))
    split = inside_repaired.plus(outside_now)
    if split.high.risk_low * 2 > now.high.risk_low:
        return None
    if outside and split.ms - whole.ms >= current.least_ms:
        edits, kind = _split(current, rule, index, part, invalidator), Kind.SPLIT
    else:
        edits = [invalidator.edit(rule.id, name=f"Changes make {rule.name} stale")]
        kind = Kind.INVALIDATOR
    if not current.is_clean(edits):
        return None
    return _propose_repair(current, rule, kind, edits, invalidator, low=low, hits=hits)


def _split(
    current: Current, rule: Rule, index: int, part: dict[str, Any], invalidator: Invalidator
) -> list[RuleEdit]:
    """Return edits that move a part of a rule to a new rule, which ``invalidator`` invalidates too."""
    part_id = new_rule_id(f"{rule.id}-part", current.ids)
    name = f"{rule.name}: {', '.join(part['tables']['containsAny'])}"
    edits = split_rule(current, index, part, part_id=part_id, name=name, vary_by=rule.vary_by or ())
    last = invalidator.edit(part_id, name=f"Changes make a part of {rule.name} stale")
    return edits if any(edit.rule_id == last.rule_id for edit in edits) else [*edits, last]


def _propose_repair(
    current: Current,
    rule: Rule,
    kind: Kind,
    edits: Sequence[RuleEdit],
    invalidator: Invalidator,
    *,
    low: int,
    hits: int,
) -> Proposal:
    tables = ", ".join(invalidator.tables)
    at_risk = f"{number(low)} of {number(hits)} hits of {rule.name}"
    why = [
        f"{at_risk} got a result that is older than a change of a table it reads.",
        f"{tables} changed {len(invalidator.times)} times, and not every change invalidates the rule.",
    ]
    if kind is Kind.SPLIT:
        why.append(
            "Only the statements that read these tables get a rule of their own, so that the others keep "
            "their results."
        )
    return Proposal(
        kind,
        rule.id,
        f"Invalidate {rule.name} when {tables} change{'s' if len(invalidator.tables) == 1 else ''}",
        tuple(why),
        tuple(edits),
        (changes_evidence(current.days, invalidator.tables), rule_evidence(current.days, rule.id)),
    )
