"""Numbers, shares, durations, sizes, money and times, for people to read.

The same on staff pages, in mails and in commands. `tenantadmin/static/dashboard/format.js` has these
functions for browsers; `tests/formats.json` holds both to the same texts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from itertools import dropwhile, pairwise
from typing import Any, Final

#: Shown for a value that is missing.
NONE: Final = "–"
_MINUS: Final = "\u2212"
_TENTH: Final = Decimal("0.1")
_ONE: Final = Decimal(1)

_DAY: Final = 86_400
#: Units, each with its size in the smallest.
_TIMES: Final = ((1, "ms"), (1000, "s"), (60_000, "min"), (3_600_000, "h"))
_SIZES: Final = ((1, "B"), (10**3, "kB"), (10**6, "MB"), (10**9, "GB"), (10**12, "TB"), (10**15, "PB"))
_SPANS: Final = ((_DAY, "d"), (3600, "h"), (60, "min"), (1, "s"))
_AGES: Final = (
    (365 * _DAY, "year"),
    (30 * _DAY, "month"),
    (_DAY, "day"),
    (3600, "hour"),
    (60, "minute"),
    (1, "second"),
)
#: Fewer days are not shown as months.
_LEAST_MONTHS: Final = 60 * _DAY


def number(value: float | None) -> str:
    """Show a number without decimals: ``2,276``."""
    return NONE if value is None else _signed(value, _rounded(abs(value), _ONE))


def count(value: int, noun: str, plural: str | None = None) -> str:
    """Show how many there are: ``1 rule``, ``2,276 rules``. ``plural``: if it is more than an s longer."""
    return f"{number(value)} {noun if value == 1 else plural or f'{noun}s'}"


def percent(value: float | None) -> str:
    """Show a share (0 to 1) with one decimal: ``42.9%``. Only all is ``100%``, and only none is ``0%``."""
    if value is None:
        return NONE
    if value in {0, 1}:
        return "100%" if value else "0%"
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return _signed(value, f"{_rounded(100 * abs(value), _TENTH)}%")


def ratio(part: float, whole: float) -> str:
    """Show ``part`` of ``whole`` as `percent` does."""
    return percent(part / whole if whole else None)


def points(value: float | None) -> str:
    """Show a difference of two shares: ``+1.3 points``."""
    return _change(
        value, lambda points: "<0.1 points" if points < 0.0005 else f"{_rounded(100 * points, _TENTH)} points"
    )


def duration(value: float | None) -> str:
    """Show milliseconds in the largest unit that fits: ``2.4 h``. Without a decimal it is exact: ``2 h``."""
    return NONE if value is None else _signed(value, _scaled(abs(value), _TIMES))


def durations(*values: float) -> list[str]:
    """Show milliseconds that are compared, in one unit: ``66.2 min`` and ``48.6 min``.

    It is the unit of the shortest, if the longest has fewer than 1,000 of it.
    """
    times = [abs(value) for value in values if value] or [0]
    least = duration(min(times)).rpartition(" ")[2]
    units = dropwhile(lambda entry: entry[1] != least, _TIMES)
    size, unit = next((entry for entry in units if max(times) < 1000 * entry[0]), _TIMES[-1])

    def show(value: float) -> str:
        return f"<0.1 {unit}" if 0 < value < size / 20 and size > 1 else _scaled(value, ((size, unit),))

    return [_signed(value, show(abs(value))) for value in values]


def span(seconds: int | None) -> str:
    """Show seconds exactly, in the largest unit that divides them: ``90 s``, ``2 min``."""
    if seconds is None:
        return NONE
    for size, unit in _SPANS:
        if seconds and seconds % size == 0:
            return f"{number(seconds // size)} {unit}"
    return "0 s"


def size(value: float | None) -> str:
    """Show bytes in the largest unit that fits, of 1,000 each: ``1.5 MB``."""
    return NONE if value is None else _signed(value, _scaled(abs(value), _SIZES))


def money(amount: str | None, currency: str) -> str:
    """Show an amount, which is decimal text with all its digits: ``1,234.50 USD``."""
    if amount is None:
        return NONE
    value = Decimal(amount)
    return f"{_MINUS if value < 0 else ''}{abs(value):,f} {currency}"


def money_between(amounts: Iterable[str], currency: str) -> str:
    """Show amounts between which the true one is: ``0 to 9.32 USD``, or ``9.32 USD`` if they are the same."""
    low, high = sorted(amounts, key=Decimal)
    if Decimal(low) == Decimal(high):
        return money(high, currency)
    least, most = (money(end, "").rstrip() if Decimal(end) else "0" for end in (low, high))
    return f"{least} to {most} {currency}"


def change(value: float | None) -> str:
    """Show a difference of two numbers: ``+40``."""
    return _change(value, lambda value: "<1" if value < 0.5 else number(value))


def duration_change(value: float | None) -> str:
    """Show a difference of two durations in milliseconds: ``−34.1 s``."""
    return _change(value, duration)


def saving(text: str) -> str:
    """Say a saving that is shown as ``text``: ``53 s``, or ``costs 53 s more`` in place of a minus."""
    return f"costs {text.removeprefix(_MINUS)} more" if text.startswith(_MINUS) else text


def between(value: Mapping[str, Any] | None, show: Callable[[float | None], str] = number) -> str:
    """Show ``{low, likely?, high}``: ``≈ 12 (9 to 15)``, or ``≈ 12`` if both bounds are shown so."""
    if value is None:
        return NONE
    low, high, likely = value["low"], value["high"], value.get("likely")
    if low == high:
        return show(low)
    least, middle, most = (show(value) if value else "0" for value in (low, likely, high))
    if least == most:
        return f"≈ {least}"
    return f"{least} to {most}" if likely is None else f"≈ {middle} ({least} to {most})"


def day_in_words(day: dt.date, today: dt.date) -> str:
    """Show a day in a sentence: ``Thursday, 26 November``, with the year where it is another one."""
    return f"{day:%A}, {day.day} {day:%B}" + (f" {day.year}" if day.year != today.year else "")


def exact_time(at: dt.datetime) -> str:
    """Show a time to the second, in UTC: ``2026-11-24 23:34:10 UTC``."""
    return _in_utc(at, "seconds")


def exact_minute(at: dt.datetime) -> str:
    """Show a time to the minute, in UTC: ``2026-11-24 23:34 UTC``."""
    return _in_utc(at, "minutes")


def _in_utc(at: dt.datetime, unit: str) -> str:
    # strftime would write years before 1000 with fewer than four digits.
    return f"{at.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ', unit)} UTC"


def days_between(first: dt.date, last: dt.date, *, today: dt.date) -> str:
    """Show days in a sentence: ``2 to 31 October``. A year is shown if a day is not in the present one."""
    has_year = first.year != today.year or last.year != today.year

    def show(day: dt.date, *, is_first: bool) -> str:
        month = "" if is_first and first.replace(day=1) == last.replace(day=1) else f" {day:%B}"
        year = f" {day.year}" if has_year and not (is_first and first.year == last.year) else ""
        return f"{day.day}{month}{year}"

    return f"{show(first, is_first=True)} to {show(last, is_first=False)}"


def ago(at: dt.datetime, *, now: dt.datetime, zone: dt.tzinfo = dt.UTC) -> str:
    """Show how long ago a time was, or how far ahead it is: ``8 days ago``, ``in 3 hours``.

    Days are those of the calendar in ``zone``: all of 19 November is 8 days before any time of 27 November.
    """
    text = apart(at, now)
    if text.endswith((" day", " days")):
        days = now.astimezone(zone).date() - at.astimezone(zone).date()
        text = count(max(abs(days.days), 1), "day")
    # Also up to a minute ahead: clocks differ.
    return "just now" if not text else f"{text} ago" if now > at else f"in {text}"


def apart(at: dt.datetime, other: dt.datetime) -> str:
    """Show the time between two times in the words of `ago`: ``8 days``. Empty below a minute."""
    seconds = (abs(other - at) // dt.timedelta(milliseconds=1) + 500) // 1000
    for (size, unit), (smaller, _) in pairwise(_AGES):
        # 59.5 minutes are an hour, and not 60 minutes.
        if 2 * seconds + smaller >= 2 * (_LEAST_MONTHS if unit == "month" else size):
            return count(max((2 * seconds + size) // (2 * size), 1), unit)
    return ""


def _change(value: float | None, show: Callable[[float], str]) -> str:
    if value is None:
        return NONE
    return "no change" if value == 0 else f"{'+' if value > 0 else _MINUS}{show(abs(value))}"


def _signed(value: float, text: str) -> str:
    return f"{_MINUS if value < 0 and text.strip('0') else ''}{text}"


def _rounded(value: float, step: Decimal) -> str:
    if isinstance(value, int):
        return f"{value:,}" if step is _ONE else f"{value:,}.0"
    # A number is rounded as it is written: 0.25 is 0.3, and 1.005 no less than it seems.
    return f"{Decimal(repr(value)).quantize(step, ROUND_HALF_UP):,}"


def _scaled(value: float, units: tuple[tuple[int, str], ...]) -> str:
    if 0 < value < 1:
        return f"<1 {units[0][1]}"
    for (size, unit), (following, _) in zip(units, (*units[1:], (0, "")), strict=True):
        in_unit = value / size
        step = _ONE if size == 1 or in_unit == int(in_unit) else _TENTH
        text = _rounded(in_unit, step)
        # 59.96 s are not 60.0 s but a minute.
        if not following or Decimal(text.replace(",", "")) * size < following:
            return f"{text} {unit}"
    raise AssertionError
