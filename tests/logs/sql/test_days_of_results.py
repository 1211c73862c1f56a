"""A result names the days on which it depends, or none if it depends on the time or on chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from logs.sql.engines import remote
from logs.sql.protocol import Limits, LogSource

if TYPE_CHECKING:
    from logs.sql.engines.local import LocalEngine

_ALL = ("2026-01-01", "2026-01-02", "2026-01-03")


@pytest.mark.parametrize(
    ("statement", "days"),
    [
        ("SELECT count(*) FROM proxy_logs", _ALL),
        ("SELECT count(*) FROM proxy_logs WHERE day = '2026-01-02'", ("2026-01-02",)),
        ("SELECT count(*) FROM proxy_logs WHERE day > '2026-01-01'", _ALL[1:]),
        ("SELECT count(*) FROM proxy_logs WHERE day = '2026-01-09'", ()),
        ("SELECT 1", ()),
        ("SELECT count(*) FROM proxy_logs WHERE random() < 2", None),
        ("SELECT count(*) FROM proxy_logs WHERE day < strftime(today(), '%Y-%m-%d')", None),
    ],
)
def test_the_days_of_a_result(
    engine: LocalEngine, log: LogSource, statement: str, days: tuple[str, ...] | None
) -> None:
    result = engine.execute(source=log, statement=statement, limits=Limits())
    assert result.days == days
    assert not result.is_kept
    assert remote.decode_result(remote.encode_result(result)) == result


def test_chance_differs_between_processes(engine: LocalEngine) -> None:
    """Without files, each query has a process of its own."""
    source = LogSource("empty", ())
    statement = "SELECT random() AS n, uuid()::VARCHAR AS u"
    rows = {
        tuple(batch.to_pylist()[0].values())
        for _ in range(3)
        for batch in engine.execute(source=source, statement=statement, limits=Limits()).batches
    }
    assert len({number for number, _ in rows}) == len({text for _, text in rows}) == 3
