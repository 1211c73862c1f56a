"""Replay a proposal: what would the ruleset with it have done, beside the current one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.advice.requests import STATEMENT_COLUMNS
from analytics.replay.calibration import calibrate
from analytics.replay.gateway import learn_gateway
from analytics.replay.job import Ruleset
from analytics.replay.replay import Player, find_caveats, render_counts
from analytics.replay.shapes import find_columns
from analytics.replay.window import load_requests
from logs.sql.view import LogView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.counts import Counts
    from analytics.replay.job import Job
    from analytics.replay.outcome import Outcome
    from rules.language import Rule


class Measurer:
    """Loads the log of a job once, and replays rulesets over it."""

    def __init__(self, connection: DuckDBPyConnection, job: Job) -> None:
        self._connection, self._job = connection, job
        self._columns: set[str] = set()
        self._load({*STATEMENT_COLUMNS})
        LogView(connection).make_tolerant([file.file for file in job.files])

    def _load(self, columns: set[str]) -> None:
        job = self._job
        rulesets = [job.current, *(ruleset.rules for ruleset in job.in_force)]
        self._columns = columns.union(*map(find_columns, rulesets))
        self._loaded = load_requests(
            self._connection,
            job.files,
            first_day=job.first_day,
            columns=self._columns,
            changes=job.changes,
        )
        self.gateway = learn_gateway(self._connection, job.current, given=job.gateway)
        self._player = Player(self._connection, job, self._loaded, self.gateway)

    def play_current(self) -> Outcome:
        """Replay the rules in force and the current ones, and keep what the latter do."""
        job = self._job
        in_force = list(job.in_force) or [Ruleset(0, job.current)]
        outcome, counts = self._player.play("current", in_force)
        self.calibration = calibrate(self._connection, outcome)
        if len(in_force) != 1 or in_force[0].rules != job.current:
            outcome, counts = self._player.play("current", [Ruleset(0, job.current)])
        self.against = self._render(counts, job.current)["total"]
        self.risk = {
            rule_id: (found["riskLow"], found["riskHigh"], found["hits"])
            for rule_id, found in counts[0].rules.items()
            if rule_id is not None
        }
        return outcome

    def predict(self, rules: tuple[Rule, ...]) -> dict[str, Any]:
        """Return what the rules would have done and the difference to the current ones, as JSON."""
        if not find_columns(rules) <= self._columns:
            self._load({*self._columns, *find_columns(rules)})
        _, counts = self._player.play("subject", [Ruleset(0, rules)])
        total = self._render(counts, rules)["total"]
        return {"total": total, "against": self.against, "gain": _gain(total, self.against)}

    def _render(self, counts: list[Counts], rules: Sequence[Rule]) -> dict[str, Any]:
        return render_counts(counts, rules)

    @property
    def rows(self) -> dict[str, int]:
        loaded = self._loaded
        return {
            "decidable": loaded.decidable,
            "outside": loaded.outside,
            "exact": loaded.exact,
            "known": loaded.known,
            "open": loaded.open,
        }

    @property
    def gateway_json(self) -> dict[str, bool | None]:
        return {"nocache": self.gateway.nocache, "nonDeterministic": self.gateway.non_deterministic}

    @property
    def caveats(self) -> list[str]:
        return find_caveats(
            self._job,
            self._loaded,
            self.calibration["grade"],
            is_gateway_unknown=self._player.is_gateway_unknown,
        )

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a statement over ``proxy_logs``."""
        relation = self._connection.execute(sql)
        names = [column[0] for column in relation.description or ()]
        return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def _gain(total: Mapping[str, Any], against: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: _difference(total[name], against[name]) for name in ("hits", "savedMs")},
        **{name: total[name] - against[name] for name in ("misses", "spentMs", "hitBytes")},
        "risk": {name: total["risk"][name] - against["risk"][name] for name in ("low", "high")},
    }


def _difference(after: Mapping[str, int | None], before: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the difference of bounds: of the lower ones, the likely ones and the upper ones, in order."""
    low, high = ((after[name] or 0) - (before[name] or 0) for name in ("low", "high"))
    likely = (
        None if after["likely"] is None or before["likely"] is None else after["likely"] - before["likely"]
    )
    return {"low": min(low, high), "likely": likely, "high": max(low, high)}
