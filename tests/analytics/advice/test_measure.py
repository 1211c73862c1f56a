"""What a recommendation is predicted to gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from analytics.advice.measure import Measurer, SignedBounds
from analytics.replay.load import Job
from rules.language import read_rules
from tests.analytics.replay.streams import FIRST, make_row, write_days

if TYPE_CHECKING:
    from pathlib import Path

    from rules.language import Rule


def keep(seconds: int) -> tuple[Rule, ...]:
    return read_rules([{"id": "c", "conditions": {"isReadOnly": True}, "ttlSeconds": seconds}])


def test_a_gain_has_the_bounds_of_the_change(tmp_path: Path) -> None:
    """If two results take turns, there are two hits more: more than the upper bounds differ."""
    # A column of statements without a value would leave the day out.
    read = {"tables": "[]", "isReadOnly": True, "warehouseExecutionTimeMs": 100}
    read |= dict.fromkeys(("isDataChange", "isDDL", "hasNonDeterministicFunctions"), False)
    rows = [make_row(at=second * 1000, standardizedSql="SELECT ?", **read) for second in (0, 2, 10, 12)]
    files = write_days(rows, tmp_path)
    with duckdb.connect(config={"threads": 1}) as connection:
        measurer = Measurer(connection, Job(files, FIRST, FIRST, keep(5), keep(5)))
        measurer.play_current()
        prediction, _ = measurer.predict(keep(20))
    hits = [(it.hits.low, it.hits.high) for it in (prediction.against, prediction.total)]
    assert hits == [(0, 2), (0, 3)]
    gain = prediction.gain
    assert gain.hits == SignedBounds(low=-2, likely=None, high=3)
    assert gain.saved_ms == SignedBounds(low=-200, likely=None, high=300)
