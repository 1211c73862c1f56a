"""What a judged replay bills, by the judge of savings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.analytics.replay.judge import EXECUTED, is_decidable, mean_times
from tests.analytics.savings.judge import Bill, Run

if TYPE_CHECKING:
    from tests.analytics.replay.judge import Judgement, Row
    from tests.analytics.savings.judge import Price


def expected_billed(
    judgements: Sequence[Judgement],
    against: Sequence[Judgement],
    rows: Sequence[Row],
    prices: Sequence[Price],
    window: Sequence[date],
) -> dict[str, Any]:
    """Return `billed` of a replay whose judgements are given, one for each setting of the Gateway."""
    bill = Bill(prices, window)
    total, other = (
        [bill.of(runs) for judgement in chosen for runs in executions(judgement, rows)]
        for chosen in (judgements, against)
    )
    ms = [ends(sum(one.billed.values()) for one in billed) for billed in (total, other)]
    money = [ends(one.money(window) for one in billed) for billed in (total, other)]

    def show(milliseconds: Sequence[int], amounts: Sequence[Fraction]) -> dict[str, Any]:
        low, high = sorted(milliseconds)
        texts = [bill.text(window, amount) for amount in sorted(amounts)]
        span = {"currency": prices[0]["currency"], "low": texts[0], "high": texts[1]} if texts[0] else None
        return {"billedMs": {"low": low, "high": high}, "money": span}

    return {
        "total": show(ms[0], money[0]),
        "against": show(ms[1], money[1]),
        "gain": show(
            [mine - others for mine, others in zip(*ms, strict=True)],
            [mine - others for mine, others in zip(*money, strict=True)],
        ),
    }


def ends(values: Any) -> list[Any]:
    found = list(values)
    return [min(found), max(found)]


def executions(judgement: Judgement, rows: Sequence[Row]) -> list[list[Run]]:
    """Return the executions, and where the log hides literals also the executions if they were equal."""
    means = mean_times([row for row in rows if is_decidable(row)])
    sets = [{}, judgement.merged] if any(one.kind == "open" for one in judgement.requests) else [{}]
    found = []
    for merged in sets:
        runs = [
            Run(row["timestamp"], row["warehouseExecutionTimeMs"], row["serverHostname"], row["day"], None)
            for row in rows
            if row["timestamp"] is not None
            and row["standardizedSql"] is None
            and row["cacheStatus"] in {*EXECUTED, "ERROR"}
            and (row["warehouseExecutionTimeMs"] or 0) >= 0
            and row["warehouseExecutionTimeMs"] is not None
        ]
        for request in judgement.requests:
            played, row, own = (
                merged.get(request, request),
                request.row,
                request.row["warehouseExecutionTimeMs"],
            )
            took = None if row["cacheStatus"] == "ERROR" else means.get(row["standardizedSql"])
            if row["cacheStatus"] in {*EXECUTED, "ERROR"} and own is not None and own >= 0:
                took = own
            if took is not None and (played.status in {*EXECUTED, "ERROR"} or played.is_revalidation):
                runs.append(Run(request.at, took, row["serverHostname"], row["day"], None))
        found.append(runs)
    return found
