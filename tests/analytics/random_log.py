"""Random log entries of three days, for all numbers in documents."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from logs.columns import CACHE_STATUSES
from logs.layout import day_start_ms

if TYPE_CHECKING:
    import random

#: A rule with negative times: 2 hits x the mean of -1, -1 and -2 is -2.67.
NEGATIVE = (("HIT", 5), ("HIT", None), ("MISS", -1), ("MISS", -1), ("MISS", -2))
USERS = ("Ana", "Bo", "Zoë")
DAYS = (date(2026, 3, 1), date(2026, 3, 17), date(2026, 5, 2))


def random_entries(chance: random.Random, day: date) -> list[dict[str, Any]]:
    """Return entries with all statuses and with statements for each list of opportunities.

    Each logId is unique, and each timestamp is in the day.
    """
    own = [
        {
            "timestamp": day_start_ms(day) + number,
            "logId": f"r3-{number}",
            "cacheStatus": status,
            "matchedRule": "r3",
            "warehouseExecutionTimeMs": time,
        }
        for number, (status, time) in enumerate(NEGATIVE if day == DAYS[0] else ())
    ]
    return own + [
        {
            "timestamp": day_start_ms(day) + 1000 * chance.randrange(86_400),
            "logId": f"{chance.getrandbits(64):016x}",
            "userName": chance.choice([None, *USERS]),
            "standardizedSql": chance.choice([None, *(f"SELECT {n} -- ü" for n in range(12))]),
            "cacheStatus": chance.choice([None, *CACHE_STATUSES, "HIT", *["MISS", "PASSTHROUGH"] * 4]),
            "cacheKey": chance.choice([None, "k1", "k2", "k3"]),
            "matchedRule": chance.choice([None, "r1", "r2"]),
            "matchedRuleName": chance.choice([None, "One", "Two"]),
            "statusCode": chance.choice([None, 200, 500]),
            "responseSize": chance.choice([None, -1, 0, 1, 1000, 2**40]),
            "responseTimeMs": chance.choice([None, 0, 1, 2, 15, 999]),
            "warehouseExecutionTimeMs": chance.choice([None, 0, 3, 2**31 - 1, -1, -8]),
        }
        for _ in range(400)
    ]
