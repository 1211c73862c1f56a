"""The cache-bust token. Contract: Restore rules (the token always moves forward)."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from rules.ruleset import cache_bust

MOMENTS = st.integers(0, 10**13).map(
    lambda ms: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
)
SEQS = st.integers(0, 2**31 - 1)


@given(MOMENTS, st.integers(1, 10**9), SEQS, SEQS)
def test_a_later_write_has_a_greater_token_whatever_its_seq(
    moment: dt.datetime, later_by: int, seq: int, other: int
) -> None:
    first = cache_bust(seq=seq, modified_at=moment)
    second = cache_bust(seq=other, modified_at=moment + dt.timedelta(milliseconds=later_by))
    assert first < second
    assert len(first) == len(second) == 20


def test_its_form() -> None:
    moment = dt.datetime(2026, 11, 21, 2, 45, 7, 123_000, tzinfo=dt.UTC)
    assert cache_bust(seq=7, modified_at=moment) == "01a1fbfe43b300000007"
