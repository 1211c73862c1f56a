"""The arithmetic that all documents share: exact integers, rounded half up."""

from __future__ import annotations

from typing import Final

#: The years that ISO 8601 writes, 0001 to 9999, in epoch milliseconds.
FIRST_MS: Final = -62_135_596_800_000
LAST_MS: Final = 253_402_300_799_999


def mean(total: int | None, count: int) -> int:
    """``total / count`` rounded half up; 0 where there is nothing to average."""
    return mean_or_none(total, count) or 0


def mean_or_none(total: int | None, count: int) -> int | None:
    """``total / count`` rounded half up; None where there is nothing to average."""
    if not count:
        return None
    return (2 * (total or 0) + count) // (2 * count)


def rate(part: int, whole: int) -> float:
    """``part / whole`` to four decimals, rounded half up; 0.0 where ``whole`` is 0."""
    return (20_000 * part + whole) // (2 * whole) / 10_000 if whole else 0.0
