"""Replay a job. Runs, the command and the benchmark call the one function `replay`.

docs/replay.md defines every number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.replay.calibration import calibrate
from analytics.replay.caveats import find_caveats
from analytics.replay.comparing import compare_rulesets
from analytics.replay.job import Ruleset
from analytics.replay.leaks import shares_without_schema
from analytics.replay.player import Player
from analytics.replay.result import describe_input
from analytics.replay.shapes import find_columns
from analytics.replay.window import load_requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Job
    from analytics.replay.result import ReplayResult


def replay(
    connection: DuckDBPyConnection, job: Job, *, report: Callable[[float], None] = lambda _: None
) -> ReplayResult:
    """Replay a job and return its result.

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
    player = Player(connection, job, loaded)
    # Equal rulesets are replayed once.
    in_force = player.play("in_force", job.rulesets_in_force)
    calibration = calibrate(connection, in_force.outcome)
    report(0.5)
    current = in_force if job.has_one_ruleset else player.play("current", [Ruleset(0, job.current)])
    report(0.7)
    subject = current if job.subject == job.current else player.play("subject", [Ruleset(0, job.subject)])
    report(0.9)
    caveats = find_caveats(
        job,
        loaded,
        player.gateway,
        calibration.grade,
        is_gateway_unknown=any(it.is_gateway_unknown for it in (in_force, current, subject)),
        shares_without_schema=shares_without_schema(connection, subject.outcome),
    )
    return compare_rulesets(
        connection,
        job,
        describe_input(job, loaded, player.gateway),
        calibration=calibration,
        current=current,
        subject=subject,
        caveats=caveats,
    )
