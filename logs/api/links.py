"""The links to and between operations of this app."""

from __future__ import annotations

from typing import Final

from tenantadmin.lib.http.links import BODY, FIRST, PATH, Step

_LEVELS: Final = (
    ("listLogYears", "listLogMonths", ("year",)),
    ("listLogMonths", "listLogDays", ("year", "month")),
    ("listLogDays", "listLogHours", ("year", "month", "day")),
    ("listLogHours", "listLogFiles", ("year", "month", "day", "hour")),
    ("listLogFiles", "getLogObject", ("year", "month", "day", "hour", "file")),
)

STEPS: Final = (
    Step("getTenant", ("listLogYears", "queryLogs", "getQuerySchema"), {"tenant": f"{BODY}tenantId"}),
    *(
        Step(
            source,
            (target,),
            {**{name: f"{PATH}{name}" for name in ("tenant", *levels[:-1])}, levels[-1]: FIRST},
        )
        for source, target, levels in _LEVELS
    ),
)
