"""What the cache saved of the bill: money where the prices are known, and hours awake."""

# Queries consist of constants, days and prices.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accounts.tenants.pricing import Pricing
from analytics.digest.facts import FactQuery, Name, NameKind, Section, Unit, percent_sql
from analytics.savings.sql import SAVINGS_SQL, fill_savings
from logs.layout import HOUR_MS
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from analytics.digest.facts import Fact
    from analytics.digest.periods import DigestPeriod
    from analytics.digest.reading import DigestLog

_HOURS: Final = f"round(sum(awakeMs) / {HOUR_MS}.0, 1)"
_WITHOUT: Final = "sum(awakeMs) FILTER (scope = 'without')"
_SPARED: Final = "sum(if(scope = 'without', awakeMs, -awakeMs))"


def savings_section(log: DigestLog, period: DigestPeriod) -> Section | None:
    """Return the money, and the hours awake if they differ; None without both, or if no day bills them."""
    pricing = log.pricing
    if pricing.on(period.last).billing != "suspending":
        return None
    savings = fill_savings(
        SAVINGS_SQL,
        first=period.first,
        before=days_before(period.first, 1),
        last=period.last,
        pricing=pricing,
    )

    def read(name: str, unit: Unit, value: str, *scopes: str) -> FactQuery:
        chosen = ", ".join(f"'{scope}'" for scope in scopes)
        return FactQuery(
            name, unit, f"SELECT {value} FROM ({savings}) WHERE scope IN ({chosen}) AND day IS NOT NULL"
        )

    both = ("withCache", "without")
    hours = log.read_facts(
        [
            read("awake", Unit.HOURS, _HOURS, "withCache"),
            read("awake-spared", Unit.MILLISECONDS, _SPARED, *both),
        ]
    )
    spared = hours[1].value
    if spared is None:
        return None
    facts: list[Fact] = []
    names: list[Name] = []
    sentences: list[str] = []
    minus, word = ("-", "more") if spared < 0 else ("", "less")
    signed = f"{minus}({_SPARED})"
    if pricing.on(period.last).per_hour is not None:
        facts = log.read_facts(
            [
                read("saved-money", Unit.MONEY, f"{minus}({_money_sql(pricing)})", *both),
                # Shares below 0.1% are usual here. With one decimal, all of them would be 0.1%.
                read("saved-share", Unit.PERCENT, percent_sql(signed, _WITHOUT, digits=3), *both),
            ]
        )
        names.append(Name(id="currency", kind=NameKind.CURRENCY, value=pricing.currency or "", href=None))
        amount = "{saved-money} {currency}, {saved-share} of the bill without the cache"
        sentences.append(f"The cache cost {amount}." if minus else f"Saved on the bill: {amount}.")
    if spared:
        if minus:
            hours[1:] = log.read_facts([read("awake-spared", Unit.MILLISECONDS, signed, *both)])
        # Two rounded times would contradict the money where they differ by little.
        facts += hours
        sentences.append(
            f"The warehouse was awake for {{awake}}, {{awake-spared}} {word} than without the cache."
        )
    return Section("savings", "Saved on the bill", sentences, facts, names) if sentences else None


def _money_sql(pricing: Pricing) -> str:
    """Return SQL for the money of the difference, rounded like `Pricing.money`: half up, at the end."""
    amount = "sum(if(scope = 'without', 1, -1) * (CASE{} ELSE 0 END)::HUGEINT)".format(
        "".join(
            f" WHEN day >= '{terms.first}' THEN {_BILLED[terms.billing]}::HUGEINT * {terms.per_hour or 0}"
            for terms in reversed(pricing.terms)
        )
    )
    units, divisor = 10**pricing.digits, Pricing.DIVISOR
    return f"sign({amount}) * ((2 * abs({amount}) * {units} + {divisor}) // {2 * divisor}) / {units}"


#: A day that is always billed whole costs the same with and without the cache.
_BILLED: Final = {"suspending": "awakeMs", "busy": "busyMs", "always-on": "0"}
