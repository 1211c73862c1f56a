"""Computing a daily document needs no more memory if there are more statements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.numbers.rollup import write_rollups
from analytics.numbers.tables import STATEMENTS
from logs.compaction.convert import SCHEMA
from tests.analytics import measured_documents
from tests.analytics.builds import DAYS

#: The bytes of one statement.
BYTES = 100_000
FEW = 120


@pytest.mark.slow
def test_the_memory_for_a_document_does_not_grow_with_its_statements(tmp_path: Path) -> None:
    small, large = (roll_up(tmp_path / f"{count}", count=count) for count in (FEW, 4 * FEW))
    groups = pq.read_metadata(large / f"{STATEMENTS}.parquet")
    assert groups.num_rows == 4 * FEW
    assert groups.num_row_groups >= 4 * FEW * BYTES >> 22

    answer = subprocess.run(
        [sys.executable, "-m", measured_documents.__name__, str(small), str(large)],
        check=True,
        capture_output=True,
    )
    of_tenant, of_user, of_tenant_later, of_user_later = map(int, answer.stdout.split())
    assert of_tenant_later < 1.5 * of_tenant
    assert of_user_later < 1.5 * of_user


def roll_up(directory: Path, *, count: int) -> Path:
    """Return the directory of the rollups of a day with ``count`` long statements."""
    directory.mkdir()
    own: dict[str, list[Any]] = {
        "userName": ["Ana"] * count,
        "standardizedSql": [f"SELECT {number} -- {'x' * BYTES}" for number in range(count)],
        "timestamp": list(range(count)),
        "_hour": [0] * count,
    }
    columns = [
        pa.array(own[field.name], field.type) if field.name in own else pa.nulls(count, field.type)
        for field in SCHEMA
    ]
    log = directory / "day.parquet"
    pq.write_table(pa.table(columns, schema=SCHEMA), log)
    write_rollups(log, day=DAYS[0], directory=directory)
    return directory
