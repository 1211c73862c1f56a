"""Replay the ruleset with a proposal, and compare it with the current ruleset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.advice.requests import STATEMENT_COLUMNS
from analytics.replay.calibration import calibrate, find_moved
from analytics.replay.gateway import learn_gateway
from analytics.replay.job import Ruleset
from analytics.replay.publish_cost import estimate_publish_cost
from analytics.replay.replay import Player, describe_input, find_caveats, render_counts
from analytics.replay.shapes import find_columns
from analytics.replay.window import load_requests
from logs.sql.view import LogView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duckdb import DuckDBPyConnection

    from analytics.replay.job import Job
    from analytics.replay.outcome import Outcome
    from rules.language import Rule


@dataclass(frozen=True, slots=True)
class Prediction:
    """The replay of a ruleset.

    Attributes:
        predicted: the totals of this ruleset and of the current one, and the gain: JSON.
        replay: the result, as `analytics.replay.replay.replay` returns it.
    """

    predicted: Mapping[str, Any]
    replay: Mapping[str, Any]


class Measurer:
    """Loads the log of a job once, and replays rulesets over it."""

    def __init__(self, connection: DuckDBPyConnection, job: Job) -> None:
        self._connection, self._job = connection, job
        rulesets = [job.current, *(ruleset.rules for ruleset in job.in_force)]
        self._loaded = load_requests(
            connection,
            job.files,
            first_day=job.first_day,
            columns={*STATEMENT_COLUMNS, "standardizedSql"}.union(*map(find_columns, rulesets)),
            changes=job.changes,
        )
        self.gateway = learn_gateway(connection, job.current, known=job.gateway)
        self.input = describe_input(job, self._loaded, self.gateway)
        self._player = Player(connection, job, self._loaded, self.gateway)
        LogView(connection).make_tolerant([file.file for file in job.files])

    def play_current(self) -> Outcome:
        """Replay the rules that were in force, then the current ones. Return the outcome of the current."""
        job = self._job
        in_force = list(job.in_force) or [Ruleset(0, job.current)]
        outcome, in_force_counts = self._player.play("current", in_force)
        counts = in_force_counts
        self.calibration = calibrate(self._connection, outcome)
        if len(in_force) != 1 or in_force[0].rules != job.current:
            outcome, counts = self._player.play("current", [Ruleset(0, job.current)])
        self._is_gateway_unknown = len(in_force_counts) > 1 or len(counts) > 1
        self._outcome, self._against = outcome, render_counts(counts, job.current)
        self.risk = {
            rule_id: (rule_counts["riskLow"], rule_counts["riskHigh"], rule_counts["hits"])
            for rule_id, rule_counts in counts[0].rules.items()
            if rule_id is not None
        }
        return outcome

    def predict(self, rules: tuple[Rule, ...]) -> Prediction:
        """Replay a ruleset, and return the difference to the current one.

        Args:
            rules: their conditions read only `STATEMENT_COLUMNS`, the statement, and columns that the current
                rules read.
        """
        job = self._job
        outcome, counts = self._player.play("subject", [Ruleset(0, rules)])
        subject = render_counts(counts, rules)
        total, against = subject["total"], self._against["total"]
        return Prediction(
            {"total": total, "against": against, "gain": gain_between(total, against)},
            {
                **self.input,
                "calibration": self.calibration,
                **subject,
                "against": self._against,
                "moved": find_moved(self._connection, self._outcome.table, outcome.table),
                "publishCost": estimate_publish_cost(
                    self._connection,
                    outcome.table,
                    first_day=job.first_day,
                    last_day=job.last_day,
                    hour=job.hour,
                ),
                "caveats": self._find_caveats(is_gateway_unknown=self._is_gateway_unknown or len(counts) > 1),
            },
        )

    def _find_caveats(self, *, is_gateway_unknown: bool) -> list[str]:
        grade = self.calibration["grade"]
        return find_caveats(self._job, self._loaded, grade, is_gateway_unknown=is_gateway_unknown)

    @property
    def warehouse_ms(self) -> int:
        """The warehouse time (ms) under the current rules."""
        return int(self._against["total"]["spentMs"])

    @property
    def caveats(self) -> list[str]:
        return self._find_caveats(is_gateway_unknown=self._is_gateway_unknown)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a statement over ``proxy_logs``."""
        relation = self._connection.execute(sql)
        names = [column[0] for column in relation.description or ()]
        return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def gain_between(total: Mapping[str, Any], against: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of one replay minus the counts of another."""
    return {
        **{name: _difference(total[name], against[name]) for name in ("hits", "savedMs")},
        **{name: total[name] - against[name] for name in ("misses", "spentMs", "hitBytes")},
        "risk": {name: total["risk"][name] - against["risk"][name] for name in ("low", "high")},
    }


def _difference(after: Mapping[str, int | None], before: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the differences of the lower, the likely and the upper values, sorted.

    Each ruleset has its own likely position between its bounds, so the likely difference can be outside the
    other two. It is moved to the nearer one.
    """
    low, high = sorted((after[name] or 0) - (before[name] or 0) for name in ("low", "high"))
    likely = None
    if after["likely"] is not None and before["likely"] is not None:
        likely = min(max(after["likely"] - before["likely"], low), high)
    return {"low": low, "likely": likely, "high": high}
