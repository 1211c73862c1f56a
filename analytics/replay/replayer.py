"""Replay a job: play its rulesets, and compare the replayed one with the log and with the current one.

docs/replay.md defines every number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from analytics.replay.bounds import Played, bound_changes, render_counts
from analytics.replay.compare import (
    calibrate,
    compare_leaks,
    estimate_publish_cost,
    find_moved,
    replay_evidence,
    shares_between_sessions,
    shares_without_schema,
)
from analytics.replay.count import (
    KEPT,
    compare_bills,
    count_outcome,
    execution_sql,
)
from analytics.replay.load import Ruleset, little_memory, load_requests
from analytics.replay.play import play
from analytics.replay.result import (
    Calibration,
    Caveat,
    LearnedGateway,
    ReplayInput,
    ReplayLeaks,
    ReplayResult,
    ReplayRows,
    ReplayWindow,
)
from analytics.replay.rules import find_columns, find_other_gateways, learn_gateway
from analytics.reports.savings_sql import days_between

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.replay.count import Counts
    from analytics.replay.load import Gateway, Job
    from analytics.replay.play import Outcome
    from rules.language import Rule


def replay(
    connection: DuckDBPyConnection, job: Job, *, report: Callable[[float], None] = lambda _: None
) -> ReplayResult:
    """Replay a job and return its result.

    Args:
        connection: a DuckDB of the caller alone; temporary tables are left in it.
        report: called with the progress, 0 to 1. It may raise an exception to end the replay.
    """
    replayer = Replayer(connection, job, report=report)
    replayer.play_current()
    return replayer.compare(job.subject)


class Replayer:
    """Loads the log of a job once, learns the settings of the Gateway from it, and replays rulesets over it.

    Attributes:
        input: the loaded requests and what was learned of the Gateway.
        calibration: the rules that were in force compared with the log, from `play_current` on.
        current: the outcome of the current rules, from `play_current` on.
    """

    calibration: Calibration
    current: Played

    def __init__(
        self,
        connection: DuckDBPyConnection,
        job: Job,
        *,
        columns: Collection[str] = (),
        report: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Load the columns that the rulesets of the job read, and ``columns``. ``report`` as in `replay`."""
        self.connection, self.job, self._report = connection, job, report
        rulesets = [job.subject, job.current, *(ruleset.rules for ruleset in job.in_force)]
        tested = set().union(*map(find_columns, rulesets))
        self._loaded = load_requests(
            connection,
            job.files,
            first_day=job.first_day,
            columns={*columns, *tested},
            changes=job.changes,
            varied={name for rules in rulesets for rule in rules for name in rule.vary_by or ()},
            sampling=job.sampling
            and replace(
                job.sampling, firing=[rule for rules in rulesets for rule in rules], tables=job.tables
            ),
            is_assessment=job.is_assessment,
            tests_text="standardizedSql" in tested,
        )
        report(0.3)
        self.gateway = learn_gateway(connection, job, restarts=self._loaded.restarts)
        days = days_between(job.first_day, job.last_day)
        empty, missing = self._loaded.empty_columns, {*days} - {file.day for file in job.files}
        self.input = ReplayInput(
            window=ReplayWindow(
                from_=job.first_day,
                to=job.last_day,
                warmup_days=job.warmup_days,
                days_left_out=sorted({*empty, *missing}),
                empty_columns={day.isoformat(): names for day, names in empty.items()},
                absent_columns=self._loaded.absent_columns or None,
            ),
            rows=ReplayRows.of(self._loaded),
            gateway=LearnedGateway.of(self.gateway),
            sample=self._loaded.sample,
        )

    def play_current(self, *, keep: bool = False) -> None:
        """Replay the rules that were in force, then the current ones, in the table ``current``.

        With ``keep``, `KEPT` has the executions of the current rules (`execution_sql`), if `is_whole`.
        """
        with little_memory(self.connection):
            in_force = self.current = self._play("current", self.job.rulesets_in_force, keep=keep)
            self.calibration = calibrate(self.connection, in_force.outcome)
            self._report(0.5)
            # Equal rulesets are replayed once.
            if not self.job.has_one_ruleset:
                self.current = self._play("current", [Ruleset(0, self.job.current)], keep=keep)
            self._is_gateway_unknown = len(in_force.runs) > 1 or len(self.current.runs) > 1
            self._report(0.7)

    def compare(self, rules: tuple[Rule, ...]) -> ReplayResult:
        """Replay rules, and return the result beside the current ones."""
        with little_memory(self.connection):
            job, current = self.job, self.current
            is_same = rules == job.current
            subject = current if is_same else self._play("subject", [Ruleset(0, rules)], like=current)
            self._report(0.9)
            outcomes = current.outcome, subject.outcome
            # One for both rulesets: two would make a difference for rules that are equal in both.
            position = current.runs[0].position
            if position is None:
                position = subject.runs[0].position
            counts = render_counts(subject, position)
            left_out = self.input.window.days_left_out or ()
            return ReplayResult(
                **msgspec.structs.asdict(self.input),
                calibration=self.calibration,
                total=counts.total,
                rules=counts.rules,
                against=render_counts(current, position),
                billed=compare_bills(subject.bills, current.bills, job.pricing) if self.is_whole else None,
                moved=[] if is_same else find_moved(self.connection, *outcomes, position=position),
                leaks=ReplayLeaks(ended=[], begun=[])
                if is_same
                else compare_leaks(self.connection, *outcomes, warehouse=job.tables),
                publish_cost=estimate_publish_cost(
                    self.connection,
                    subject.outcome.table,
                    first_day=job.first_day,
                    last_day=job.last_day,
                    left_out=sum(day >= job.first_day for day in left_out),
                    hour=job.hour,
                    is_sampled=not self.is_whole,
                ),
                caveats=self.find_caveats(subject),
                evidence=replay_evidence(job.first_day, job.last_day),
                names={
                    rule.id: rule.name
                    for outcome in outcomes
                    for rule in outcome.decisions.rules
                    if rule.name
                },
                sampled_changes=None if self.is_whole else bound_changes(self.connection, current, subject),
            )

    @property
    def is_whole(self) -> bool:
        """True if all entries are replayed, and not a sample."""
        return self._loaded.sample is None

    def find_caveats(self, subject: Played | None = None) -> list[str]:
        """Return the codes of what limits the result, for the current rules alone or for a subject too."""
        job, empty, grade = self.job, self._loaded.empty_columns, self.calibration.grade
        is_warmed_up = any(file.day < job.first_day and file.day not in empty for file in job.files)
        caveats = {
            Caveat.WRITES_PAST_GATEWAY: True,
            Caveat.LITERALS_HIDDEN: self._loaded.open > 0,
            Caveat.GATEWAY_UNKNOWN: self._is_gateway_unknown or (subject and len(subject.runs) > 1),
            Caveat.KEYS_PER_USER: self.gateway.keys_per_user is True,
            Caveat.COMMENTS_VARY: self._loaded.comments_vary,
            Caveat.DAYS_LEFT_OUT: bool(self.input.window.days_left_out),
            Caveat.COLUMNS_ABSENT: bool(self._loaded.absent_columns),
            Caveat.COLD_START: not is_warmed_up,
            Caveat.CALIBRATION_FAIR: grade == "fair",
            Caveat.CALIBRATION_POOR: grade == "poor",
            Caveat.CACHE_DISABLED: not job.cache_enabled,
            Caveat.SAMPLED: not self.is_whole,
            Caveat.WITHOUT_SCHEMA: subject and shares_without_schema(self.connection, subject.outcome),
            Caveat.SESSIONS_INVISIBLE: subject and shares_between_sessions(self.connection, subject.outcome),
        }
        return [caveat.value for caveat, applies in caveats.items() if applies]

    def _play(
        self, table: str, rulesets: Sequence[Ruleset], *, keep: bool = False, like: Played | None = None
    ) -> Played:
        """Create ``table``, and return its outcome and counts. ``like`` has those that `play` begins from."""
        is_exact = self._loaded.is_exact
        outcomes: dict[Gateway, Outcome] = {}

        def count(name: str, gateway: Gateway) -> Counts:
            outcomes[gateway] = play(
                self.connection,
                rulesets,
                table=name,
                gateway=gateway,
                restarts=self._loaded.restarts,
                markers=self.job.markers,
                like=None if like is None else like.outcomes.get(gateway),
            )
            return count_outcome(
                self.connection,
                outcomes[gateway],
                self.job,
                is_exact=is_exact,
                is_sampled=not self.is_whole,
            )

        counts = count(table, self.gateway)
        if keep and self.is_whole:
            executions = execution_sql(table, is_exact=is_exact)
            self.connection.execute(f"CREATE OR REPLACE TABLE {KEPT} AS {executions}")
        others = find_other_gateways(self.connection, table, self.gateway)
        runs = [count(f"{table}_{number}", other) for number, other in enumerate(others)]
        return Played(rulesets[-1].rules, outcomes, [counts, *runs])
