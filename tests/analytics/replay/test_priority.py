"""Replays and searches run at low priority."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from typing import Any

import duckdb
import pytest

from analytics.replay.execution import NICENESS, Limit, ReplayEnded, run_at_low_priority


def test_jobs_run_at_low_priority_and_end_with_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    nice = run_at_low_priority(
        lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), stop=lambda: None
    )
    assert nice == min(before + NICENESS, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    limit = Limit(seconds=20, message="too long")

    def end_worker(_execution: Any) -> Any:
        raise SystemExit

    def endless() -> None:
        with duckdb.connect(config={"threads": 1}) as engine, limit.on(engine):
            engine.execute("SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b").fetchall()

    monkeypatch.setattr(Future, "result", end_worker)
    with pytest.raises(SystemExit):
        run_at_low_priority(endless, stop=limit.stop)
    with pytest.raises(ReplayEnded, match=r"^The worker ends\.$"):
        limit.check()
