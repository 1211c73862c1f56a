"""The digest of a period, and its sections about rules and what they cause."""

# Queries consist of constants, days, columns, quoted rule ids and hashes.
# ruff: noqa: S608

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from accounts.tenants.pricing import Pricing
from analytics.reports.savings_sql import SAVINGS_SQL, fill_savings
from analytics.reports.sql import leak_counts_sql, leak_findings_sql, stale_totals_sql
from analytics.watch.facts import (
    LEAKS,
    Changes,
    DigestKind,
    DigestPeriod,
    Fact,
    FactQuery,
    Name,
    NameKind,
    RulesWrite,
    Section,
    Unit,
    percent_sql,
)
from analytics.watch.traffic_sections import (
    errors_section,
    fell_section,
    moved_section,
    quiet_section,
    read_totals,
    statements_section,
    totals_section,
)
from logs.definitions import CACHED, SHARED, STORED_MISS, hash_sql
from logs.layout import HOUR_MS
from logs.quoting import quote_text, quote_value
from rules.conditions import CONDITION_KEYS
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from analytics.watch.reading import DigestLog


#: The section names at most this many.
_MOST_NAMED: Final = 5
#: A digest that found more leaking statements, or larger ones, keeps none of them. Their leaks stay open.
_MOST_KEPT: Final = 20
_MOST_BYTES: Final = 64 * 1024
#: The condition keys that say what is asked, and not who asks.
_COLUMNS: Final = tuple(
    key.name
    for key in CONDITION_KEYS.values()
    if not key.caller_supplied and key.name not in {"userName", "clientIp"}
)


def find_leaking(log: DigestLog, period: DigestPeriod) -> list[dict[str, Any]]:
    """Return the statements that leaked, each with the values that all of its requests had, by condition key.

    The list is empty if they are too many or too large.
    """
    findings = leak_findings_sql(first=period.first, last=period.last, warehouse=log.warehouse)
    columns = ", ".join(f'list(DISTINCT "{name}")' for name in _COLUMNS)
    rows = log.connection.execute(
        log.with_held(
            f"SELECT {columns} FROM proxy_logs JOIN (SELECT DISTINCT statement FROM ({findings}))"
            " ON standardizedSql IS NOT DISTINCT FROM statement"
            f" WHERE {period.sql} AND {SHARED}"
            f" GROUP BY standardizedSql ORDER BY standardizedSql LIMIT {_MOST_KEPT + 1}"
        )
    ).fetchall()
    leaking = [
        {name: values[0] for name, values in zip(_COLUMNS, row, strict=True) if len(values) == 1}
        for row in rows
    ]
    # The verdict of each tenant reads them.
    return leaking if len(rows) <= _MOST_KEPT and len(dump_json(leaking)) <= _MOST_BYTES else []


def leaks_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the worst leaks: certain leaks first, then the most often served."""
    findings = leak_findings_sql(first=period.first, last=period.last, warehouse=log.warehouse)
    log.hold(findings)
    rows = log.rows(
        f"SELECT grade, ruleId, statement, {hash_sql('statement')} AS hash FROM ({findings}) "
        f"ORDER BY grade, served DESC, ruleId, hash LIMIT {_MOST_NAMED}"
    )
    if not rows:
        return None
    section = Section(LEAKS)
    for number, row in enumerate(rows, start=1):
        prefix = f"leak-{number}"
        sql = leak_counts_sql(
            first=period.first, last=period.last, rule_id=row["ruleId"], statement_hash=row["hash"]
        )
        log.hold(sql)
        counted = log.read_facts(
            *(
                FactQuery(f"{prefix}-{name}", Unit.COUNT, f"SELECT {name} FROM ({sql})")
                for name in ("keys", "served", "users")
            )
        )
        section.facts += counted
        section.name(f"{prefix}-statement", NameKind.STATEMENT, row["statement"])
        has_rule = row["ruleId"] is not None
        if has_rule:
            section.name(f"{prefix}-rule", NameKind.RULE, row["ruleId"])
        numbers = [fact.value for fact in counted]
        section.say("leak", prefix=prefix, grade=row["grade"], has_rule=has_rule, numbers=numbers)
    return section


_MOST: Final = 5


def stale_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the rules with the most hits at risk. The report of stale hits lists the tables."""
    totals = stale_totals_sql(first=period.first, last=period.last, warehouse=log.warehouse)
    log.hold(totals)
    rows = log.rows(
        f"SELECT ruleId FROM ({totals}) WHERE ruleId IS NOT NULL AND 100 * atRisk > hits "
        f"ORDER BY atRisk DESC, ruleId LIMIT {_MOST}"
    )
    if not rows:
        return None
    section = Section("stale")
    for number, row in enumerate(rows, start=1):
        prefix = f"stale-{number}"
        own = f"FROM ({totals}) WHERE ruleId = {quote_value(row['ruleId'])}"
        section.facts += log.read_facts(
            FactQuery(f"{prefix}-risk", Unit.COUNT, f"SELECT atRisk {own}"),
            FactQuery(f"{prefix}-hits", Unit.COUNT, f"SELECT hits {own}"),
        )
        section.name(f"{prefix}-rule", NameKind.RULE, row["ruleId"])
        section.say("stale", prefix=prefix)
    section.say("stale-without-age")
    section.say("stale-elsewhere")
    return section


#: The number of days in which to search for the time when a result was stored.
_STORES_DAYS: Final = 7


def publishes_section(log: DigestLog, period: DigestPeriod, changes: Changes) -> Section | None:
    """Return the newest publications in the period, in order of time."""
    writes = [write for write in changes.writes if period.first <= write.day <= period.last]
    if not writes:
        return None
    section = Section("publishes")
    shown = writes[-_MOST:]
    for number, write in enumerate(shown, start=1):
        prefix = f"publish-{number}"
        following = shown[number] if number < len(shown) else None
        repeated = _repeated_sql(write, following, last=period.last)
        log.hold(repeated)
        seconds = "round(coalesce(sum(ms), 0) / 1000.0, 1)"
        misses, time = log.read_facts(
            FactQuery(f"{prefix}-misses", Unit.COUNT, f"SELECT count(*) FROM ({repeated})"),
            FactQuery(f"{prefix}-time", Unit.SECONDS, f"SELECT {seconds} FROM ({repeated})"),
        )
        section.facts += [misses, time]
        changed, rules = write.name_rules(prefix)
        section.names += [write.as_name(f"{prefix}-write"), *rules]
        section.say("published", prefix=prefix, changes=changed, misses=misses.value)
    if len(writes) > len(shown):
        section.say("published-more")
    return section


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


_HOURS: Final = f"round(sum(awakeMs) / {HOUR_MS}.0, 1)"
_WITHOUT: Final = "sum(awakeMs) FILTER (scope = 'without')"
_SPARED: Final = "sum(if(scope = 'without', awakeMs, -awakeMs))"


def savings_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the money, and the hours awake if they differ; None without both, or if no day bills them."""
    pricing = log.pricing
    in_force = [pricing.on(period.last, host) for host in pricing.each()]
    if all(terms.billing != "suspending" for terms in in_force):
        return None
    savings = fill_savings(
        SAVINGS_SQL,
        first=period.first,
        before=days_before(period.first, 1),
        last=period.last,
        pricing=pricing,
    )
    log.hold(savings)

    def read(name: str, unit: Unit, value: str, *scopes: str) -> FactQuery:
        chosen = ", ".join(f"'{scope}'" for scope in scopes)
        return FactQuery(
            name, unit, f"SELECT {value} FROM ({savings}) WHERE scope IN ({chosen}) AND day IS NOT NULL"
        )

    both = ("withCache", "without")
    awake, spared = log.read_facts(
        read("awake", Unit.HOURS, _HOURS, "withCache"),
        read("awake-spared", Unit.MILLISECONDS, _SPARED, *both),
    )
    if spared.value is None:
        return None
    section = Section("savings")
    minus = "-" if spared.value < 0 else ""
    signed = f"{minus}({_SPARED})"
    if any(terms.per_hour is not None for terms in in_force):
        section.facts += log.read_facts(
            read("saved-money", Unit.MONEY, f"{minus}({_money_sql(pricing)})", *both),
            # Shares below 0.1% are usual here. With one decimal, all of them would be 0.1%.
            read("saved-share", Unit.PERCENT, percent_sql(signed, _WITHOUT, digits=3), *both),
        )
        section.name("currency", NameKind.CURRENCY, pricing.currency or "")
        section.say("bill", is_cost=bool(minus))
    if spared.value:
        if minus:
            (spared,) = log.read_facts(read("awake-spared", Unit.MILLISECONDS, signed, *both))
        # Two rounded times would contradict the money where they differ by little.
        section.facts += [awake, spared]
        section.say("awake", is_more=bool(minus))
    return section if section.lines else None


def _money_sql(pricing: Pricing) -> str:
    """Return SQL for the money of the difference, rounded like `Pricing.money`: half up, at the end."""
    amount = "sum(if(scope = 'without', 1, -1) * (CASE{} ELSE 0 END)::HUGEINT)".format(
        "".join(
            f" WHEN host IS NOT DISTINCT FROM {'NULL' if host is None else quote_text(host)}"
            f" AND day >= '{terms.first}' THEN {_BILLED[terms.billing]}::HUGEINT * {terms.per_hour or 0}"
            for host, own in pricing.each().items()
            for terms in reversed(own)
        )
    )
    units, divisor = 10**pricing.digits, Pricing.DIVISOR
    return f"sign({amount}) * ((2 * abs({amount}) * {units} + {divisor}) // {2 * divisor}) / {units}"


#: A day that is always billed whole costs the same with and without the cache.
_BILLED: Final = {"suspending": "awakeMs", "busy": "busyMs", "always-on": "0"}

_MOST_RECOMMENDATIONS: Final = 3


def recommendations_section(changes: Changes) -> Section | None:
    """Return the first open recommendations at the time when the digest is made."""
    shown = changes.recommendations[:_MOST_RECOMMENDATIONS]
    if not shown:
        return None
    section = Section("recommendations")
    for number, row in enumerate(shown, start=1):
        name_id = f"recommendation-{number}"
        section.name(name_id, NameKind.RECOMMENDATION, row.title, href=row.href)
        section.say("would-help", recommendation=name_id)
    if len(changes.recommendations) > len(shown):
        section.say("more-recommendations")
    return section


#: Raise it when the same log gives another digest. Then all stored digests are made again.
DIGEST_VERSION: Final = 13


class DigestHead(JsonStruct):
    """A digest without its facts and texts."""

    kind: DigestKind
    period: Annotated[str, Meta(description="`2026-03-01`, or `2026-W09`.")]
    from_: dt.date
    to: dt.date
    quiet: Annotated[bool, Meta(description="Nothing was unusual: one section of one sentence.")]
    names: list[Name]


@dataclass(frozen=True, slots=True)
class FoundDigest:
    """What was found in a period: the digest without its texts. For ``leaking`` see `find_leaking`."""

    head: DigestHead
    facts: Sequence[Fact]
    sections: Sequence[Section]
    leaking: list[dict[str, Any]]


def read_digest(log: DigestLog, period: DigestPeriod, changes: Changes) -> FoundDigest:
    """Return what was found in a period that has entries.

    A quiet period has one section with one line.
    """
    totals = read_totals(log, period)
    # What was unusual comes first, the most harmful of it before the rest.
    candidates = (
        fell_section(log, period, changes, totals),
        errors_section(log, period, changes),
        leaks_section(log, period),
        stale_section(log, period),
        moved_section(log, period, changes),
        statements_section(log, period),
        publishes_section(log, period, changes),
    )
    sections: list[Section] = [section for section in candidates if section is not None]
    quiet = None if sections else quiet_section(period, totals)
    sections = [quiet] if quiet else [*sections, totals_section(period, totals)]
    if not quiet and (saved := savings_section(log, period)):
        sections.append(saved)
    # A recommendation may stay open for weeks, so it does not make a period remarkable.
    if not quiet and (recommended := recommendations_section(changes)):
        sections.append(recommended)
    head = DigestHead(
        kind=period.kind,
        period=period.name,
        from_=period.first,
        to=period.last,
        quiet=quiet is not None,
        names=_label_rules(log, period, [name for section in sections for name in section.names]),
    )
    # Two sections may tell the same fact.
    facts = list({fact.id: fact for section in sections for fact in section.facts}.values())
    leaking = find_leaking(log, period) if any(section.id == LEAKS for section in sections) else []
    return FoundDigest(head, facts, sections, leaking)


def _label_rules(log: DigestLog, period: DigestPeriod, names: list[Name]) -> list[Name]:
    """Return the names, each of a rule with what the log of the period calls the rule, or else its write."""
    ids = {name.value for name in names if name.kind is NameKind.RULE}
    if not ids:
        return names
    listed = ", ".join(map(quote_value, sorted(ids)))
    rows = log.rows(
        "SELECT matchedRule AS id, arg_max(matchedRuleName, timestamp) AS label FROM proxy_logs"
        f" WHERE {period.sql} AND matchedRule IN ({listed}) GROUP BY matchedRule"
    )
    labels = {row["id"]: row["label"] for row in rows}
    return [
        msgspec.structs.replace(
            name, label=labels.get(name.value) or name.label if name.kind is NameKind.RULE else None
        )
        for name in names
    ]
