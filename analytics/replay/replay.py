"""Replay a job. Runs, the command and the benchmark call the one function `replay`.

docs/replay.md defines every number.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from analytics.replay.calibration import calibrate, find_moved
from analytics.replay.counts import MISS_REASONS, STATUS_COUNTS, Counts, count_outcome
from analytics.replay.gateway import find_other_gateways, learn_gateway
from analytics.replay.job import Ruleset
from analytics.replay.outcome import play
from analytics.replay.publish_cost import estimate_publish_cost
from analytics.replay.shapes import find_columns
from analytics.replay.window import load_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Gateway, Job
    from analytics.replay.outcome import Outcome
    from analytics.replay.window import LoadedRequests
    from rules.language import Rule

_SIMPLE_COUNTS: Final = (
    "requests",
    *STATUS_COUNTS,
    "staleHits",
    "revalidations",
    "spentMs",
    "hitBytes",
    "fired",
    "markers",
)
_BOUNDED: Final = frozenset({"hits", "savedMs"})


class Caveat(StrEnum):
    """Codes of what limits a result. docs/replay.md, the staff page and the dashboard explain them."""

    WRITES_PAST_GATEWAY = "writes-past-gateway-invisible"
    LITERALS_HIDDEN = "literals-hidden"
    GATEWAY_UNKNOWN = "gateway-unknown"
    DAYS_LEFT_OUT = "days-left-out"
    COLD_START = "cold-start"
    CALIBRATION_FAIR = "calibration-fair"
    CALIBRATION_POOR = "calibration-poor"


def replay(
    connection: DuckDBPyConnection, job: Job, *, report: Callable[[float], None] = lambda _: None
) -> dict[str, Any]:
    """Replay a job and return its result as JSON.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        report: called with the progress, 0 to 1. It may raise an exception to end the replay.
    """
    rulesets = [job.subject, job.current, *(ruleset.rules for ruleset in job.in_force)]
    loaded = load_requests(
        connection,
        job.files,
        first_day=job.first_day,
        columns=set().union(*map(find_columns, rulesets)),
        changes=job.changes,
    )
    report(0.3)
    gateway = learn_gateway(connection, job.current, known=job.gateway)
    player = Player(connection, job, loaded, gateway)
    # Equal rulesets are replayed once.
    in_force = list(job.in_force) or [Ruleset(0, job.current)]
    calibrated, in_force_counts = player.play("in_force", in_force)
    calibration = calibrate(connection, calibrated)
    report(0.5)
    if len(in_force) == 1 and in_force[0].rules == job.current:
        current, current_counts = calibrated, in_force_counts
    else:
        current, current_counts = player.play("current", [Ruleset(0, job.current)])
    report(0.7)
    if job.subject == job.current:
        subject, counts = current, current_counts
    else:
        subject, counts = player.play("subject", [Ruleset(0, job.subject)])
    report(0.9)
    return {
        **describe_input(job, loaded, gateway),
        "calibration": calibration,
        **render_counts(counts, job.subject),
        "against": render_counts(current_counts, job.current),
        "moved": find_moved(connection, current.table, subject.table),
        "publishCost": estimate_publish_cost(
            connection, subject.table, first_day=job.first_day, last_day=job.last_day, hour=job.hour
        ),
        "caveats": find_caveats(
            job,
            loaded,
            calibration["grade"],
            is_gateway_unknown=any(len(runs) > 1 for runs in (in_force_counts, current_counts, counts)),
        ),
    }


def describe_input(job: Job, loaded: LoadedRequests, gateway: Gateway) -> dict[str, Any]:
    """Return ``window``, ``rows`` and ``gateway`` of a result."""
    return {
        "window": {
            "from": job.first_day.isoformat(),
            "to": job.last_day.isoformat(),
            "warmupDays": job.warmup_days,
            "daysLeftOut": [day.isoformat() for day in _find_days_left_out(job, loaded)],
        },
        "rows": {
            "decidable": loaded.decidable,
            "outside": loaded.outside,
            "exact": loaded.exact,
            "known": loaded.known,
            "open": loaded.open,
        },
        "gateway": {"nocache": gateway.nocache, "nonDeterministic": gateway.non_deterministic},
    }


class Player:
    """Plays rulesets, once for each possible setting of the Gateway."""

    def __init__(
        self, connection: DuckDBPyConnection, job: Job, loaded: LoadedRequests, gateway: Gateway
    ) -> None:
        self._connection, self._job, self._loaded = connection, job, loaded
        self._gateway = gateway

    def play(self, table: str, rulesets: Sequence[Ruleset]) -> tuple[Outcome, list[Counts]]:
        """Create ``table``. Return its outcome, and the counts under each possible setting of the Gateway."""
        outcome, counts = self._play(table, rulesets, self._gateway)
        runs = [counts]
        for other in find_other_gateways(self._connection, self._gateway):
            runs.append(self._play("other_gateway", rulesets, other)[1])
            self._connection.execute("DROP TABLE other_gateway")
        return outcome, runs

    def _play(self, table: str, rulesets: Sequence[Ruleset], gateway: Gateway) -> tuple[Outcome, Counts]:
        outcome = play(
            self._connection,
            rulesets,
            table=table,
            gateway=gateway,
            restarts=self._loaded.restarts,
            markers=self._job.markers,
        )
        return outcome, count_outcome(self._connection, outcome)


def _find_days_left_out(job: Job, loaded: LoadedRequests) -> list[Any]:
    """Return the counted days without data, and all days on which a column of the rules is null."""
    days = (job.first_day + timedelta(offset) for offset in range((job.last_day - job.first_day).days + 1))
    present = {file.day for file in job.files}
    return sorted({*loaded.days_left_out, *(day for day in days if day not in present)})


def render_counts(runs: list[Counts], rules: Iterable[Rule]) -> dict[str, Any]:
    """Return ``total`` and ``rules``: the rules of the ruleset in order, then requests without a rule."""
    ids: list[str | None] = [rule.id for rule in rules]
    every: Sequence[str | None] = [*ids, *(key for key in runs[0].rules if key not in {*ids, None}), None]
    return {
        "total": _render_counts(runs, every),
        "rules": [{"ruleId": rule_id, **_render_counts(runs, [rule_id])} for rule_id in every],
    }


def _render_counts(runs: list[Counts], rule_ids: Sequence[str | None]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for rule_id in rule_ids:
        counts.update(runs[0].rules.get(rule_id, {}))
    return {
        **{name: counts[name] for name in _SIMPLE_COUNTS if name not in _BOUNDED},
        "hits": _bounds(runs, rule_ids, "hits"),
        "savedMs": _bounds(runs, rule_ids, "savedMs"),
        "missReasons": {reason: counts[reason] for reason in MISS_REASONS},
        "risk": {"low": counts["riskLow"], "high": counts["riskHigh"]},
    }


def _bounds(runs: list[Counts], rule_ids: Sequence[str | None], name: str) -> dict[str, int | None]:
    low = min(sum(run.rules[rule_id][name] for rule_id in rule_ids if rule_id in run.rules) for run in runs)
    high = max(
        sum((run.high_hits if name == "hits" else run.high_saved_ms).get(rule_id, 0) for rule_id in rule_ids)
        for run in runs
    )
    position = runs[0].position
    likely = None if position is None else int(low + position * (high - low) + 0.5)
    return {"low": low, "likely": likely, "high": high}


def find_caveats(job: Job, loaded: LoadedRequests, grade: str, *, is_gateway_unknown: bool) -> list[str]:
    """Return the codes of what limits the result. Contract: docs/replay.md."""
    caveats = {
        Caveat.WRITES_PAST_GATEWAY: True,
        Caveat.LITERALS_HIDDEN: loaded.open > 0,
        Caveat.GATEWAY_UNKNOWN: is_gateway_unknown,
        Caveat.DAYS_LEFT_OUT: bool(_find_days_left_out(job, loaded)),
        Caveat.COLD_START: not any(
            file.day < job.first_day and file.day not in loaded.days_left_out for file in job.files
        ),
        Caveat.CALIBRATION_FAIR: grade == "fair",
        Caveat.CALIBRATION_POOR: grade == "poor",
    }
    return [caveat.value for caveat, applies in caveats.items() if applies]
