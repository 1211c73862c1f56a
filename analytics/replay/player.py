"""Play rulesets over a loaded log, once for each possible setting of the Gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.replay.billed import KEPT, execution_sql
from analytics.replay.counts import count_outcome
from analytics.replay.gateway import find_other_gateways, learn_gateway
from analytics.replay.outcome import play

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from analytics.replay.counts import Counts
    from analytics.replay.job import Gateway, Job, Ruleset
    from analytics.replay.outcome import Outcome
    from analytics.replay.window import LoadedRequests
    from rules.language import Rule


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of rulesets, and the counts under each possible setting of the Gateway."""

    #: The last of the rulesets.
    rules: Sequence[Rule]
    outcome: Outcome
    #: The first are the counts of ``outcome``.
    runs: Sequence[Counts]

    @property
    def is_gateway_unknown(self) -> bool:
        """True if the outcome depends on a setting that is not known."""
        return len(self.runs) > 1


class Player:
    """Learns the settings of the Gateway from a loaded log, and plays rulesets over it."""

    def __init__(self, connection: DuckDBPyConnection, job: Job, loaded: LoadedRequests) -> None:
        self._connection, self._job, self._loaded = connection, job, loaded
        self.gateway = learn_gateway(connection, job, job.rulesets_in_force, restarts=loaded.restarts)

    def play(self, table: str, rulesets: Sequence[Ruleset], *, keep: bool = False) -> Played:
        """Create ``table``, and return its outcome and counts.

        With ``keep``, the table `KEPT` has the executions of the outcome (`execution_sql`).
        """
        outcome, counts = self._play(table, rulesets, self.gateway)
        if keep:
            executions = execution_sql(table, is_exact=self._loaded.is_exact)
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {KEPT} AS {executions}")
        runs = [counts]
        for other in find_other_gateways(self._connection, self.gateway):
            runs.append(self._play("other_gateway", rulesets, other)[1])
            self._connection.execute("DROP TABLE other_gateway")
        return Played(rulesets[-1].rules, outcome, runs)

    def _play(self, table: str, rulesets: Sequence[Ruleset], gateway: Gateway) -> tuple[Outcome, Counts]:
        outcome = play(
            self._connection,
            rulesets,
            table=table,
            gateway=gateway,
            restarts=self._loaded.restarts,
            markers=self._job.markers,
        )
        counts = count_outcome(self._connection, outcome, self._job, is_exact=self._loaded.is_exact)
        return outcome, counts
