"""The arithmetic that all documents share: exact integers, rounded half up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def iso_time(epoch_ms: int | None) -> str | None:
    """Epoch milliseconds as ``2026-11-21T02:45:07.123Z``; None outside the years that ISO 8601 writes."""
    if epoch_ms is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
