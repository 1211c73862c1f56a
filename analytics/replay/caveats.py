"""What limits the result of a replay: the codes, when each applies, and the sentence for it."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rules.dialects.text import WITHOUT_SCHEMA

if TYPE_CHECKING:
    from analytics.replay.calibration import ReplayGrade
    from analytics.replay.job import Gateway, Job
    from analytics.replay.window import LoadedRequests


class Caveat(StrEnum):
    """Codes of what limits a result. Contract: docs/replay.md."""

    WRITES_PAST_GATEWAY = "writes-past-gateway-invisible"
    LITERALS_HIDDEN = "literals-hidden"
    GATEWAY_UNKNOWN = "gateway-unknown"
    KEYS_PER_USER = "keys-per-user"
    DAYS_LEFT_OUT = "days-left-out"
    COLD_START = "cold-start"
    CALIBRATION_FAIR = "calibration-fair"
    CALIBRATION_POOR = "calibration-poor"
    CACHE_DISABLED = "cache-disabled"
    WITHOUT_SCHEMA = WITHOUT_SCHEMA


#: Sentences for the caveats of replays (docs/replay.md) and recommendations (docs/advice.md).
_CAVEATS: Final = {
    Caveat.WRITES_PAST_GATEWAY: "Writes past the Gateway are not in the log, nor is what triggers, foreign "
    "keys, rules, inheritance and streams change in the warehouse: the risk may be higher.",
    Caveat.LITERALS_HIDDEN: "The log hides literals of some statements, so hits have bounds.",
    Caveat.GATEWAY_UNKNOWN: "The log does not say what the Gateway declines by itself: the bounds are wider.",
    Caveat.KEYS_PER_USER: "The Gateway of this log keeps users apart, also where the rules do not vary.",
    Caveat.DAYS_LEFT_OUT: "Days without usable entries in the log were left out.",
    Caveat.COLD_START: "The days before the window have no data: the cache starts cold.",
    Caveat.CACHE_DISABLED: "The configuration switches caching off: the Gateway declines every cache rule.",
    Caveat.CALIBRATION_FAIR: "The replay of the rules in force differs a little from the log.",
    Caveat.CALIBRATION_POOR: "The replay of the rules in force differs much from the log: do not trust this.",
    Caveat.WITHOUT_SCHEMA: "Tables are named without a schema: with another search path, they are others.",
    "row-level-security-invisible": "No statement tells whether the warehouse shows each user other rows.",
}


def find_caveats(
    job: Job,
    loaded: LoadedRequests,
    gateway: Gateway,
    grade: ReplayGrade,
    *,
    is_gateway_unknown: bool,
    shares_without_schema: bool = False,
) -> list[str]:
    """Return the codes of what limits the result. Contract: docs/replay.md."""
    caveats = {
        Caveat.WRITES_PAST_GATEWAY: True,
        Caveat.LITERALS_HIDDEN: loaded.open > 0,
        Caveat.GATEWAY_UNKNOWN: is_gateway_unknown,
        Caveat.KEYS_PER_USER: gateway.keys_per_user is True,
        Caveat.DAYS_LEFT_OUT: bool(find_days_left_out(job, loaded)),
        Caveat.COLD_START: not any(
            file.day < job.first_day and file.day not in loaded.empty_columns for file in job.files
        ),
        Caveat.CALIBRATION_FAIR: grade == "fair",
        Caveat.CALIBRATION_POOR: grade == "poor",
        Caveat.CACHE_DISABLED: not job.cache_enabled,
        Caveat.WITHOUT_SCHEMA: shares_without_schema,
    }
    return [caveat.value for caveat, applies in caveats.items() if applies]


def find_days_left_out(job: Job, loaded: LoadedRequests) -> list[dt.date]:
    """Return the counted days without data, and all days on which a column of the rules is null."""
    days = (job.first_day + dt.timedelta(offset) for offset in range((job.last_day - job.first_day).days + 1))
    present = {file.day for file in job.files}
    return sorted({*loaded.empty_columns, *(day for day in days if day not in present)})


def say_caveat(code: str) -> str:
    """Return the sentence for a caveat, or the code if it is unknown."""
    return _CAVEATS.get(code, code)
