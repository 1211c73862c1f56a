"""Tests of the format of times. Contract: General conventions."""

from __future__ import annotations

import datetime as dt

import pytest

from tenantadmin.lib.core.timestamps import format_timestamp


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (dt.datetime(2026, 11, 21, 2, 45, 7, 123_999, tzinfo=dt.UTC), "2026-11-21T02:45:07.123Z"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), "2025-12-31T23:00:00.000Z"),
        (dt.datetime(476, 1, 16, tzinfo=dt.UTC), "0476-01-16T00:00:00.000Z"),
    ],
)
def test_a_moment_is_written_in_utc_with_milliseconds(moment: dt.datetime, text: str) -> None:
    assert format_timestamp(moment) == text
