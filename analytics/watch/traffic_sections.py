"""Sections of a digest about requests: what fell, moved, failed, and the totals."""

# Queries consist of constants, days, hashes and quoted rule ids.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from math import sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from analytics.watch.facts import (
    FALL_POINTS,
    FALL_REQUESTS,
    FELL,
    LOOK_BACK_DAYS,
    Changes,
    DigestPeriod,
    Fact,
    FactQuery,
    Line,
    Name,
    NameKind,
    RulesWrite,
    Section,
    Unit,
    find_coincidence,
    find_last_write,
    has_fallen,
    line,
    name_time,
    percent_sql,
)
from logs.columns import MAX_TIMESTAMP
from logs.definitions import CACHED, ERROR, HIT, REQUEST, TIMED, WAREHOUSE_TIME, hash_sql
from logs.layout import HOUR_MS
from logs.quoting import quote_value
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from analytics.watch.reading import DigestLog


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
    section = Section("moved")
    for number, rule in enumerate(moved, start=1):
        prefix = f"moved-{number}"
        told: date | None = rule["told"]
        section.facts += log.read_facts(*_queries(prefix, period, rule["ruleId"], told))
        section.name(f"{prefix}-rule", NameKind.RULE, rule["ruleId"])
        has_risen = rule["now"] > rule["before"]
        section.say("moved", prefix=prefix, has_risen=has_risen)
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
        section.lines += coincidences
        section.names += coincidence_names
    return section


def z_score(hits: int, total: int, hits_before: int, total_before: int) -> float:
    """Return the z-score of two proportions; positive if the first is greater; 0 for only hits or no hits."""
    share = (hits + hits_before) / (total + total_before)
    deviation = sqrt(share * (1 - share) * (1 / total + 1 / total_before))
    return (hits / total - hits_before / total_before) / deviation if deviation else 0.0


def _last_change(
    changes: Changes, rule_id: str, told: date | None, prefix: str
) -> tuple[list[Line], list[Name]]:
    """Return the line about the last change of the rule that no earlier digest has told, and its name."""
    own = [write for write in changes.earlier if rule_id in write.added | write.changed]
    if not own or (told is not None and own[-1].day <= told):
        return [], []
    name = own[-1].as_name(f"{prefix}-write")
    return [line("last-changed", write=name.id)], [name]


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


#: Totals but the hit rate are unusual if they differ from the median by more than this share of it.
_PART: Final = 0.3

_REQUESTS: Final = f"count(*) FILTER ({REQUEST})"
_MEASURES: Final = (
    ("requests", Unit.COUNT, 0, _REQUESTS),
    ("hit-rate", Unit.PERCENT, 1, percent_sql(_HITS, _REQUESTS)),
    ("warehouse", Unit.SECONDS, 1, f"round(coalesce({WAREHOUSE_TIME}, 0) / 1000.0, 1)"),
    ("response", Unit.MILLISECONDS, 0, f"round(avg({TIMED.column}) FILTER ({TIMED}))::BIGINT"),
    ("errors", Unit.COUNT, 0, f"count(*) FILTER ({ERROR})"),
)


def fell_section(
    log: DigestLog, period: DigestPeriod, changes: Changes, facts: Mapping[str, Fact]
) -> Section | None:
    """Return the hit rate that fell, and the newest write of the rules shortly before; None if it did not."""
    rate, usual = facts["hit-rate"].value, facts["hit-rate-median"].value
    if rate is None or usual is None or not has_fallen({name: fact.value for name, fact in facts.items()}):
        return None
    section = Section(FELL, [line("fell")], [facts["hit-rate"], facts["hit-rate-median"]])
    start = find_start(log, period, before=usual / 100, now=rate / 100, hits=_HITS, total=_REQUESTS)
    write = _find_write(log, period, changes, middle=(rate + usual) / 200)
    if write is None and start is not None:
        write = find_last_write(changes, start=start)
    if write is not None:
        name = write.as_name(f"{FELL}-write")
        changes_of_rules, rules = write.name_rules(FELL)
        section.names += [name, *rules]
        section.say("coincides-with-rules", write=name.id, changes=changes_of_rules)
    return section


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
    return max(falls, key=itemgetter(0), default=(0.0, None))[1]


def totals_section(period: DigestPeriod, facts: Mapping[str, Fact]) -> Section:
    """Return the totals that have a value, each with its median, and whether that is usual."""
    section = Section("totals")
    for name, *_ in _MEASURES:
        total, median = facts[name], facts[f"{name}-median"]
        if total.value is None:
            continue
        has_median = median.value is not None
        section.say("total", name=name, comparison=_difference(facts, name) if has_median else None)
        section.facts += [total, median] if has_median else [total]
    if facts["requests-median"].value is None:
        section.say("nothing-earlier", is_week=period.is_week)
    return section


def quiet_section(period: DigestPeriod, facts: Mapping[str, Fact]) -> Section | None:
    """Return the section of a quiet period, with one line; None if the totals are unusual."""
    if _is_unusual(facts):
        return None
    named = [
        facts[name]
        for name in ("requests", "hit-rate")
        if name == "requests" or facts[name].value is not None
    ]
    return Section("totals", [line("quiet", kind=period.kind, has_rate=len(named) > 1)], named)


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
    return {fact.id: fact for fact in log.read_facts(*queries)}


def _is_unusual(facts: Mapping[str, Fact]) -> bool:
    requests, usual = facts["requests"].value or 0, facts["requests-median"].value
    if usual is None or max(requests, usual) < FALL_REQUESTS:
        return False
    return any(_difference(facts, name) for name in ("requests", "warehouse", "hit-rate"))


def _difference(facts: Mapping[str, Fact], name: str) -> float:
    """Return a total less its median: 0 if it is usual, or if one of them has no value."""
    total, median = facts[name].value, facts[f"{name}-median"].value
    if total is None or median is None:
        return 0
    difference = total - median
    if name == "hit-rate":
        return difference if abs(difference) >= FALL_POINTS else 0
    return difference if abs(difference) > _PART * median else 0


#: Fewer errors, or a smaller part of what was asked in the hour, harm few users. Some always fail.
MIN_ERRORS: Final = 10
MIN_PERCENT: Final = 5
FACTOR: Final = 3
#: The usual number is the mean over the hours of this many days before. Days without entries do not count.
_BASE_DAYS: Final = 7
_ERRORS: Final = f"count(*) FILTER ({ERROR})"


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
    section = Section("errors")
    for number, (first, last, _) in enumerate(bursts, start=1):
        prefix = f"burst-{number}"
        start, end = first * HOUR_MS, (last + 1) * HOUR_MS
        own = f"FROM proxy_logs WHERE {period.sql} AND timestamp >= {start} AND timestamp < {end}"
        section.facts += log.read_facts(
            FactQuery(f"{prefix}-errors", Unit.COUNT, f"SELECT {_ERRORS} {own}"),
            FactQuery(f"{prefix}-requests", Unit.COUNT, f"SELECT {_REQUESTS} {own}"),
        )
        section.names += [
            name_time(f"{prefix}-start", start),
            # The last hour of the calendar ends with it.
            name_time(f"{prefix}-end", min(end, MAX_TIMESTAMP)),
        ]
        section.say("burst", prefix=prefix)
        write = find_last_write(changes, start=start)
        if write is not None:
            name = write.as_name(f"{prefix}-write")
            section.names.append(name)
            section.say("burst-after-write", write=name.id)
    (mean,) = log.read_facts(FactQuery("errors-usual", Unit.COUNT, f"SELECT round(({usual}), 2)"))
    if mean.value is not None:
        section.facts.append(mean)
        section.say("usual-errors")
    return section


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


#: In a log with fewer days before, every statement would be new.
_MIN_HISTORY_DAYS: Final = 7


def statements_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the new heavy statements, the heaviest first. None if the log is less than a week old."""
    if not any(day <= days_before(period.first, _MIN_HISTORY_DAYS) for day in log.days):
        return None
    before = period.before_sql(LOOK_BACK_DAYS)
    heavy = log.rows(
        f"""
        SELECT {hash_sql()} AS hash, standardizedSql AS statement
        FROM proxy_logs WHERE {period.sql} AND standardizedSql IS NOT NULL
        GROUP BY standardizedSql
        HAVING {WAREHOUSE_TIME} > 0
            AND 100 * {WAREHOUSE_TIME}
                >= (SELECT {WAREHOUSE_TIME} FROM proxy_logs WHERE {period.sql})
        ORDER BY {WAREHOUSE_TIME} DESC, hash"""
    )
    # At most a hundred are heavy. In one query, the engine might hold all statements of 28 days instead.
    texts = [row["statement"] for row in heavy] or [None]
    earlier = log.rows(
        f"""
        SELECT DISTINCT standardizedSql AS statement FROM proxy_logs
        WHERE {before} AND standardizedSql IN ({", ".join("?" * len(texts))})""",
        texts,
    )
    known = {row["statement"] for row in earlier}
    rows = [row for row in heavy if row["statement"] not in known][:_MOST]
    if not rows:
        return None
    section = Section("new-statements")
    for number, row in enumerate(rows, start=1):
        prefix = f"new-{number}"
        own = f"FROM proxy_logs WHERE {period.sql} AND {hash_sql()} = '{row['hash']}'"
        share = percent_sql(WAREHOUSE_TIME, f"(SELECT {WAREHOUSE_TIME} FROM proxy_logs WHERE {period.sql})")
        section.facts += log.read_facts(
            FactQuery(f"{prefix}-runs", Unit.COUNT, f"SELECT {_REQUESTS} {own}"),
            FactQuery(f"{prefix}-time", Unit.SECONDS, f"SELECT round({WAREHOUSE_TIME} / 1000.0, 1) {own}"),
            FactQuery(f"{prefix}-share", Unit.PERCENT, f"SELECT {share} {own}"),
        )
        section.name(f"{prefix}-statement", NameKind.STATEMENT, row["statement"])
        section.say("new-statement", prefix=prefix)
    return section
