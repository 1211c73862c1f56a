"""Savings, row by row in plain Python, written from docs/savings.md alone. Slow and obvious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Price = dict[str, Any]
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
TIMED = ("MISS", "BYPASS", "PASSTHROUGH")
#: The rule of an execution, as opposed to null: a spared request that no rule decided.
EXECUTED = "(executed)"


@dataclass(frozen=True)
class Run:
    """An execution, or a spared request as if it had been executed."""

    start: int
    took: int
    host: str | None
    day: str
    rule: str | None


def is_near(row: Row) -> bool:
    """Return True if the timestamp is at most two days from the entry's day."""
    midnight = int(datetime.fromisoformat(f"{row['day']}T00:00:00+00:00").timestamp()) * 1000
    since: int = row["timestamp"] - midnight
    return -2 * DAY_MS <= since < 3 * DAY_MS


def judge(rows: Iterable[Row], prices: Sequence[Price], first: date, last: date, step: str = "day") -> Any:
    """Return what `GET /tenants/{t}/savings` has to answer, without links to queries."""
    before = (first - timedelta(1)).isoformat()
    read = [row for row in rows if before <= row["day"] <= last.isoformat()]
    means = statement_means(read)
    executed: list[Run] = []
    spared: list[Run] = []
    unmeasured = requests = 0
    for row in read:
        if row["timestamp"] is None:
            continue
        status, own = row["cacheStatus"], row["warehouseExecutionTimeMs"]
        mean = means.get(row["standardizedSql"])
        is_spared = status in ("HIT", "HOLD")
        if not (is_spared or status in TIMED or (status == "ERROR" and own is not None)):
            continue
        if is_spared:
            took = mean
        elif own is not None and own >= 0:
            took = own
        else:
            took = None if status == "ERROR" else mean
        is_inside = row["day"] >= first.isoformat()
        requests += is_inside
        if took is None or not is_near(row):
            unmeasured += is_inside
            continue
        rule = row["matchedRule"] if is_spared else EXECUTED
        run = Run(row["timestamp"], took, row["serverHostname"], row["day"], rule)
        (spared if is_spared else executed).append(run)
    window = [first + timedelta(number) for number in range((last - first).days + 1)]
    bill = Bill(prices, window)
    with_cache, without = bill.of(executed), bill.of(executed + spared)
    parts: dict[str, list[date]] = defaultdict(list)
    for day in window:
        parts[day.isoformat() if step == "day" else day.isoformat()[:7]].append(day)
    rules: list[Row] = []
    for rule in {run.rule for run in spared}:
        own_runs = [run for run in spared if run.rule == rule]
        marginal = bill.of(executed + own_runs)
        more = sum(marginal.billed.values()) - sum(with_cache.billed.values())
        rules.append(
            {
                "ruleId": rule,
                "hits": sum(run.day >= first.isoformat() for run in own_runs),
                "busyMs": sum(run.took for run in own_runs if run.day >= first.isoformat()),
                "marginalMs": more,
                "money": bill.text(window, marginal.money(window) - with_cache.money(window)),
            }
        )
    rules = [rule for rule in rules if rule["hits"] or rule["marginalMs"]]
    rules.sort(
        key=lambda rule: (-rule["marginalMs"], -rule["busyMs"], rule["ruleId"] is None, rule["ruleId"] or "")
    )
    hours = [
        {
            "hour": hour,
            "awakeMs": bill.awake_in_hour(executed, hour),
            "awakeWithoutMs": bill.awake_in_hour(executed + spared, hour),
        }
        for hour in range(24)
    ]
    suspends = []
    for seconds in (60, 120, 300, 600):
        other = Bill(prices, window, suspend=seconds)
        billed = other.of(executed)
        total = {"billedMs": sum(billed.billed.values()), "money": other.text(window, billed.money(window))}
        suspends.append({"autoSuspendSeconds": seconds, **total})
    return {
        "hours": hours,
        "autoSuspend": suspends if bill.terms(last)["billing"] == "suspending" else [],
        "currency": prices[0]["currency"] if prices else None,
        "total": three(bill, with_cache, without, window),
        f"{step}s": [{step: name, **three(bill, with_cache, without, days)} for name, days in parts.items()],
        "rules": rules,
        "unmeasured": unmeasured,
        "unmeasuredShare": share(unmeasured, requests),
    }


def statement_means(rows: Iterable[Row]) -> Mapping[str, int]:
    times: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        own = row["warehouseExecutionTimeMs"]
        is_timed = row["cacheStatus"] in TIMED and own is not None and own >= 0
        if row["standardizedSql"] is not None and is_timed:
            times[row["standardizedSql"]].append(own)
    return {statement: sum(values) // len(values) for statement, values in times.items()}


def share(part: int, whole: int) -> float:
    return float((Decimal(part) / whole).quantize(Decimal("0.0001"), ROUND_HALF_UP)) if whole else 0.0


class Bill:
    """Bills runs by day."""

    def __init__(
        self, prices: Sequence[Price], window: Sequence[date], *, suspend: int | None = None
    ) -> None:
        """With ``suspend``, the warehouse always suspends after these seconds."""
        self.prices, self.window, self.suspend = prices, window, suspend

    @property
    def priced(self) -> list[str | None]:
        """The hosts that have prices of their own, and None for all others."""
        return [None, *{price["host"] for price in self.prices if "host" in price}]

    def priced_host(self, host: str | None) -> str | None:
        return host if host in self.priced else None

    def own(self, host: str | None) -> list[Price]:
        return [price for price in self.prices if price.get("host") == self.priced_host(host)]

    def price(self, day: date, host: str | None = None) -> Price | None:
        """Return the price in force on a day."""
        found = None
        for price in self.own(host):
            if price["from"] <= day.isoformat():
                found = price
        return found

    def terms(self, day: date, host: str | None = None) -> Price:
        """Return how a day is billed: days before the first price as by the first price."""
        default = {"billing": "suspending", "autoSuspendSeconds": 300, "minimumSeconds": 60}
        chosen = {} if self.suspend is None else {"autoSuspendSeconds": self.suspend}
        own = self.own(host)
        return {**default, **(self.price(day, host) or (own[0] if own else {})), **chosen}

    def terms_at(self, moment: int, host: str | None) -> Price:
        return self.terms(datetime.fromtimestamp(moment / 1000, UTC).date(), host)

    def of(self, runs: Sequence[Run]) -> Billed:
        awake: dict[tuple[str | None, date], int] = defaultdict(int)
        for host in {run.host for run in runs}:
            for start, end in self.sessions([run for run in runs if run.host == host]):
                for day in self.window:
                    midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000
                    awake[self.priced_host(host), day] += max(
                        0, min(end, midnight + DAY_MS) - max(start, midnight)
                    )
        busy = {day: sum(run.took for run in runs if run.day == day.isoformat()) for day in self.window}
        by_price = {}
        for host in self.priced:
            ran = [run for run in runs if self.priced_host(run.host) == host]
            for day in self.window:
                kind = self.terms(day, host)["billing"]
                by_price[host, day] = {
                    "suspending": awake[host, day],
                    "busy": sum(run.took for run in ran if run.day == day.isoformat()),
                    "always-on": DAY_MS,
                }[kind]
        billed = {day: sum(by_price[host, day] for host in self.priced) for day in self.window}
        return Billed(self, billed, busy, by_price)

    def awake_in_hour(self, runs: Sequence[Run], hour: int) -> int:
        """Return the time awake in an hour of the day, over all days of the window."""
        total = 0
        for host in {run.host for run in runs}:
            for start, end in self.sessions([run for run in runs if run.host == host]):
                for day in self.window:
                    begin = int(datetime(day.year, day.month, day.day, hour, tzinfo=UTC).timestamp()) * 1000
                    total += max(0, min(end, begin + HOUR_MS) - max(start, begin))
        return total

    def sessions(self, runs: Sequence[Run]) -> list[tuple[int, int]]:
        """Return start and end of the billed time of each session of one host."""
        found: list[list[int]] = []
        for run in sorted(runs, key=lambda run: (run.start, run.start + run.took)):
            until = run.start + run.took + 1000 * self.terms_at(run.start, run.host)["autoSuspendSeconds"]
            if found and run.start <= found[-1][1]:
                found[-1][1] = max(found[-1][1], until)
            else:
                found.append([run.start, until])
        return [
            (start, max(end, start + 1000 * self.terms_at(start, runs[0].host)["minimumSeconds"]))
            for start, end in found
        ]

    def text(self, days: Sequence[date], money: Fraction) -> str | None:
        if all(self.price(day, host) is None for host in self.priced for day in days):
            return None
        digits = {"JPY": 0, "KWD": 3}.get(self.prices[0]["currency"], 2)
        scaled = abs(money) * 10**digits
        units = scaled.numerator // scaled.denominator
        units += 2 * (scaled - units) >= 1
        amount = Decimal(units if money >= 0 else -units).scaleb(-digits) + 0
        return f"{amount:.{digits}f}"


@dataclass(frozen=True)
class Billed:
    bill: Bill
    billed: Mapping[date, int]
    busy: Mapping[date, int]
    by_price: Mapping[tuple[str | None, date], int]

    def money(self, days: Iterable[date]) -> Fraction:
        total = Fraction(0)
        for host, day in [(host, day) for host in self.bill.priced for day in days]:
            price = self.bill.price(day, host)
            if price is not None:
                total += self.by_price[host, day] * Fraction(price["perHour"]) / 3_600_000
        return total


def three(bill: Bill, with_cache: Billed, without: Billed, days: Sequence[date]) -> Row:
    figures: Row = {}
    for name, parts in (
        ("withCache", [(1, with_cache)]),
        ("without", [(1, without)]),
        ("saved", [(1, without), (-1, with_cache)]),
    ):
        figures[name] = {
            "billedMs": sum(sign * billed.billed[day] for sign, billed in parts for day in days),
            "busyMs": sum(sign * billed.busy[day] for sign, billed in parts for day in days),
            "money": bill.text(days, sum((sign * billed.money(days) for sign, billed in parts), Fraction(0))),
        }
    return figures
