"""The settings of the DuckDB connections that builds use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from logs.compaction import convert
from logs.compaction.writer import connect


def settings_of(connection: duckdb.DuckDBPyConnection, *names: str) -> list[Any]:
    with connection:
        query = ", ".join(f"current_setting('{name}')" for name in names)
        found = connection.execute(f"SELECT {query}").fetchone()
    assert found is not None
    return list(found)


@pytest.mark.parametrize(("limit", "threads"), [("1GB", 3), ("500MB", 1)])
def test_a_build_spills_into_its_directory_within_its_limits(
    tmp_path: Path, limit: str, threads: int
) -> None:
    connection = connect(spill=tmp_path / "spill", memory_limit=limit, threads=threads)
    found = settings_of(connection, "temp_directory", "memory_limit", "threads")
    written = {"1GB": "953.6 MiB", "500MB": "476.8 MiB"}
    assert found == [str(tmp_path / "spill"), written[limit], threads]


def test_the_limits_have_defaults(tmp_path: Path) -> None:
    default = settings_of(duckdb.connect(), "threads")
    connection = connect(spill=tmp_path)
    assert settings_of(connection, "memory_limit", "threads") == ["953.6 MiB", *default]


def test_no_connection_downloads_extensions(tmp_path: Path) -> None:
    for connection in (connect(spill=tmp_path), convert.connect()):
        names = ("autoinstall_known_extensions", "autoload_known_extensions")
        assert settings_of(connection, *names) == [False, False]


def test_a_converter_has_one_thread() -> None:
    assert settings_of(convert.connect(), "threads") == [1]
