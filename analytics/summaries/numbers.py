"""Means and rates of integers, rounded half up without floats."""

from __future__ import annotations

from typing import Final

from logs.columns import MAX_TIMESTAMP

#: The first and last millisecond (epoch) of the years 0001 to 9999, which ISO 8601 can write.
FIRST_MS: Final = -62_135_596_800_000
LAST_MS: Final = MAX_TIMESTAMP


def mean(total: int, count: int) -> int:
    """Return ``total / count`` rounded half up; 0 if ``count`` is 0."""
    return mean_or_none(total, count) or 0


def mean_or_none(total: int, count: int) -> int | None:
    """Return ``total / count`` rounded half up; None if ``count`` is 0."""
    if not count:
        return None
    return (2 * total + count) // (2 * count)


def rate(part: int, whole: int) -> float:
    """Return ``part / whole`` with four decimals, rounded half up; 0.0 if ``whole`` is 0."""
    return (20_000 * part + whole) // (2 * whole) / 10_000 if whole else 0.0
