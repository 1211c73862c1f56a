"""Times of histories, and their zones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from analytics.history.rows import BadHistory

_MINUTE: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_PART: Final = r"(?:\.(\d{1,9}))?"
_ZONE: Final = r"\s*(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?|[A-Za-z][\w/+-]*)?"
_TIME: Final = re.compile(rf"({_MINUTE.pattern})(?::([0-5]\d){_PART})?{_ZONE}")
_END: Final = re.compile(_PART + _ZONE)
_SECONDS: Final = {f":{second:02}": second * 1_000_000 for second in range(60)}
#: No warehouse ran earlier, and no date is later, whatever its zone; in epoch microseconds.
_YEARS: Final = range(253_402_214_400_000_000)
_UTC_NAMES: Final = frozenset({"Z", "UTC", "GMT"})


class Clock:
    """Reads the times of one file, in which all times without an offset are in one zone."""

    def __init__(self, path: Path, timezone: str) -> None:
        """Set the zone of times that name none: an IANA name, or empty for UTC.

        Raises:
            BadHistory: there is no such zone.
        """
        self._name = path.name
        self._named = ""
        try:
            self._zone = ZoneInfo(timezone) if timezone else UTC
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise BadHistory(f"There is no time zone {timezone!r}; write it like Europe/Berlin.") from error
        self._is_chosen = bool(timezone)
        # An export need not be in the order of time: so many minutes are 45 days.
        self._minute = lru_cache(65_536)(self._read_minute)

    def read_all(self, values: Iterable[Any], what: str, numbers: Iterable[int]) -> list[int]:
        """Return the times of a column in epoch microseconds. See `read`.

        Args:
            what, numbers: the place of each, such as a row, for errors.
        """
        times = []
        for number, value in zip(numbers, values, strict=True):
            if isinstance(value, str):
                # Most times are written like this. Their minutes and endings repeat, so both are remembered.
                try:
                    part, zone = _read_end(value[19:])
                    part += _SECONDS[value[16:19]]
                    times.append(self._minute(value[:16], zone) + part)
                    continue
                except (KeyError, ValueError, _UnclearZone):
                    pass
            times.append(self.read(value, f"{what} {number}"))
        return times

    def read(self, value: Any, place: str) -> int:
        """Return a time in epoch microseconds.

        Args:
            value: a text, a datetime, or epoch milliseconds.
            place: where it is, for errors.

        Raises:
            BadHistory: it is no time, or in a zone that is not clear.
        """
        if isinstance(value, datetime):
            moment = value if value.tzinfo else value.replace(tzinfo=self._zone)
            us = int(moment.timestamp()) * 1_000_000 + moment.microsecond
            return self._require_possible(us, value, place)
        if isinstance(value, int):
            return self._require_possible(value * 1_000, value, place)
        match = _TIME.fullmatch(str(value).strip())
        if match is None:
            raise self._refuse(value, place, "is no time as 2026-03-01 12:00.")
        minute, second, part, zone = match.groups(default="")
        try:
            begin = self._minute(minute, zone)
        except ValueError as error:
            raise self._refuse(value, place, f"is no time: {error}.") from error
        except _UnclearZone as error:
            raise BadHistory(f"{self._name}, {place}: {error}") from error
        return begin + int(second or 0) * 1_000_000 + _as_us(part)

    def _refuse(self, value: Any, place: str, why: str) -> BadHistory:
        return BadHistory(f"{self._name}, {place}: {str(value)[:60]!r} {why}")

    def _require_possible(self, moment: int, value: Any, place: str) -> int:
        if moment not in _YEARS:
            raise self._refuse(value, place, "is no time from 1970 to 9999.")
        return moment

    def _read_minute(self, text: str, zone: str) -> int:
        """Return the microseconds at which a minute begins."""
        if not _MINUTE.fullmatch(text):
            raise ValueError(text)
        moment = int(self._begin(f"{text[:10]}T{text[11:]}", zone).timestamp()) * 1_000_000
        if moment not in _YEARS:
            raise ValueError("it is not from 1970 to 9999")
        return moment

    def _begin(self, text: str, zone: str) -> datetime:
        moment = datetime.fromisoformat(text)
        if zone in _UTC_NAMES or not zone:
            self._require_same(zone or "no zone")
            return moment.replace(tzinfo=UTC if zone else self._zone)
        if zone[0] in "+-":
            digits = zone[1:].replace(":", "").ljust(4, "0")
            return datetime.fromisoformat(f"{text}{zone[0]}{digits[:2]}:{digits[2:]}")
        if not self._is_chosen:
            raise _UnclearZone(
                f"the zone {zone!r} has several meanings. Say which one it is with --timezone Europe/Berlin."
            )
        moments = [moment.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1)]
        found = next((one for one in moments if one.tzname() == zone), None)
        if found is None:
            raise _UnclearZone(
                f"the zone {zone!r} is not of --timezone {self._zone}. Give the files of each zone alone."
            )
        return found

    def _require_same(self, zone: str) -> None:
        """Refuse times of two zones, of which one has no name."""
        zone = zone if zone == "no zone" else "UTC"
        if self._named not in {"", zone} and not self._is_chosen:
            raise _UnclearZone(
                f"times with a zone and times without one ({self._named}, {zone}). Say with --timezone which "
                "zone those without are in."
            )
        self._named = zone


class _UnclearZone(Exception):
    """The message says which zone, and what to do."""


@lru_cache(65_536)
def _read_end(text: str) -> tuple[int, str]:
    """Return the microseconds and the zone after the seconds of a time.

    Raises:
        ValueError: it is written in another way.
    """
    match = _END.fullmatch(text)
    if match is None:
        raise ValueError(text)
    part, zone = match.groups(default="")
    return _as_us(part), zone


def _as_us(part: str) -> int:
    return int(part.ljust(6, "0")[:6])
