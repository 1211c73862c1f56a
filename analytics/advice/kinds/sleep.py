"""``let-it-sleep``: spare or move what alone wakes the warehouse. ``auto-suspend``: let it sleep earlier."""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from analytics.advice.estimate import NO_RULE, find_saving
from analytics.advice.kinds.cache import propose_option
from analytics.advice.kinds.lifetime import propose_lifetime
from analytics.advice.measure import MINUTE_MS, Group, Move, SuspendChange
from analytics.advice.proposal import MIN_SHARE, TTLS, Kind, Proposal, Variant, statements_evidence
from analytics.replay.count import APART, KEPT, bill_executions, fill_job
from analytics.replay.load import NUMBER_OF, registered
from analytics.replay.play import find_executions
from analytics.replay.result import EvidenceQuery
from analytics.reports.savings_sql import SAVINGS_SQL, SUSPENDS, fill_savings, join_overlaps
from logs.layout import HOUR_MS
from logs.quoting import quote_texts
from tenantadmin.lib.core.formats import duration, durations, number, span

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from accounts.tenants.pricing import Pricing
    from analytics.advice.kinds.cache import CacheProposals, Option
    from analytics.advice.proposal import Current
    from analytics.replay.load import Job
    from analytics.replay.play import Lifetime

#: Sessions of more statements are not the fault of a few.
_MAX_STATEMENTS: Final = 8


class Awake:
    """Bills the current executions with changes. Needs the table `KEPT` and ``statement_shape``."""

    def __init__(self, connection: DuckDBPyConnection, job: Job) -> None:
        self._connection, self._job = connection, job
        self._scopes = [
            row[0]
            for row in connection.execute(f"SELECT DISTINCT scope FROM {KEPT} ORDER BY scope").fetchall()
        ]
        self.ms = self._bill(f"FROM {KEPT}")

    def sessions(self) -> list[tuple[int, frozenset[int]]]:
        """Return the sessions of few statements: the ms that each bills, and its statements by number."""
        rows = self._connection.execute(fill_job(_SESSIONS, self._job)).fetchall()
        return [(ms, frozenset(numbers)) for ms, numbers in rows]

    def isolate(self, group: Group) -> None:
        """Take the executions of a group out, for `cached` and `moved`."""
        self._connection.execute(
            f"CREATE OR REPLACE TABLE own_execution AS FROM {KEPT} WHERE n IN ({group.numbers})"
        )
        self._connection.execute(fill_job(_OTHERS, self._job))

    def moved(self, move: Move) -> int:
        """Return the time that is billed if the isolated executions run in another minute."""
        own = move.apply("own_execution")
        return self._bill(
            f"FROM other_execution UNION ALL SELECT scope, host, day, starts, took FROM ({own})"
        )

    def cached(self, group: Group, lifetime: Lifetime) -> int:
        """Return the time that is billed if the results of the isolated group had this lifetime."""
        parts = []
        for scope in self._scopes:
            # Requests that differ in hidden literals have keys of their own, or one.
            hidden = "-played.n" if scope == APART else "pair"
            candidates = self._connection.execute(
                _CANDIDATES.format(numbers=group.numbers, hidden=hidden)
            ).to_arrow_table()
            chain = find_executions(candidates, [lifetime])
            executed = candidates.take(chain.executions["position"]).select(["n"])
            name = f"cached_{scope}"
            with registered(self._connection, executed=executed):
                self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM executed")
            parts.append(
                f"SELECT '{scope}' AS scope, {NUMBER_OF['serverHostname']} AS host, day,"
                f" requested_at AS starts, took_ms AS took FROM {name} JOIN request USING (n)"
                " WHERE took_ms IS NOT NULL"
            )
        return self._bill(" UNION ALL ".join(["FROM other_execution", *parts]))

    def minutes(self) -> dict[int, int]:
        """Return how many isolated executions began in each minute of an hour."""
        return dict(
            self._connection.execute(
                f"SELECT starts % {HOUR_MS} // {MINUTE_MS}, count(*) FROM own_execution"
                f" WHERE scope = '{APART}' GROUP BY ALL"
            ).fetchall()
        )

    def suspending(self, seconds: int) -> int:
        """Return the time that is billed if the warehouse suspended after these seconds."""
        return self._bill(f"FROM {KEPT}", self._job.pricing.suspending_after(seconds))

    def _bill(self, executions: str, pricing: Pricing | None = None) -> int:
        """Return the milliseconds, the mean of the bounds."""
        bills = bill_executions(self._connection, executions, self._job, pricing=pricing).values()
        return sum(bill.ms for bill in bills) // max(len(bills), 1)


#: The sessions of few statements, clipped to the window.
_SESSIONS: Final = f"""
    WITH execution AS (
        SELECT n, host, starts, starts + took AS ended, starts + took + $suspend AS reach FROM {KEPT}
        WHERE scope = '{APART}'
    ),
    placed AS (
        SELECT *, starts > coalesce(max(reach) OVER (
                PARTITION BY host ORDER BY starts, ended ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), starts - 1) AS opens
        FROM execution
    ),
    numbered AS (
        SELECT *, count(*) FILTER (opens) OVER (
                PARTITION BY host ORDER BY starts, ended ROWS UNBOUNDED PRECEDING
            ) AS session
        FROM placed
    ),
    session AS (
        SELECT host, min(numbered.starts) AS starts, max(reach) AS reach, list(DISTINCT number) AS numbers
        FROM numbered LEFT JOIN current USING (n) LEFT JOIN statement_shape USING (statement, shape)
        GROUP BY host, session
        HAVING count(DISTINCT number) <= {_MAX_STATEMENTS} AND bool_and(number IS NOT NULL)
    )
    SELECT least(greatest(reach, starts + $minimum), epoch_ms($last::TIMESTAMP) + 86400000)
            - greatest(starts, epoch_ms($first::TIMESTAMP)) AS ms, numbers
    FROM session WHERE ms > 0
"""
#: The other executions, joined to few, so that each bill reads few rows.
_OTHERS: Final = f"""
    CREATE OR REPLACE TABLE other_execution AS
    WITH bucket AS (
        SELECT scope, host, min(starts) AS starts, max(reach) AS reach FROM (
            SELECT scope, host, starts, starts // $bucket AS bucket, starts + took + $suspend AS reach
            FROM {KEPT} ANTI JOIN own_execution USING (scope, n)
        ) GROUP BY scope, host, bucket
    ),
    joined AS (
    {join_overlaps(keys="scope, host", table="bucket")}
    )
    SELECT scope, host, DATE '1970-01-01' AS day, starts, reach - starts - $suspend AS took FROM joined
"""
_CANDIDATES: Final = """
    SELECT played.n, played.requested_at, played.work_ms::BIGINT AS work_ms,
        played.is_failing::BIGINT AS is_failing, 0::BIGINT AS rule,
        dense_rank() OVER (
            ORDER BY restart, vary, statement, if(kind = 'open', {hidden}, identity), kind = 'open'
        )::BIGINT AS key
    FROM current AS played
    WHERE played.n IN ({numbers})
    ORDER BY key, played.n
"""
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
    in_force = [job.pricing.on(job.last_day, host) for host in job.pricing.each()]
    if all(terms.billing != "suspending" or terms.per_hour is None for terms in in_force):
        return [], []
    awake = Awake(current.connection, job)
    # Of several warehouses, each has its own time.
    return _propose_sleep(current, awake, cached), [] if job.pricing.hosts else _propose_suspend(awake, job)


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
        f"It bills {billed_now} if it suspends after {now} seconds, {billed_then} after {then} seconds.",
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
        *(Group(option.scope.numbers, NO_RULE) for option in options),
        *(
            Group(frozenset(one.statement.number for one in current.series_of(index)), index)
            for index, _ in current.cache_rules()
        ),
    }
    sessions = awake.sessions()
    groups |= {Group(statements) for _, statements in sessions if len(statements) == 1}
    found = [
        (group, sum(ms for ms, statements in sessions if statements <= group.statements)) for group in groups
    ]
    # A narrower group that keeps it awake as long is better, and so is a group that a rule may cover.
    found.sort(
        key=lambda pair: (-pair[1], len(pair[0].statements), pair[0].rule is None, sorted(pair[0].statements))
    )
    return found[: 3 * _MAX_GROUPS]


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
            if option.scope.numbers == group.statements and option.saving.is_safe
        ]
        found = [(option.ttl_seconds, option, awake.cached(group, option.lifetime)) for option in options]
        for _, option, ms in _choose(awake, found, least):
            proposal = propose_option(current, option, awake.ms - ms, set())
            if proposal is not None:
                yield proposal
                yield from proposal.others
        return
    rule, lifetime = current.rules[group.rule], current.lifetimes[group.rule]
    series = current.series_of(group.rule)
    longer = [replace(lifetime, ttl_ms=1000 * seconds) for seconds in TTLS if seconds > rule.ttl_seconds]
    safe = [one for one in longer if find_saving(current.requests, series, one).is_safe]
    for seconds, _, ms in _choose(
        awake, [(one.ttl_ms // 1000, one, awake.cached(group, one)) for one in safe], least
    ):
        yield from propose_lifetime(current, group.rule, seconds, awake.ms - ms)


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
