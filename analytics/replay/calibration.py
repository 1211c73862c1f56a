"""Compare the replay of the ruleset that was in force with the log.

Section "Honesty" of the definition (docs/replay.md).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from logs.definitions import BYPASSED, FAILED, HIT, REQUEST, SHARED, SPARED, STORED_MISS, Statuses
from logs.quoting import quote_texts
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.outcome import Outcome

ReplayGrade: TypeAlias = Literal["good", "fair", "poor"]

_GOOD: Final = 0.995
_FAIR: Final = 0.98

#: A Gateway serves stale results if its log has more than this share of the replay's stale hits as HIT.
_SERVES_STALE: Final = 0.01

#: The cause of a difference between the replayed and the logged status: the first that applies.
_WHY: Final = f"""
    CASE WHEN logged_rule IS DISTINCT FROM replayed_rule THEN 'other-rule'
    WHEN {FAILED.of("logged")} THEN 'not-executed'
    WHEN is_stale THEN if($serves_stale, 'stale-result', 'gateway-never-stale')
    WHEN {BYPASSED.of("logged")} OR {BYPASSED.of("status")} THEN 'gateway-declines'
    WHEN kind = 'open' THEN 'literals-hidden'
    WHEN is_cached AND reason = 0 AND {SPARED.of("logged")} THEN 'cached-before'
    WHEN is_later THEN 'differed-before'
    WHEN n IN (FROM simultaneous) THEN 'same-millisecond'
    WHEN is_cached THEN 'other-cache-state'
    ELSE 'unexplained' END
"""


class Bounds(JsonStruct):
    """What is certain, what is likely, and what is possible where the log hides literals."""

    low: Count
    likely: Count | None
    high: Count


class LoggedReplayed(JsonStruct):
    logged: Count
    replayed: Count


class CalibratedRule(JsonStruct):
    rule_id: str
    hits: LoggedReplayed
    misses: LoggedReplayed


class CalibrationCause(JsonStruct):
    logged: str
    replayed: str
    count: Count
    why: str


class Calibration(JsonStruct):
    """The log compared with the replay of the ruleset that was in force."""

    rows: Count
    equal: Count
    share: float | None
    grade: ReplayGrade
    rules: list[CalibratedRule]
    causes: list[CalibrationCause]
    requests: Annotated[
        LoggedReplayed | None,
        Meta(description="Hits, misses and not cached, of `rows`. Absent in replays of earlier releases."),
    ] = None


class MovedRequests(JsonStruct):
    """Requests whose status changes from the current ruleset to the replayed one."""

    from_: str
    to: str
    count: Annotated[Count, Meta(description="Where the log hides literals, as if all of them differed.")]
    examples: Annotated[list[str], Meta(description="`logId`s, at most three.")]
    bounds: Annotated[
        Bounds | None, Meta(description="Of the count, as of hits. Absent in replays of earlier releases.")
    ] = None


def calibrate(connection: DuckDBPyConnection, outcome: Outcome) -> Calibration:
    """Compare the counted rows with the log."""
    ids = [rule.id for rule in outcome.decisions.rules]
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW compared AS
        SELECT outcome.*, logged_rule,
            list_extract({quote_texts(ids)}::VARCHAR[], outcome.rule + 1) AS replayed_rule
        FROM {outcome.table} AS outcome JOIN request USING (n) WHERE outcome.is_counted
        """  # noqa: S608
    )
    # Cache requests whose status differs. The first difference of a result may cause the later ones.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE differing AS
        SELECT n, rule, restart, vary, identity, requested_at,
            n > min(n) OVER (PARTITION BY rule, restart, vary, identity) AS is_later
        FROM {outcome.table} WHERE is_cached AND logged <> status
        """  # noqa: S608
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE simultaneous AS
        SELECT differing.n FROM differing JOIN {outcome.table} AS other
            USING (rule, restart, vary, identity, requested_at)
        WHERE other.is_cached AND other.n <> differing.n
        """  # noqa: S608
    )
    causes = connection.execute(
        f"""
        SELECT logged, status, count(*), {_WHY} AS why FROM compared LEFT JOIN differing USING (n)
        WHERE logged <> status
        GROUP BY logged, status, why ORDER BY count(*) DESC, logged, status, why
        """,  # noqa: S608
        {"serves_stale": _serves_stale(connection, outcome)},
    ).fetchall()
    logged, replayed = Counter[tuple[str | None, str]](), Counter[tuple[str | None, str]]()
    rows = equal = 0
    for logged_rule, replayed_rule, logged_status, status, count in connection.execute(
        "SELECT logged_rule, replayed_rule, logged, status, count(*) FROM compared GROUP BY ALL"
    ).fetchall():
        rows += count
        equal += count if logged_status == status else 0
        logged[logged_rule, logged_status] += count
        replayed[replayed_rule, status] += count
    rule_ids = {rule_id for rule_id, _ in (*logged, *replayed) if rule_id is not None}
    order = {rule_id: index for index, rule_id in enumerate(ids)}
    share = equal / rows if rows else None

    def count_statuses(rule_id: str, statuses: Statuses) -> LoggedReplayed:
        return LoggedReplayed(
            logged=sum(logged[rule_id, status] for status in statuses),
            replayed=sum(replayed[rule_id, status] for status in statuses),
        )

    def count_requests(side: Counter[tuple[str | None, str]]) -> int:
        return sum(count for (_, status), count in side.items() if status in REQUEST)

    return Calibration(
        rows=rows,
        equal=equal,
        share=share,
        grade=_grade(share),
        rules=[
            CalibratedRule(
                rule_id=rule_id,
                hits=count_statuses(rule_id, HIT),
                misses=count_statuses(rule_id, STORED_MISS),
            )
            for rule_id in sorted(rule_ids, key=lambda rule_id: (order.get(rule_id, len(order)), rule_id))
        ],
        causes=[
            CalibrationCause(logged=logged_status, replayed=status, count=count, why=why)
            for logged_status, status, count, why in causes
        ],
        requests=LoggedReplayed(logged=count_requests(logged), replayed=count_requests(replayed)),
    )


def _serves_stale(connection: DuckDBPyConnection, outcome: Outcome) -> bool:
    """Return True if the log has HIT for some requests that the replay serves with a stale result."""
    share = connection.execute(
        f"""
        SELECT count(*) FILTER ({HIT.of("logged")}) / nullif(count(*), 0) FROM {outcome.table}
        WHERE is_counted AND is_stale AND {SHARED.of("logged")}
        """  # noqa: S608
    ).fetchall()[0][0]
    return share is not None and share > _SERVES_STALE


def _grade(share: float | None) -> ReplayGrade:
    if share is None or share < _FAIR:
        return "poor"
    return "good" if share >= _GOOD else "fair"


def find_moved(
    connection: DuckDBPyConnection, before: str, after: str, *, position: float | None
) -> list[MovedRequests]:
    """Count the counted requests whose status differs between two tables of outcomes.

    A miss with hidden literals is in part a hit (``chance_of_…``), so that the rows agree with the hits.

    Args:
        position: where the truth lies between the bounds.
    """
    rows = connection.execute(
        f"""
        WITH request_of_both AS (
            SELECT n, log_id, old.status AS was, new.status AS becomes, coalesce(old_chance.chance, 0) AS a,
                coalesce(new_chance.chance, 0) AS b
            FROM {before} AS old JOIN {after} AS new USING (n) JOIN request USING (n)
            LEFT JOIN chance_of_{before} AS old_chance USING (n)
            LEFT JOIN chance_of_{after} AS new_chance USING (n)
            WHERE new.is_counted
        ), part AS (
            SELECT n, log_id, was, becomes, 1 AS least, 1 - greatest(a, b) AS most FROM request_of_both
            UNION ALL SELECT n, NULL, was, '{HIT[0]}', 0, b - a FROM request_of_both WHERE b > a
            UNION ALL SELECT n, NULL, '{HIT[0]}', becomes, 0, a - b FROM request_of_both WHERE a > b
        )
        SELECT was, becomes, sum(least)::BIGINT AS count, sum(most)::DOUBLE,
            list_slice(list(log_id ORDER BY n) FILTER (log_id IS NOT NULL), 1, 3)
        FROM part WHERE was <> becomes
        GROUP BY was, becomes HAVING greatest(count, sum(most)) >= 0.5 ORDER BY count DESC, was, becomes
        """  # noqa: S608
    ).fetchall()
    return [
        MovedRequests(
            from_=old, to=new, count=count, examples=examples or [], bounds=_bound(count, most, position)
        )
        for old, new, count, most, examples in rows
    ]


def _bound(count: int, most: float, position: float | None) -> Bounds:
    """Return the bounds of a count at the lower and at the upper bound of the hits."""
    low, high = sorted((count, int(most + 0.5)))
    likely = None if position is None else int(count + position * (most - count) + 0.5)
    return Bounds(low=low, likely=likely, high=high)
