"""Bursts of errors: hours with many errors, a notable share of what was asked, and more than usual."""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.digest.changes import find_last_write
from analytics.digest.facts import FactQuery, Section, Unit, name_time
from logs.columns import MAX_TIMESTAMP
from logs.definitions import ERROR, REQUEST
from logs.layout import HOUR_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.digest.changes import Changes
    from analytics.digest.facts import Fact, Name
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: Fewer errors, or a smaller part of what was asked in the hour, harm few users. Some always fail.
MIN_ERRORS: Final = 10
MIN_PERCENT: Final = 5
FACTOR: Final = 3
#: The usual number is the mean over the hours of this many days before. Days without entries do not count.
_BASE_DAYS: Final = 7
_MOST: Final = 5
_ERRORS: Final = f"count(*) FILTER ({ERROR})"
_REQUESTS: Final = f"count(*) FILTER ({REQUEST})"


def errors_section(log: DigestLog, period: DigestPeriod, changes: Changes) -> Section | None:
    """Return the bursts in order of time. Consecutive hours are one burst."""
    usual = (
        f"SELECT {_ERRORS} / nullif(24.0 * count(DISTINCT day), 0) "
        f"FROM proxy_logs WHERE {period.before_sql(_BASE_DAYS)}"
    )
    rows = log.rows(
        f"""
        SELECT timestamp // {HOUR_MS} AS hour, {_ERRORS} AS errors
        FROM proxy_logs WHERE {period.sql} AND timestamp IS NOT NULL
        GROUP BY hour HAVING errors >= {MIN_ERRORS} AND 100 * errors >= {MIN_PERCENT} * (errors + {_REQUESTS})
            AND errors > {FACTOR} * coalesce(({usual}), 0)
        ORDER BY hour"""
    )
    bursts = _join([(row["hour"], row["errors"]) for row in rows])
    if not bursts:
        return None
    sentences: list[str] = []
    facts: list[Fact] = []
    names: list[Name] = []
    for number, (first, last, _) in enumerate(bursts, start=1):
        prefix = f"burst-{number}"
        start, end = first * HOUR_MS, (last + 1) * HOUR_MS
        own = f"FROM proxy_logs WHERE {period.sql} AND timestamp >= {start} AND timestamp < {end}"
        facts += log.read_facts(
            [
                FactQuery(f"{prefix}-errors", Unit.COUNT, f"SELECT {_ERRORS} {own}"),
                FactQuery(f"{prefix}-requests", Unit.COUNT, f"SELECT {_REQUESTS} {own}"),
            ]
        )
        names += [
            name_time(f"{prefix}-start", start),
            # The last hour of the calendar ends with it.
            name_time(f"{prefix}-end", min(end, MAX_TIMESTAMP)),
        ]
        sentences.append(
            f"Failed between {{{prefix}-start}} and {{{prefix}-end}}: {{{prefix}-errors}}, "
            f"beside {{{prefix}-requests}} requests."
        )
        write = find_last_write(changes, start=start)
        if write is not None:
            name = write.as_name(f"{prefix}-write")
            names.append(name)
            sentences.append(
                f"Coincides with the rules of {{{name.id}}}: afterwards, requests that the cache answered "
                "before go to the warehouse."
            )
    (mean,) = log.read_facts([FactQuery("errors-usual", Unit.COUNT, f"SELECT round(({usual}), 2)")])
    if mean.value is not None:
        facts.append(mean)
        sentences.append("Usual in an hour of the week before: {errors-usual}.")
    return Section("errors", "Bursts of errors", sentences, facts, names)


def _join(hours: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Join consecutive hours to (first, last, errors). Return the largest bursts, in order of time."""
    bursts: list[tuple[int, int, int]] = []
    for hour, errors in hours:
        if bursts and bursts[-1][1] == hour - 1:
            first, _, total = bursts.pop()
            bursts.append((first, hour, total + errors))
        else:
            bursts.append((hour, hour, errors))
    largest = sorted(bursts, key=lambda burst: (-burst[2], burst[0]))[:_MOST]
    return sorted(largest)
