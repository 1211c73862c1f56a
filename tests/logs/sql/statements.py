"""Statements that the guard must allow (allowed.sql), and statements that it must refuse (refused.sql)."""

from __future__ import annotations

from pathlib import Path


def _read(name: str) -> tuple[str, ...]:
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return tuple(line for line in lines if not line.startswith("--# "))


ALLOWED = (*_read("allowed.sql"), "-- DROP TABLE x\nSELECT /* COPY a TO 'b' */ 1")
REFUSED = (*_read("refused.sql"), "", "  \n", "SELECT 1\0; DROP VIEW proxy_logs", "SELECT '\ud800'")
