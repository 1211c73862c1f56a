"""Rollups are the same whether a day is read in parts or at once."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from analytics.numbers import tables as day_rows
from analytics.numbers.rollup import write_rollups
from analytics.numbers.tables import TABLES
from tests.analytics.pipeline import day_json, roll_day, store_files
from tests.analytics.random_log import DAYS, random_entries

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_rollups_are_equal_whether_a_day_is_read_in_parts_or_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = DAYS[0]
    body = json.dumps(random_entries(random.Random(1), day)).encode()  # noqa: S311  # reproducible, not secret
    store = store_files(tmp_path / "store", {day: {"00/a.json": body}})
    compacted, at_once = roll_day(store, day, directory=tmp_path / "built")
    assert compacted.file is not None
    assert at_once is not None

    # Four parts; the last has one row group.
    log = tmp_path / "parts.parquet"
    pq.write_table(pq.read_table(compacted.file), log, row_group_size=-(-compacted.rows // 7))
    monkeypatch.setattr(day_rows, "GROUPS", 2)
    for name, most in (("repeating", day_rows.STATEMENT_BYTES), ("long", 0)):
        # Repeated statements and long statements are read in different ways.
        monkeypatch.setattr(day_rows, "STATEMENT_BYTES", most)
        (tmp_path / name).mkdir()
        in_parts = write_rollups(log, day=day, directory=tmp_path / name)

        for table in TABLES:
            assert pq.read_table(in_parts[table]).equals(pq.read_table(at_once[table])), table
        for user in (None, "Ana"):
            assert day_json({table: str(path) for table, path in in_parts.items()}, user=user) == day_json(
                at_once, user=user
            )
