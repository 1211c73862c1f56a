"""Rules whose hit rate moved, compared with the same weekdays or the weeks before."""

# Queries consist of constants, days and quoted rule ids.
# ruff: noqa: S608

from __future__ import annotations

from datetime import date
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from analytics.digest.changes import find_coincidence
from analytics.digest.facts import FactQuery, Name, NameKind, Section, Unit, percent_sql
from analytics.digest.periods import LOOK_BACK_DAYS
from logs.definitions import CACHED, HIT
from logs.layout import HOUR_MS
from logs.quoting import quote_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.digest.changes import Changes
    from analytics.digest.facts import Fact
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

#: The smallest z-score, points, and hits and misses (now and before) that count as a move.
MIN_Z: Final = 4.0
MIN_POINTS: Final = 3.0
MIN_REQUESTS: Final = 50
#: The most rules in the section.
_MOST: Final = 5
#: The fewest hits and misses of an hour that can be the start of a move.
_MIN_HOUR: Final = 5

_TOTAL: Final = f"count(*) FILTER ({CACHED})"
_HITS: Final = f"count(*) FILTER ({HIT})"
_RATE: Final = percent_sql(_HITS, _TOTAL)


def moved_section(log: DigestLog, period: DigestPeriod, changes: Changes) -> Section | None:
    """Return the rules whose HIT / (HIT + MISS) moved, the clearest move first."""
    moved = _find_moves(log, period, _find_told(log, period, changes))
    if not moved:
        return None
    sentences: list[str] = []
    facts: list[Fact] = []
    names: list[Name] = []
    for number, rule in enumerate(moved, start=1):
        prefix = f"moved-{number}"
        told: date | None = rule["told"]
        facts += log.read_facts(_queries(prefix, period, rule["ruleId"], told))
        names.append(Name(id=f"{prefix}-rule", kind=NameKind.RULE, value=rule["ruleId"], href=None))
        has_risen = rule["now"] > rule["before"]
        direction = "rose" if has_risen else "fell"
        change = f"{direction} from {{{prefix}-before}} to {{{prefix}-rate}}"
        sentences.append(f"The hit rate of {{{prefix}-rule}} {change}, over {{{prefix}-requests}} requests.")
        start = find_start(
            log,
            period,
            before=rule["before"],
            now=rule["now"],
            hits=_HITS,
            total=_TOTAL,
            rule_id=rule["ruleId"],
        )
        coincidences, coincidence_names = (
            find_coincidence(changes, rule_id=rule["ruleId"], has_risen=has_risen, start=start, prefix=prefix)
            if start is not None
            else ([], [])
        )
        if not coincidences:
            coincidences, coincidence_names = _last_change(changes, rule["ruleId"], told, prefix)
        sentences += coincidences
        names += coincidence_names
    return Section("moved", "Hit rates that moved", sentences, facts, names)


def z_score(hits: int, total: int, hits_before: int, total_before: int) -> float:
    """Return the z-score of two proportions; positive if the first is greater; 0 for only hits or no hits."""
    share = (hits + hits_before) / (total + total_before)
    deviation = sqrt(share * (1 - share) * (1 / total + 1 / total_before))
    return (hits / total - hits_before / total_before) / deviation if deviation else 0.0


def _last_change(
    changes: Changes, rule_id: str, told: date | None, prefix: str
) -> tuple[list[str], list[Name]]:
    """Return the sentence about the last change of the rule that no earlier digest has told, and its name."""
    own = [it for it in changes.earlier if rule_id in it.added | it.changed]
    if not own or (told is not None and own[-1].day <= told):
        return [], []
    name = own[-1].as_name(f"{prefix}-write")
    return [f"Before, this rule was last changed with {{{name.id}}}."], [name]


def _find_told(log: DigestLog, period: DigestPeriod, changes: Changes) -> Mapping[str, date]:
    """Return the day of the last change of each rule whose effect earlier digests have told.

    They have once the rule had enough requests on whole days after it. The days until then are no
    comparison any more: they would tell an old change as new, for weeks.
    """
    if not changes.earlier:
        return {}
    rows = log.rows(
        f"""
        SELECT matchedRule AS ruleId, day, {_TOTAL} AS total
        FROM proxy_logs WHERE {period.before_sql(LOOK_BACK_DAYS)} AND matchedRule IS NOT NULL
        GROUP BY matchedRule, day ORDER BY day DESC"""
    )
    requests: dict[str, int] = {}
    whole: dict[str, date] = {}
    for row in rows:
        rule_id = row["ruleId"]
        requests[rule_id] = requests.get(rule_id, 0) + row["total"]
        if requests[rule_id] >= MIN_REQUESTS:
            whole.setdefault(rule_id, date.fromisoformat(str(row["day"])))
    told: dict[str, date] = {}
    for write in changes.earlier:
        day = write.day
        told |= {rule_id: day for rule_id, since in whole.items() if day < since and write.touches(rule_id)}
    return told


def _find_moves(log: DigestLog, period: DigestPeriod, told: Mapping[str, date]) -> Sequence[dict[str, Any]]:
    cases = "".join(
        f" WHEN {quote_value(rule_id)} THEN day > '{day}'" for rule_id, day in sorted(told.items())
    )
    earlier = period.earlier_sql + (f" AND CASE matchedRule{cases} ELSE true END" if cases else "")
    rows = log.rows(
        f"""
        SELECT
            matchedRule AS ruleId,
            count(*) FILTER ({HIT} AND {period.sql}) AS hits,
            count(*) FILTER ({CACHED} AND {period.sql}) AS total,
            count(*) FILTER ({HIT} AND {earlier}) AS hitsBefore,
            count(*) FILTER ({CACHED} AND {earlier}) AS totalBefore
        FROM proxy_logs WHERE ({period.sql} OR {period.earlier_sql}) AND matchedRule IS NOT NULL
        GROUP BY matchedRule HAVING total >= {MIN_REQUESTS} AND totalBefore >= {MIN_REQUESTS}"""
    )
    moves = []
    for row in rows:
        z = z_score(row["hits"], row["total"], row["hitsBefore"], row["totalBefore"])
        now, before = row["hits"] / row["total"], row["hitsBefore"] / row["totalBefore"]
        # Use integers: 0.53 - 0.50 < 0.03 in floating point.
        difference = row["hits"] * row["totalBefore"] - row["hitsBefore"] * row["total"]
        has_points = 100 * abs(difference) >= MIN_POINTS * row["total"] * row["totalBefore"]
        if abs(z) >= MIN_Z and has_points:
            rule_id = row["ruleId"]
            moves.append({"ruleId": rule_id, "now": now, "before": before, "z": z, "told": told.get(rule_id)})
    return sorted(moves, key=lambda row: (-abs(row["z"]), row["ruleId"]))[:_MOST]


def _queries(prefix: str, period: DigestPeriod, rule_id: str, told: date | None) -> list[FactQuery]:
    rule = f"matchedRule = {quote_value(rule_id)}"
    own = f"FROM proxy_logs WHERE {period.sql} AND {rule}"
    before = f"FROM proxy_logs WHERE {period.earlier_sql} AND {rule}" + (
        f" AND day > '{told}'" if told else ""
    )
    return [
        FactQuery(f"{prefix}-before", Unit.PERCENT, f"SELECT {_RATE} {before}"),
        FactQuery(f"{prefix}-rate", Unit.PERCENT, f"SELECT {_RATE} {own}"),
        FactQuery(f"{prefix}-requests", Unit.COUNT, f"SELECT {_TOTAL} {own}"),
    ]


def find_start(
    log: DigestLog,
    period: DigestPeriod,
    *,
    before: float,
    now: float,
    hits: str,
    total: str,
    rule_id: str | None = None,
) -> int | None:
    """Return the start (epoch ms) of the first hour whose rate is nearer to the new rate than to the old.

    ``hits`` and ``total`` are the SQL of the rate's parts. With a ``rule_id``, it is the rate of that rule.
    """
    own = "" if rule_id is None else f"AND matchedRule = {quote_value(rule_id)}"
    rows = log.rows(
        f"""
        SELECT timestamp // {HOUR_MS} AS hour, {hits} AS hits, {total} AS total
        FROM proxy_logs
        WHERE {period.sql} {own} AND timestamp IS NOT NULL
        GROUP BY hour HAVING total >= {_MIN_HOUR} ORDER BY hour"""
    )
    middle = (now + before) / 2
    for row in rows:
        if (row["hits"] / row["total"] > middle) == (now > before):
            return int(row["hour"]) * HOUR_MS
    return None
