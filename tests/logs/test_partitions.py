"""The longest window of days that fits under a limit of rows."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from logs.partitions import describe_longest_window

LAST = date(2026, 3, 31)


@given(
    st.dictionaries(st.integers(0, 20), st.integers(1, 5)),
    st.integers(0, 2),
    st.integers(0, 30),
)
def test_one_day_more_would_not_fit(counts: dict[int, int], before: int, most: int) -> None:
    rows = {LAST - timedelta(days=back): count for back, count in counts.items()}
    # The window that was asked for does not fit.
    rows[LAST - timedelta(days=25)] = most + 1

    def fits(back: int) -> bool:
        first = LAST - timedelta(days=back + before)
        return sum(count for day, count in rows.items() if day >= first) <= most

    told = describe_longest_window(rows, last=LAST, before=before, most=most)
    if fits(0):
        back = max(back for back in range(30) if fits(back))
        assert told == (f"The longest window up to {LAST} that fits begins on {LAST - timedelta(days=back)}.")
    else:
        assert told == f"No window that ends on {LAST} fits."
