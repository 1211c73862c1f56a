"""``let-it-sleep``: spare or move what alone wakes the warehouse. ``auto-suspend``: let it sleep earlier."""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from analytics.advice.awake import Awake, Group, Move
from analytics.advice.edits import RuleEdit
from analytics.advice.evidence import statements_evidence
from analytics.advice.kinds import cache, ttl
from analytics.advice.measure import SuspendChange
from analytics.advice.proposal import MIN_SHARE, TTLS, Kind, Proposal, Variant
from analytics.advice.requests import NO_RULE
from analytics.advice.saving import find_saving
from analytics.replay.evidence import EvidenceQuery
from analytics.reports.savings_sql import SAVINGS_SQL, SUSPENDS, fill_savings
from logs.quoting import quote_texts
from tenantadmin.lib.core.formats import duration, durations, number, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.advice.kinds.cache import CacheProposals
    from analytics.advice.options import Option
    from analytics.advice.proposal import Current
    from analytics.replay.job import Job

MAX_PROPOSALS: Final = 2
#: The groups of statements that are tried, by the time that they alone keep the warehouse awake.
_MAX_GROUPS: Final = 4
#: From this share of the best gain on, a lifetime or suspend counts as equal. The gentlest of these wins.
_NEAR: Final = 0.97
#: The minutes of the hour that a scheduled refresh could have.
_MINUTES: Final = range(0, 60, 5)
#: Requests are scheduled if this share of them begins in the same minute of the hour.
_SCHEDULED: Final = 0.8


def propose(current: Current, job: Job, cached: CacheProposals) -> tuple[list[Proposal], list[Proposal]]:
    """Propose ``let-it-sleep`` and ``auto-suspend``, if the warehouse bills the time awake."""
    terms = job.pricing.on(job.last_day)
    if terms.billing != "suspending" or terms.per_hour is None:
        return [], []
    awake = Awake(current.connection, job)
    return _propose_sleep(current, awake, cached), _propose_suspend(awake, job)


def _propose_sleep(current: Current, awake: Awake, cached: CacheProposals) -> list[Proposal]:
    """Propose to spare or move what alone wakes the warehouse."""
    least = max(MIN_SHARE * awake.ms, 1)
    proposals: list[Proposal] = []
    covered: set[int] = set()
    for group, alone_ms in _find_groups(current, awake, cached.options):
        if alone_ms < least or len(proposals) == MAX_PROPOSALS:
            break
        if covered & group.statements:
            continue
        awake.isolate(group)
        ways = [
            *_find_rule(current, awake, cached, group, least),
            *_find_minute(current, awake, group, least),
        ]
        if ways:
            reason = (
                f"They alone woke the warehouse, or kept it awake, for {duration(alone_ms)} on the bill. "
                "At other times it is awake for other requests anyway."
            )
            ways = [
                replace(
                    way,
                    kind=Kind.LET_IT_SLEEP,
                    title=f"Let the warehouse sleep: {way.title[0].lower()}{way.title[1:]}",
                    why=(reason, *way.why),
                    others=(),
                )
                for way in ways
            ]
            proposals.append(replace(ways[0], others=tuple(ways[1:])))
            covered |= group.statements
    return proposals


def _propose_suspend(awake: Awake, job: Job) -> list[Proposal]:
    """Propose another time until the warehouse suspends, if it bills less by that."""
    now = job.pricing.on(job.last_day).suspend_seconds
    gains = {seconds: awake.ms - awake.suspending(seconds) for seconds in SUSPENDS if seconds != now}
    best = max(gains.values())
    if best < max(MIN_SHARE * awake.ms, 1):
        return []
    then = max(seconds for seconds, gain in gains.items() if gain >= _NEAR * best)
    savings = fill_savings(
        SAVINGS_SQL, first=job.first_day, before=job.before, last=job.last_day, pricing=job.pricing
    )
    query = EvidenceQuery(
        name="auto-suspend",
        sql=f"SELECT ruleId::INTEGER AS autoSuspendSeconds, sum(awakeMs)::BIGINT AS awakeMs FROM ({savings})"
        " WHERE scope = 'suspend' GROUP BY ALL ORDER BY ALL",
    )
    billed_now, billed_then = durations(awake.ms, awake.ms - gains[then])
    why = (
        f"After {now} seconds the executions bill {billed_now}, after {then} seconds {billed_then}.",
        (
            f"First change it in the warehouse. Snowflake: ALTER WAREHOUSE … SET AUTO_SUSPEND = {then}. "
            f"Databricks: Auto stop of the SQL warehouse, {span(then)} (auto_stop_mins = {then // 60})."
        ),
        (
            f"Then write it in Configuration: under Prices, add a price from today that suspends after "
            f"{span(then)}. From then on its effect is measured."
        ),
        (
            "The warehouse starts more often. Each start begins with an empty cache of its own, which no "
            "log shows, so the first requests after it may take longer."
        ),
    )
    return [
        Proposal(
            Kind.AUTO_SUSPEND,
            str(then),
            f"Let the warehouse suspend after {then} seconds, not {now}",
            why,
            (),
            (query,),
            estimate=gains[then],
            suspend=SuspendChange(now=now, then=then),
        )
    ]


def _find_groups(current: Current, awake: Awake, options: Sequence[Option]) -> list[tuple[Group, int]]:
    """Return the groups that most keep the warehouse awake alone, each with these milliseconds."""
    groups = {
        *(Group(_numbers(option), NO_RULE) for option in options),
        *(
            Group(frozenset(one.statement.number for one in current.series_of(index)), index)
            for index, _ in current.cache_rules()
        ),
    }
    sessions = awake.sessions()
    groups |= {Group(session.statements) for session in sessions if len(session.statements) == 1}
    found = [
        (group, sum(session.ms for session in sessions if session.statements <= group.statements))
        for group in groups
    ]
    # A narrower group that keeps it awake as long is better, and so is a group that a rule may cover.
    found.sort(
        key=lambda pair: (-pair[1], len(pair[0].statements), pair[0].rule is None, sorted(pair[0].statements))
    )
    return found[: 3 * _MAX_GROUPS]


def _numbers(option: Option) -> frozenset[int]:
    return frozenset(statement.number for statement in option.scope.statements)


def _find_rule(
    current: Current, awake: Awake, cached: CacheProposals, group: Group, least: float
) -> Iterator[Proposal]:
    """Yield the rule, or the longer lifetime of a rule, that spares the most."""
    if group.rule is None:
        return
    if group.rule == NO_RULE:
        options = [
            option
            for option in cached.options
            if _numbers(option) == group.statements and option.saving.is_safe
        ]
        found = [(option.ttl_seconds, option, awake.cached(group, option.lifetime)) for option in options]
        for _, option, ms in _choose(awake, found, least):
            proposal = cache.propose_option(current, option, awake.ms - ms, set())
            if proposal is not None:
                yield proposal
                yield from proposal.others
        return
    rule, lifetime = current.rules[group.rule], current.lifetimes[group.rule]
    series = current.series_of(group.rule)
    longer = [replace(lifetime, ttl_ms=1000 * seconds) for seconds in TTLS if seconds > rule.ttl_seconds]
    safe = [one for one in longer if find_saving(current, series, one).is_safe]
    for seconds, _, ms in _choose(
        awake, [(one.ttl_ms // 1000, one, awake.cached(group, one)) for one in safe], least
    ):
        document = current.documents[group.rule]
        edits = (RuleEdit.replace({**document, "ttlSeconds": seconds}),)
        if current.is_clean(edits):
            yield ttl.propose_lifetime(current, document, seconds, edits, awake.ms - ms)


def _choose(awake: Awake, found: Sequence[tuple[int, Any, int]], least: float) -> list[tuple[int, Any, int]]:
    """Return the shortest lifetime that bills about as little as the best one; none if that is too little.

    ``found`` has the seconds of each lifetime, what has it, and what is billed with it.
    """
    best = max((awake.ms - ms for *_, ms in found), default=0)
    if best < least:
        return []
    return [min((one for one in found if awake.ms - one[2] >= _NEAR * best), key=lambda one: one[0])]


def _find_minute(current: Current, awake: Awake, group: Group, least: float) -> Iterator[Proposal]:
    """Yield the minute of the hour to which a scheduled refresh could move."""
    minutes = awake.minutes()
    if not minutes:
        return
    usual = max(minutes, key=lambda minute: (minutes[minute], -minute))
    if minutes[usual] < _SCHEDULED * sum(minutes.values()):
        return
    moves = [Move(group, minute) for minute in _MINUTES if minute != usual]
    gains = {move: awake.ms - awake.moved(move) for move in moves}
    best = max(moves, key=lambda move: gains[move])
    if gains[best] < least:
        return
    texts = sorted(one.text for one in current.requests.statements if one.number in group.statements)
    yield Proposal(
        Kind.LET_IT_SLEEP,
        texts[0],
        f"Run {number(len(texts))} scheduled statements at minute {best.minute} of the hour",
        (
            f"Most of them begin at minute {usual}.",
            f"At minute {best.minute} the warehouse is more often awake for other requests.",
            "Only the owner of the schedule can move them, so there is no draft.",
        ),
        (),
        (statements_evidence(current.days, {}, where=f"standardizedSql IN ({quote_texts(texts)[1:-1]})"),),
        estimate=gains[best],
        variant=Variant.SCHEDULE,
        move=best,
    )
