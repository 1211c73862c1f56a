"""Count an outcome by rule. Section "Counts" of the definition (docs/replay.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics.replay.billed import bill_outcome
from analytics.replay.bounds import find_bounds
from analytics.replay.risk import find_risk
from logs.definitions import BLOCKED, BYPASSED, FAILED, HIT, MISS, NOT_RECORDED, PASSED, STORED_MISS, WAITED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Job
    from analytics.replay.outcome import Outcome
    from analytics.reports.savings_sql import Bill

STATUS_COUNTS: Final = {
    "hits": HIT,
    "misses": STORED_MISS,
    "holds": WAITED,
    "bypassed": BYPASSED,
    "blocked": BLOCKED,
    "passed": PASSED,
    "errors": FAILED,
    "invalidation_errors": NOT_RECORDED,
}
MISS_REASONS: Final = ("no-cache-entry", "ttl-expired", "invalidation-marker")

_EXECUTES: Final = f"({MISS.of('status')} OR is_revalidation)"
_COUNTS: Final = {
    "requests": "count(*)",
    **{name: f"count(*) FILTER ({statuses.of('status')})" for name, statuses in STATUS_COUNTS.items()},
    "stale_hits": "count(*) FILTER (is_stale)",
    "revalidations": "count(*) FILTER (is_revalidation)",
    **{name: f"count(*) FILTER (reason = {number})" for number, name in enumerate(MISS_REASONS)},
    "hit_bytes": f"coalesce(sum(bytes) FILTER ({HIT.of('status')}), 0)::HUGEINT",
    "saved_ms": f"coalesce(sum(mean_ms) FILTER ({HIT.of('status')}), 0)::HUGEINT",
    "spent_ms": f"coalesce(sum(work_ms) FILTER ({_EXECUTES}), 0)::HUGEINT",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of an outcome by rule id; None stands for no rule.

    ``high_…`` are upper bounds. ``bills`` are two where the log hides literals (`bill_outcome`).
    """

    rules: Mapping[str | None, Counter[str]]
    high_hits: Mapping[str | None, int]
    high_saved_ms: Mapping[str | None, int]
    position: float | None
    bills: Sequence[Bill]


def count_outcome(connection: DuckDBPyConnection, outcome: Outcome, job: Job, *, is_exact: bool) -> Counts:
    """Count the outcome of the last call of `play`."""
    ids: dict[int, str | None] = {index: rule.id for index, rule in enumerate(outcome.decisions.rules)}
    rules: dict[str | None, Counter[str]] = defaultdict(Counter)
    columns = ", ".join(_COUNTS.values())
    for index, *values in connection.execute(
        f"SELECT rule, {columns} FROM {outcome.table} WHERE is_counted GROUP BY rule"  # noqa: S608
    ).fetchall():
        rules[ids.get(index)].update(dict(zip(_COUNTS, values, strict=True)))
    for index, (low, high) in find_risk(connection, outcome.table, warehouse=job.tables).items():
        rules[ids.get(index)].update({"risk_low": low, "risk_high": high})
    _count_firings(connection, outcome, rules)
    bounds = find_bounds(connection, outcome.table, outcome.lifetimes)
    return Counts(
        rules,
        high_hits=_add_bounds(rules, "hits", bounds.hits, ids),
        high_saved_ms=_add_bounds(rules, "saved_ms", bounds.saved_ms, ids),
        position=bounds.position,
        bills=bill_outcome(connection, outcome.table, job, is_exact=is_exact),
    )


def _count_firings(
    connection: DuckDBPyConnection, outcome: Outcome, rules: dict[str | None, Counter[str]]
) -> None:
    rows = connection.execute(
        f"""
        SELECT ruleset, shape, count(*) FROM {outcome.table} WHERE is_counted AND fires
        GROUP BY ruleset, shape
        """  # noqa: S608
    ).fetchall()
    for ruleset, shape, count in rows:
        for firing in outcome.decisions.firings[ruleset, shape]:
            rules[firing.rule_id]["fired"] += count
            for target in firing.targets:
                rules[target]["markers"] += count


def _add_bounds(
    rules: Mapping[str | None, Counter[str]],
    name: str,
    above: Mapping[int, int],
    ids: Mapping[int, str | None],
) -> dict[str | None, int]:
    high = {rule_id: counts[name] for rule_id, counts in rules.items()}
    for index, difference in above.items():
        high[ids.get(index)] = high.get(ids.get(index), 0) + difference
    return high
