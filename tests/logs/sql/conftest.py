"""Fixtures: a small log in Parquet, and an engine that all tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from logs.sql.engines.local import LocalEngine
from logs.sql.protocol import Limits, LogSource
from tests.logs.sql.support import write_day


@pytest.fixture
def make_log(tmp_path: Path) -> Callable[..., LogSource]:
    def make(days: Mapping[str, Sequence[Mapping[str, object]]], tenant: str = "tenant") -> LogSource:
        folder = tmp_path / tenant / "compacted"
        return LogSource(tenant, tuple(write_day(folder, day, rows) for day, rows in sorted(days.items())))

    return make


@pytest.fixture
def log(make_log: Callable[..., LogSource]) -> LogSource:
    """Three days, 2026-01-01 to 03, with 1, 2 and 3 rows of users u1, u2, u3."""
    return make_log(
        {
            f"2026-01-0{number}": [
                {
                    "timestamp": number * 1_000 + row,
                    "userName": f"u{row + 1}",
                    "responseSize": 0,
                    "responseTimeMs": 5,
                }
                for row in range(number)
            ]
            for number in (1, 2, 3)
        }
    )


@pytest.fixture(scope="session")
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine(slots=3, per_tenant=2, queue=24, warm=2, default_limits=Limits())
    yield engine
    engine.close()
