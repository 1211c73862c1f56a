"""Read the entries of a file, and the error of one that is no history."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analytics.history.entries import Choices, Read, write_entries
from analytics.history.rows import BadHistory, Options, Source

NOW = int(datetime(2026, 11, 29, tzinfo=UTC).timestamp() * 1000)


def read(path: Path, choices: Choices, tmp_path: Path) -> tuple[Read, list[dict[str, Any]]]:
    """Return what was counted, and the entries by time."""
    folder = tmp_path / "tree"
    written = write_entries(path, choices, digest=choices.digest(path), directory=folder, now_ms=NOW)
    counted = list(written)[-1]
    entries = []
    for file in folder.glob("logs/*/*/*/*/*.json"):
        for line in file.read_bytes().splitlines():
            entry = json.loads(line)
            hour = datetime.fromtimestamp(entry["timestamp"] / 1000, UTC)
            assert file.parent.relative_to(folder / "logs").as_posix() == f"{hour:%Y/%m/%d/%H}"
            entries.append(entry)
    return counted, sorted(entries, key=lambda entry: (entry["timestamp"], entry["logId"]))


def read_body(
    body: bytes, source: Source, tmp_path: Path, *, options: Options | None = None, name: str = "history"
) -> tuple[Read, list[dict[str, Any]]]:
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / name
    path.write_bytes(body)
    return read(path, Choices(source=source, options=options or Options()), tmp_path)


def bad(body: bytes, source: Source, tmp_path: Path, **options: Any) -> str:
    """Return the error for a file."""
    with pytest.raises(BadHistory) as raised:
        read_body(body, source, tmp_path, options=Options(**options))[0].require_sound(source)
    return str(raised.value)
