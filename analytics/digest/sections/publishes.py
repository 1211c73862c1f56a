"""Published rules, and their cost: valid results that had to be computed again."""

# Queries consist of constants, days and times.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.digest.facts import FactQuery, Section, Unit
from logs.definitions import CACHED, STORED_MISS
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from datetime import date

    from analytics.digest.changes import Changes, RulesWrite
    from analytics.digest.facts import Fact, Name
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: The number of days in which to search for the time when a result was stored.
_STORES_DAYS: Final = 7
_MOST: Final = 5


def publishes_section(log: DigestLog, period: DigestPeriod, changes: Changes) -> Section | None:
    """Return the newest publications in the period, in order of time."""
    writes = [write for write in changes.writes if period.first <= write.day <= period.last]
    if not writes:
        return None
    sentences: list[str] = []
    facts: list[Fact] = []
    names: list[Name] = []
    shown = writes[-_MOST:]
    for number, write in enumerate(shown, start=1):
        prefix = f"publish-{number}"
        following = shown[number] if number < len(shown) else None
        repeated = _repeated_sql(write, following, last=period.last)
        read = log.read_facts(
            [
                FactQuery(f"{prefix}-misses", Unit.COUNT, f"SELECT count(*) FROM ({repeated})"),
                FactQuery(
                    f"{prefix}-time",
                    Unit.SECONDS,
                    f"SELECT round(coalesce(sum(ms), 0) / 1000.0, 1) FROM ({repeated})",
                ),
            ]
        )
        facts += read
        told, changed = write.describe(prefix)
        names += [write.as_name(f"{prefix}-write"), *changed]
        effect = f"{told}, and emptied the cache" if told else "it emptied the cache"
        again = (
            f"That cost {{{prefix}-time}} of warehouse time, because results that were still valid had to be "
            f"made again; results: {{{prefix}-misses}}."
            if read[0].value
            else "That cost nothing: no result that was still valid had to be made again."
        )
        sentences.append(f"Rules were published with {{{prefix}-write}}: {effect}. {again}")
    if len(writes) > len(shown):
        sentences.append("Rules were published more often.")
    return Section("publishes", "Published rules", sentences, facts, names)


def _repeated_sql(write: RulesWrite, following: RulesWrite | None, *, last: date) -> str:
    """Return the SQL for the first misses after a write whose results were valid in the cache before it."""
    written_on = write.day
    until = f" AND timestamp < {following.at}" if following else ""
    return (
        "SELECT again.ms FROM ("
        "SELECT matchedRule, queryHash, min(timestamp) AS at, "
        "arg_min_null(warehouseExecutionTimeMs, timestamp) AS ms FROM proxy_logs "
        f"WHERE day BETWEEN '{written_on}' AND '{last}' AND {STORED_MISS} "
        f"AND timestamp >= {write.at}{until} GROUP BY matchedRule, queryHash) AS again "
        "JOIN (SELECT matchedRule, queryHash, max(cacheExpiresAt) AS expiresAt FROM proxy_logs "
        f"WHERE day BETWEEN '{days_before(written_on, _STORES_DAYS)}' AND '{written_on}' "
        f"AND {CACHED} AND timestamp < {write.at} "
        "GROUP BY matchedRule, queryHash) AS stored USING (matchedRule, queryHash) "
        "WHERE again.at < stored.expiresAt"
    )
