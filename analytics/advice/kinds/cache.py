"""``cache``: cache requests that no rule decides and that repeat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from analytics.advice.choice import choose
from analytics.advice.edits import RuleEdit, new_rule_id
from analytics.advice.evidence import changes_evidence, statements_evidence
from analytics.advice.options import find_options
from analytics.advice.proposal import MIN_SHARE, Kind, Proposal, Variant, describe_seconds
from analytics.advice.requests import NO_RULE
from logs.definitions import PASSED
from rules.dialects.text import WITHOUT_SCHEMA
from rules.language import complete_rule
from tenantadmin.lib.core.formats import count
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.advice.options import Option, Scope
    from analytics.advice.proposal import Current
    from analytics.replay.evidence import EvidenceQuery

MAX_PROPOSALS: Final = 5
#: Fewer hits in the whole window may be chance.
MIN_HITS: Final = 10
#: The caveat of proposals to share results, where the tenant does not say which tables differ per user.
SECURITY_INVISIBLE: Final = "row-level-security-invisible"


class Considered(JsonStruct):
    scopes: Count
    options: Annotated[
        Count, Meta(description="Scopes with lifetimes, with and without an invalidating rule.")
    ]


@dataclass(frozen=True, slots=True)
class CacheProposals:
    """The proposals, and the options that they were chosen from.

    Attributes:
        options: all options, in order.
        covered: the numbers of the statements that a proposal covers.
    """

    proposals: Sequence[Proposal]
    options: Sequence[Option]
    covered: frozenset[int]

    @property
    def considered(self) -> Considered:
        scopes = {option.scope for option in self.options}
        return Considered(scopes=len(scopes), options=len(self.options))


def mine(current: Current) -> CacheProposals:
    """Propose at most `MAX_PROPOSALS`, the best first."""
    options = list(find_options(current))
    safe = [option for option in options if option.saving.is_safe and option.saving.high.hits >= MIN_HITS]
    proposals = []
    covered: set[int] = set()
    taken: set[str] = set()
    for option, value in choose(safe, limit=MAX_PROPOSALS, minimum=MIN_SHARE * current.warehouse_ms):
        proposal = propose_option(current, option, value, taken)
        if proposal is not None:
            proposals.append(proposal)
            covered.update(statement.number for statement in option.scope.statements)
            taken |= {edit.rule_id for edit in proposal.edits if edit.op == "insert"}
    return CacheProposals(proposals, options, frozenset(covered))


def propose_option(current: Current, option: Option, value: int, taken: set[str]) -> Proposal | None:
    """Return the proposal to take an option, which saves ``value``; None if lint warns of its rules.

    Args:
        taken: ids that new rules may not have.
    """
    shared, keyed = (_propose(current, option, value, taken, vary_by=by) for by in ([], ["userName"]))
    proposal = next((one for one in (shared, keyed) if current.is_clean(one.edits)), None)
    if proposal is not shared:
        return proposal
    caveats: tuple[str, ...] = ()
    if any(statement.names_no_schema for statement in option.scope.statements):
        caveats += (WITHOUT_SCHEMA,)
    if current.tables.per_user is None:
        return replace(shared, caveats=(SECURITY_INVISIBLE, *caveats), others=(keyed,))
    return replace(shared, caveats=caveats)


def _propose(
    current: Current, option: Option, value: int, taken: set[str], *, vary_by: list[str]
) -> Proposal:
    scope = option.scope
    label = "one statement" if scope.is_statement else scope.name
    slug = f"cache-{scope.statements[0].names and min(scope.statements[0].names)}-statement"
    rule_id = new_rule_id(slug if scope.is_statement else f"cache-{scope.name}", {*current.ids, *taken})
    rule = complete_rule(
        {
            "id": rule_id,
            "name": f"Cache {label}",
            "conditions": scope.conditions,
            "ttlSeconds": option.ttl_seconds,
            "varyBy": vary_by,
        }
    )
    edits: list[RuleEdit] = [RuleEdit.insert(rule)]
    requests = count(_count(current, scope), "request")
    why = [
        f"No rule decides {requests} of {count(len(scope.statements), 'statement')}.",
        "They only read, and call no function whose result depends on who asks or when.",
        f"Within {describe_seconds(option.ttl_seconds)}, many of them ask for the same result again.",
    ]
    if vary_by and current.tables.per_user is None:
        why.append("Each user gets results of their own, whatever rows the warehouse shows them.")
    elif vary_by:
        why.append("They can read tables that differ per user, so each user gets results of their own.")
    elif current.tables.personal:
        why.append("None of them reads a table that differs per user, so all users can share the results.")
    elif current.tables.per_user is None:
        why.append(
            "All users would share them. If the warehouse shows each user other rows or columns, which no "
            "statement tells, let the rule vary by userName; warehouse.perUserTables names such tables."
        )
    if option.invalidator is not None:
        edits.append(
            option.invalidator.edit(rule_id, name=f"Changes make {label} stale", taken={*taken, rule_id})
        )
        why.append(
            f"{', '.join(option.invalidator.tables)} changed {len(option.invalidator.times)} times: each "
            "change ends the results that were cached before."
        )
    elif any(current.requests.changes_of(statement) for statement in scope.statements):
        why.append("Its tables change so rarely that fewer than 1% of hits would be at risk.")
    else:
        why.append("No statement in the log changes its tables.")
    return Proposal(
        Kind.CACHE,
        scope.name,
        f"Cache {label} {'per user ' if vary_by else ''}for {describe_seconds(option.ttl_seconds)}",
        tuple(why),
        tuple(edits),
        _evidence(current, scope, option),
        estimate=value,
        variant=Variant.PER_USER if vary_by else Variant.SHARED,
    )


def _count(current: Current, scope: Scope) -> int:
    numbers = {statement.number for statement in scope.statements}
    return sum(series.answered for series in current.series_of(NO_RULE) if series.statement.number in numbers)


def _evidence(current: Current, scope: Scope, option: Option) -> tuple[EvidenceQuery, ...]:
    evidence = [statements_evidence(current.days, scope.conditions, where=str(PASSED))]
    if option.invalidator is not None:
        evidence.append(changes_evidence(current.days, option.invalidator.tables))
    return tuple(evidence)
