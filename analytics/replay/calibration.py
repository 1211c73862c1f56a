"""Compare the replay of the ruleset that was in force with the log.

Section "Honesty" of the definition (docs/replay.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from logs.quoting import quote_texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.outcome import Outcome

_GOOD: Final = 0.995
_FAIR: Final = 0.98

#: Why a replayed status differs from the logged one: the first that is true.
_WHY: Final = """
    CASE WHEN logged_rule IS DISTINCT FROM replayed_rule THEN 'other-rule'
    WHEN logged = 'ERROR' THEN 'not-executed'
    WHEN is_stale THEN 'stale-result'
    WHEN logged = 'BYPASS' OR status = 'BYPASS' THEN 'gateway-declines'
    WHEN kind = 'open' THEN 'literals-hidden'
    WHEN is_cached AND reason = 0 AND logged IN ('HIT', 'HOLD') THEN 'cached-before'
    WHEN is_later THEN 'differed-before'
    WHEN n IN (FROM simultaneous) THEN 'same-millisecond'
    WHEN is_cached THEN 'other-cache-state'
    ELSE 'unexplained' END
"""


def calibrate(connection: DuckDBPyConnection, outcome: Outcome) -> dict[str, Any]:
    """Return the calibration of the counted rows, as JSON."""
    ids = [rule.id for rule in outcome.decisions.rules]
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW compared AS
        SELECT outcome.*, logged_rule,
            list_extract({quote_texts(ids)}::VARCHAR[], outcome.rule + 1) AS replayed_rule
        FROM {outcome.table} AS outcome JOIN request USING (n) WHERE outcome.is_counted
        """  # noqa: S608
    )
    # Requests for the cache that differ. After the first one of a result, others may follow from it.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE differing AS
        SELECT n, rule, restart, identity, requested_at,
            n > min(n) OVER (PARTITION BY rule, restart, identity) AS is_later
        FROM {outcome.table} WHERE is_cached AND logged <> status
        """  # noqa: S608
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE simultaneous AS
        SELECT differing.n FROM differing JOIN {outcome.table} AS other
            USING (rule, restart, identity, requested_at)
        WHERE other.is_cached AND other.n <> differing.n
        """  # noqa: S608
    )
    rows, equal = connection.execute(
        "SELECT count(*), count(*) FILTER (logged = status) FROM compared"
    ).fetchall()[0]
    causes = connection.execute(
        f"""
        SELECT logged, status, count(*), {_WHY} AS why FROM compared LEFT JOIN differing USING (n)
        WHERE logged <> status
        GROUP BY logged, status, why ORDER BY count(*) DESC, logged, status, why
        """  # noqa: S608
    ).fetchall()
    rules = connection.execute(
        """
        SELECT rule_id, sum(logged_hits), sum(hits), sum(logged_misses), sum(misses) FROM (
            SELECT logged_rule AS rule_id, (logged = 'HIT')::BIGINT AS logged_hits,
                0 AS hits, (logged = 'MISS')::BIGINT AS logged_misses, 0 AS misses
            FROM compared
            UNION ALL
            SELECT replayed_rule, 0, (status = 'HIT')::BIGINT, 0, (status = 'MISS')::BIGINT FROM compared
        )
        WHERE rule_id IS NOT NULL GROUP BY rule_id
        """
    ).fetchall()
    order = {rule_id: index for index, rule_id in enumerate(ids)}
    rules.sort(key=lambda row: (order.get(row[0], len(order)), row[0]))
    share = equal / rows if rows else None
    return {
        "rows": rows,
        "equal": equal,
        "share": share,
        "grade": _grade(share),
        "rules": [
            {
                "ruleId": rule_id,
                "hits": {"logged": int(logged_hits), "replayed": int(hits)},
                "misses": {"logged": int(logged_misses), "replayed": int(misses)},
            }
            for rule_id, logged_hits, hits, logged_misses, misses in rules
        ],
        "causes": [
            {"logged": logged, "replayed": status, "count": count, "why": why}
            for logged, status, count, why in causes
        ],
    }


def _grade(share: float | None) -> str:
    if share is None or share < _FAIR:
        return "poor"
    return "good" if share >= _GOOD else "fair"


def find_moved(connection: DuckDBPyConnection, before: Outcome, after: Outcome) -> list[dict[str, Any]]:
    """Return how many counted requests change their status from one outcome to the other, as JSON."""
    rows = connection.execute(
        f"""
        SELECT old.status, new.status, count(*),
            list_slice(list(log_id ORDER BY n) FILTER (log_id IS NOT NULL), 1, 3)
        FROM {before.table} AS old JOIN {after.table} AS new USING (n) JOIN request USING (n)
        WHERE new.is_counted AND old.status <> new.status
        GROUP BY old.status, new.status ORDER BY count(*) DESC, old.status, new.status
        """  # noqa: S608
    ).fetchall()
    return [
        {"from": old, "to": new, "count": count, "examples": examples or []}
        for old, new, count, examples in rows
    ]
