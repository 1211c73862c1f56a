"""Files of a remote store are fetched when a query needs them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from logs.sql.protocol import DayFiles, Limits, LogSource

if TYPE_CHECKING:
    from logs.sql.engines.local import LocalEngine


class _RemoteLog:
    """A log in a remote store. Records which files are fetched."""

    def __init__(self, log: LogSource, copies: Path) -> None:
        self._origin = {str(copies / file.lstrip("/")): file for day in log.days for file in day.files}
        self.fetched: list[list[str]] = []
        self.source = LogSource(
            log.tenant_id,
            tuple(
                DayFiles(day.day, tuple(str(copies / file.lstrip("/")) for file in day.files))
                for day in log.days
            ),
            fetch=self._fetch,
        )

    def _fetch(self, paths: Sequence[str]) -> None:
        self.fetched.append([Path(path).parent.name for path in paths])
        for path in paths:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self._origin[path], path)


@pytest.mark.parametrize(
    ("condition", "rows", "fetched"),
    [
        ("day IN ('2026-01-02', '2026-01-03')", 5, ["day=2026-01-02", "day=2026-01-03"]),
        ("true", 6, ["day=2026-01-01", "day=2026-01-02", "day=2026-01-03"]),
    ],
)
def test_only_the_files_that_a_query_can_read_are_fetched(
    engine: LocalEngine, log: LogSource, tmp_path: Path, condition: str, rows: int, fetched: list[str]
) -> None:
    remote = _RemoteLog(log, tmp_path / "copies")
    statement = f"SELECT count(*) AS n FROM proxy_logs WHERE {condition}"
    result = engine.execute(source=remote.source, statement=statement, limits=Limits())
    assert result.batches[0].to_pylist() == [{"n": rows}]
    assert remote.fetched == [fetched]


def test_a_log_of_one_file_is_fetched(engine: LocalEngine, log: LogSource, tmp_path: Path) -> None:
    remote = _RemoteLog(LogSource(log.tenant_id, log.days[:1]), tmp_path / "copies")
    statement = "SELECT min(day) AS d FROM proxy_logs"
    result = engine.execute(source=remote.source, statement=statement, limits=Limits())
    assert result.batches[0].to_pylist() == [{"d": "2026-01-01"}]


def test_errors_of_fetching_reach_the_caller(engine: LocalEngine, log: LogSource, tmp_path: Path) -> None:
    remote = _RemoteLog(log, tmp_path / "copies")
    Path(log.days[1].files[0]).unlink()
    with pytest.raises(FileNotFoundError):
        engine.execute(source=remote.source, statement="FROM proxy_logs", limits=Limits())
    assert engine.running == 0


def test_a_refused_statement_fetches_nothing(engine: LocalEngine, log: LogSource, tmp_path: Path) -> None:
    remote = _RemoteLog(log, tmp_path / "copies")
    with pytest.raises(Exception, match="There is no table"):
        engine.execute(source=remote.source, statement="FROM elsewhere", limits=Limits())
    assert remote.fetched == []
