"""The totals of the period, compared with the median of the same weekdays or of the weeks before."""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.digest.changes import find_last_write
from analytics.digest.facts import (
    FALL_POINTS,
    FALL_REQUESTS,
    FELL,
    FactQuery,
    Section,
    Unit,
    has_fallen,
    percent_sql,
)
from analytics.digest.sections.moved import find_start
from logs.definitions import ERROR, HIT, REQUEST, TIMED, WAREHOUSE_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.digest.changes import Changes, RulesWrite
    from analytics.digest.facts import Fact, Name
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: Totals but the hit rate are unusual if they differ from the median by more than this share of it.
_PART: Final = 0.3

_HITS: Final = f"count(*) FILTER ({HIT})"
_REQUESTS: Final = f"count(*) FILTER ({REQUEST})"
_MEASURES: Final = (
    ("requests", Unit.COUNT, 0, _REQUESTS),
    ("hit-rate", Unit.PERCENT, 1, percent_sql(_HITS, _REQUESTS)),
    ("warehouse", Unit.SECONDS, 1, f"round(coalesce({WAREHOUSE_TIME}, 0) / 1000.0, 1)"),
    ("response", Unit.MILLISECONDS, 0, f"round(avg({TIMED.column}) FILTER ({TIMED}))::BIGINT"),
    ("errors", Unit.COUNT, 0, f"count(*) FILTER ({ERROR})"),
)
_SENTENCES: Final = (
    ("requests", "Requests: {requests}"),
    ("hit-rate", "Hits: {hit-rate} of them"),
    ("warehouse", "Warehouse time: {warehouse}"),
    ("response", "Mean response time: {response}"),
    ("errors", "Failures: {errors}"),
)


def fell_section(
    log: DigestLog, period: DigestPeriod, changes: Changes, facts: Mapping[str, Fact]
) -> Section | None:
    """Return the hit rate that fell, and the newest write of the rules shortly before; None if it did not."""
    rate, usual = facts["hit-rate"].value, facts["hit-rate-median"].value
    if rate is None or usual is None or not has_fallen({name: it.value for name, it in facts.items()}):
        return None
    sentences = ["The hit rate fell to {hit-rate}; usual: {hit-rate-median}."]
    names: list[Name] = []
    start = find_start(log, period, before=usual / 100, now=rate / 100, hits=_HITS, total=_REQUESTS)
    write = _find_write(log, period, changes, middle=(rate + usual) / 200)
    if write is None and start is not None:
        write = find_last_write(changes, start=start)
    if write is not None:
        name = write.as_name(f"{FELL}-write")
        told, rules = write.describe(FELL)
        names += [name, *rules]
        why = f": {told}" if told else ""
        sentences.append(f"Coincides with the rules of {{{name.id}}}{why}.")
    return Section(FELL, "The hit rate fell", sentences, _named(facts, sentences), names)


def _find_write(
    log: DigestLog, period: DigestPeriod, changes: Changes, *, middle: float
) -> RulesWrite | None:
    """Return the write of the period after which the hit rate fell the most, to below ``middle``."""
    falls: list[tuple[float, RulesWrite]] = []
    for write in changes.writes:
        if not period.first <= write.day <= period.last:
            continue
        rows = log.rows(
            f"SELECT timestamp >= {write.at} AS isAfter, {_HITS} / {_REQUESTS} AS rate FROM proxy_logs "
            f"WHERE {period.sql} AND timestamp IS NOT NULL GROUP BY isAfter HAVING {_REQUESTS} > 0"
        )
        rates = {row["isAfter"]: row["rate"] for row in rows}
        after = rates.get(True, 1.0)
        fall = rates.get(False, 1.0) - after
        if after < middle and 100 * fall >= FALL_POINTS:
            falls.append((fall, write))
    return max(falls, key=lambda it: it[0], default=(0.0, None))[1]


def totals_section(period: DigestPeriod, facts: Mapping[str, Fact]) -> Section:
    """Return the totals that have a value, each with its median, and whether that is usual."""
    sentences: list[str] = []
    for name, now in _SENTENCES:
        median = f"{{{name}-median}}"
        if facts[name].value is None:
            continue
        if facts[f"{name}-median"].value is None:
            sentences.append(f"{now}.")
        else:
            sentences.append(f"{now}, {_compare(facts, name)} ({median}).")
    if facts["requests-median"].value is None:
        sentences.append(f"There is no earlier {_same(period)} to compare with.")
    return Section("totals", "Totals", sentences, _named(facts, sentences))


def quiet_section(period: DigestPeriod, facts: Mapping[str, Fact]) -> Section | None:
    """Return the section of a quiet period, with one sentence; None if the totals are unusual."""
    if _is_unusual(facts):
        return None
    rate = ", hits: {hit-rate}" if facts["hit-rate"].value is not None else ""
    counts = f"requests: {{requests}}{rate}"
    sentences = [f"A quiet {period.kind} without anything unusual; {counts}."]
    return Section("totals", "Totals", sentences, _named(facts, sentences))


def read_totals(log: DigestLog, period: DigestPeriod) -> dict[str, Fact]:
    """Return the totals and their medians by id."""
    queries = []
    for name, unit, digits, measure in _MEASURES:
        own = f"SELECT {measure} FROM proxy_logs WHERE {period.sql}"
        middle = "round(median(value))::BIGINT" if digits == 0 else f"round(median(value), {digits})"
        earlier = (
            f"SELECT {middle} FROM (SELECT {measure} AS value FROM proxy_logs "
            f"WHERE {period.earlier_sql} GROUP BY {period.grouping_sql})"
        )
        queries += [FactQuery(name, unit, own), FactQuery(f"{name}-median", unit, earlier)]
    return {fact.id: fact for fact in log.read_facts(queries)}


def _is_unusual(facts: Mapping[str, Fact]) -> bool:
    requests, usual = facts["requests"].value or 0, facts["requests-median"].value
    if usual is None or max(requests, usual) < FALL_REQUESTS:
        return False
    return any(_difference(facts, name) for name in ("requests", "warehouse", "hit-rate"))


def _compare(facts: Mapping[str, Fact], name: str) -> str:
    """Say how a total compares with its median."""
    difference = _difference(facts, name)
    if not difference:
        return "within what is usual"
    return f"{'more' if difference > 0 else 'less'} than usual"


def _difference(facts: Mapping[str, Fact], name: str) -> float:
    """Return a total less its median: 0 if it is usual, or if one of them has no value."""
    total, median = facts[name].value, facts[f"{name}-median"].value
    if total is None or median is None:
        return 0
    difference = total - median
    if name == "hit-rate":
        return difference if abs(difference) >= FALL_POINTS else 0
    return difference if abs(difference) > _PART * median else 0


def _named(facts: Mapping[str, Fact], sentences: Sequence[str]) -> list[Fact]:
    """Return the facts that the sentences refer to."""
    text = " ".join(sentences)
    return [fact for name, fact in facts.items() if f"{{{name}}}" in text]


def _same(period: DigestPeriod) -> str:
    return "week" if period.is_week else "day of the same name"
