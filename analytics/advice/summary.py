"""A recommendation as one row of a list: what it gains a month, its risk, effort, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, NamedTuple, Self

from msgspec import Meta

from analytics.advice.proposal import Kind
from analytics.advice.words import purpose_of, time_of_kind
from analytics.models import Effect, Recommendation
from analytics.replay.figures import NO_WAITING, middle
from analytics.reports.savings_sql import MONTH_DAYS
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import JsonStruct, one_of

#: Gains are shown for a month of `MONTH_DAYS`, and for a year of so many of these months.
_MONTHS: Final = 12
CONFIDENCES: Final = ("high", "medium", "low")
#: The widest bounds, as a share of the middle, of a confidence that is high or medium.
_HIGH, _MEDIUM = 0.25, 1.0
#: Evidence lists at most so many statements.
_LISTED: Final = 20


class AdviceSummary(JsonStruct):
    """A recommendation in one row, for people to read. Gains are of 30 days."""

    gain: Annotated[str, Meta(description="`≈ 39.07 USD a month`, `195 shared answers → 0`.")]
    risk: str
    effort: str
    confidence: Annotated[str, one_of(CONFIDENCES)]
    bounds: Annotated[str, Meta(description="What the confidence is from.")]
    statement: Annotated[
        str | None, Meta(description="What to run on the platform of the warehouse, if it has a statement.")
    ] = None
    measured: Annotated[str | None, Meta(description="What it gained, once it is accepted and measured.")] = (
        None
    )


class _Gain(NamedTuple):
    """What is saved in a month, between two bounds: ms of ``unit``, or money, whose ``unit`` is a currency.

    Amounts have the digits of the currency.
    """

    low: Decimal
    high: Decimal
    middle: Decimal
    unit: str
    is_money: bool

    @classmethod
    def of_money(cls, money: Mapping[str, Any], days: int) -> Self:
        """Return what is saved if the bill changes by ``money`` in so many days."""
        digit = Decimal(money["low"])
        high, low = (-Decimal(money[end]) * MONTH_DAYS / days for end in ("low", "high"))
        centre = ((low + high) / 2).quantize(digit)
        return cls(low.quantize(digit), high.quantize(digit), centre, money["currency"], is_money=True)

    @classmethod
    def of_time(cls, saved: Mapping[str, Any], days: int, unit: str) -> Self:
        low, high, likely = (
            Decimal(value) * MONTH_DAYS / days for value in (saved["low"], saved["high"], middle(saved))
        )
        return cls(low, high, likely, unit, is_money=False)

    def show(self, amount: Decimal, *, months: int = 1) -> str:
        """Show an amount of a month, or of several, without its sign."""
        amount = abs(amount) * months
        if self.is_money:
            return formats.money(str(amount), self.unit)
        return f"{formats.duration(float(amount))} of {self.unit}"

    @property
    def is_exact(self) -> bool:
        return self.show(self.low) == self.show(self.high)

    def describe(self) -> str:
        return f"{'' if self.is_exact else '≈ '}{self.show(self.middle)} a month"

    def describe_bounds(self) -> str:
        if self.is_exact:
            return f"exactly {self.show(self.middle)} a month"
        if self.low < 0 < self.high:
            return f"from {self.show(self.low)} more to {self.show(self.high)} less a month"
        return f"{self.show(self.low)} to {self.show(self.high)} a month"

    @property
    def confidence(self) -> str:
        width = self.high - self.low
        if self.low < 0 < self.high or self.middle <= 0:
            return "low" if width else "high"
        share = width / self.middle
        return "high" if share <= _HIGH else "medium" if share <= _MEDIUM else "low"


def _find_gain(row: Recommendation) -> _Gain:
    """Return the money that is saved; the time, if there is no price or it saves no money."""
    gain = row.predicted["gain"]
    if gain.get("money"):
        money = _Gain.of_money(gain["money"], row.days)
        if money.middle > 0:
            return money
    return _Gain.of_time(gain["savedMs"], row.days, time_of_kind(row.kind).lower())


def summarize(row: Recommendation, *, warehouse: Mapping[str, Any] | None = None) -> AdviceSummary:
    """Return a recommendation in one row. ``warehouse`` is the one of the tenant's configuration."""
    gain, confidence, bounds = _describe_gain(row)
    return AdviceSummary(
        gain=gain,
        risk=_describe_risk(row),
        effort=_describe_effort(row),
        confidence=confidence,
        bounds=bounds,
        statement=_find_statement(row, warehouse or {}),
        measured=_describe_measured(row),
    )


def _describe_gain(row: Recommendation) -> tuple[str, str, str]:
    """Return the gain, the confidence, and what it is from."""
    purpose = purpose_of(row.kind)
    if purpose == "privacy":
        served = [one["served"] for piece in row.evidence for one in piece["rows"] if "served" in one]
        more = " or more" if len(served) >= _LISTED else ""
        return (
            f"{formats.count(sum(served), 'shared answer')}{more} → 0",
            "high",
            "The log shows what was shared. With the change, none of it can be.",
        )
    if purpose == "fresh results" and "against" in row.predicted:
        before, after = (row.predicted[side]["risk"] for side in ("against", "total"))
        confidence = "high" if not after["high"] else "medium" if after["high"] < before["low"] else "low"
        return (
            f"{formats.count(round(middle(before)), 'stale hit')} → {formats.number(round(middle(after)))}",
            confidence,
            f"Stale hits now: {formats.between(before)}; with the change: {formats.between(after)}.",
        )
    gain = _find_gain(row)
    if gain.middle <= 0:
        # What saves time, and saved none in these days, has no other gain.
        others = {"saves time", "saves money", NO_WAITING}
        return "none" if purpose in others else purpose, gain.confidence, "It saves no time and no money."
    return gain.describe(), gain.confidence, f"Bounds of the replay: {gain.describe_bounds()}."


def _describe_risk(row: Recommendation) -> str:
    gain = row.predicted["gain"]
    if purpose_of(row.kind) in {"privacy", "fresh results"}:
        money = gain.get("money") and _Gain.of_money(gain["money"], row.days)
        lost = _Gain.of_time(gain["savedMs"], row.days, time_of_kind(row.kind).lower())
        cost = money if money and money.middle < 0 else lost
        return f"costs {cost.show(cost.middle)} a month" if cost.middle < 0 else "none"
    if gain["risk"]["high"] > 0:
        count = round(gain["risk"]["high"] * MONTH_DAYS / row.days)
        return f"up to {formats.count(max(count, 1), 'more stale hit')} a month"
    if "row-level-security-invisible" in row.caveats:
        return "wrong if the warehouse shows each user other rows"
    return "more starts to wait for" if row.kind == Kind.AUTO_SUSPEND else "none"


_VERBS: Final = {"insert": "adds", "replace": "changes", "move": "moves", "remove": "removes"}


def _describe_effort(row: Recommendation) -> str:
    if row.kind == Kind.AUTO_SUSPEND:
        return "one setting of the warehouse"
    if not row.patch:
        return "another schedule"
    counts = Counter(edit["op"] for edit in row.patch)
    return ", ".join(
        f"{verb} {formats.count(counts[op], 'rule')}" for op, verb in _VERBS.items() if counts[op]
    )


def _find_statement(row: Recommendation, warehouse: Mapping[str, Any]) -> str | None:
    """Return the statement that changes the time until a warehouse suspends, where the platform has one."""
    name = warehouse.get("warehouseName")
    if row.kind != Kind.AUTO_SUSPEND or warehouse.get("adapterType") != "snowflake" or not name:
        return None
    quoted = name.replace('"', '""')
    return f'ALTER WAREHOUSE "{quoted}" SET AUTO_SUSPEND = {row.predicted["autoSuspend"]["then"]};'


def _measure(row: Recommendation) -> tuple[_Gain, bool] | None:
    """Return what an accepted recommendation gains a month, and whether that is inconclusive."""
    effect: Effect | None = getattr(row, "effect", None)
    if effect is None or effect.result is None or effect.first_day is None or effect.last_day is None:
        return None
    days, predicted = (effect.last_day - effect.first_day).days + 1, row.predicted["gain"]
    billed, money = effect.result.get("billedMs"), predicted.get("money")
    planned = middle(predicted["billedMs"]) if predicted.get("billedMs") else 0
    if billed and money and planned:
        # At the price of the prediction.
        rate = (Decimal(money["low"]) + Decimal(money["high"])) / 2 / Decimal(planned)
        amount = str((billed["measured"] * rate).quantize(Decimal(money["low"])))
        found = _Gain.of_money({**money, "low": amount, "high": amount}, days)
        return found, billed["inconclusive"]
    if saved := effect.result.get("savedMs"):
        value = {"low": saved["measured"], "high": saved["measured"]}
        return _Gain.of_time(value, days, time_of_kind(row.kind).lower()), saved["inconclusive"]
    return None


def _describe_measured(row: Recommendation) -> str | None:
    if row.state != Recommendation.State.ACCEPTED or (found := _measure(row)) is None:
        return None
    gain, is_inconclusive = found
    text = f"{gain.show(gain.middle)} a month, {gain.show(gain.middle, months=_MONTHS)} a year"
    return f"{'costs ' if gain.middle < 0 else ''}{text}{' (inconclusive)' if is_inconclusive else ''}"


def describe_ledger(rows: Iterable[Recommendation]) -> str | None:
    """Say what the accepted recommendations gain together, predicted and measured; None if there are none.

    Each was measured against the rules with the others, so that they can be added.
    """
    accepted = [row for row in rows if row.state == Recommendation.State.ACCEPTED]
    if not accepted:
        return None
    measured = [(row, found) for row in accepted if (found := _measure(row))]
    text = formats.count(len(accepted), "accepted recommendation")
    if not measured:
        return f"{text}. Effects are measured after three whole days."
    predicted = _add(_find_gain(row) for row, _ in measured)
    gained = _add(gain for _, (gain, _) in measured)
    return (
        f"{text}, {formats.number(len(measured))} of them measured: {_list(gained)} a month, "
        f"{_list(gained, months=_MONTHS)} a year. Predicted for these: {_list(predicted)} a month."
    )


def _add(gains: Iterable[_Gain]) -> Mapping[str, _Gain]:
    """Return the sums by unit: money first."""
    sums: dict[str, _Gain] = {}
    for gain in gains:
        before = sums.get(gain.unit)
        total = gain.middle + (before.middle if before else 0)
        sums[gain.unit] = gain._replace(low=total, high=total, middle=total)
    return dict(sorted(sums.items(), key=lambda item: not item[1].is_money))


def _list(sums: Mapping[str, _Gain], *, months: int = 1) -> str:
    return " and ".join(
        f"{'costs ' if gain.middle < 0 else ''}{gain.show(gain.middle, months=months)}"
        for gain in sums.values()
    )
