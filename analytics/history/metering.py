"""Read what a warehouse billed: the hours of each warehouse and day, to compare with the model.

Snowflake's ``WAREHOUSE_METERING_HISTORY`` has the credits of each hour; CREDITS_USED_COMPUTE leaves out cloud
services, which no execution of a warehouse bills. A warehouse of size XSMALL takes a credit an hour, and each
size twice as many as the one below.
Source: docs.snowflake.com/en/sql-reference/account-usage/warehouse_metering_history and
docs.snowflake.com/en/user-guide/cost-understanding-compute, read on 2026-11-29.

Databricks' ``system.billing.usage`` has the DBU of each hour, and the warehouse in ``usage_metadata``.
Source: docs.databricks.com/en/admin/system-tables/billing, read on 2026-11-29.
"""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from analytics.history.rows import BadHistory, Source
from analytics.history.tables import Clock, Column, read_records, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from pathlib import Path

#: By warehouse and day (UTC), the credits or DBU.
Metered = dict[tuple[str, "date"], Decimal]

_SIZES: Final = ("X-SMALL", "SMALL", "MEDIUM", "LARGE", "X-LARGE", "2X-LARGE", "3X-LARGE", "4X-LARGE")
#: Credits an hour of a warehouse by the name of its size, without signs.
CREDITS: Final = {
    **{name.replace("-", ""): 2**number for number, name in enumerate(_SIZES)},
    "5XLARGE": 256,
    "6XLARGE": 512,
}
_COLUMNS: Final = {
    Source.SNOWFLAKE: {
        "warehouse": Column(("warehouse_name",)),
        "started": Column(("start_time",)),
        "amount": Column(("credits_used_compute", "credits_used")),
    },
    Source.DATABRICKS: {
        "warehouse": Column(("usage_metadata.warehouse_id", "warehouse_id", "usage_metadata")),
        "started": Column(("usage_start_time",)),
        "amount": Column(("usage_quantity",)),
    },
}


def read_metering(path: Path, source: Source, *, timezone: str) -> Metered:
    """Return what a file says was billed.

    Raises:
        BadHistory: it is no metering of the source, or damaged.
    """
    columns = _COLUMNS.get(source)
    if columns is None:
        raise BadHistory("A server of PostgreSQL has no metering: leave --metering out.")
    clock = Clock(path, timezone)
    found: Metered = defaultdict(Decimal)
    what = f"the metering of {source}"
    for number, (warehouse, started, amount) in read_records(path, columns, what=what, missing={}):
        name = _name(warehouse)
        if name is None or started is None:
            # What is billed for no warehouse, such as jobs.
            continue
        try:
            units = Decimal(str(amount or 0))
        except InvalidOperation:
            raise BadHistory(f"{path.name}, row {number}: {str(amount)[:40]!r} is no amount.") from None
        moment = clock.read(started, f"row {number}") // 1_000_000
        found[name, datetime.fromtimestamp(moment, UTC).date()] += units
    return dict(found)


def _name(value: Any) -> str | None:
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if isinstance(value, dict):
        value = value.get("warehouse_id")
    return read_text(value)


def credits_per_hour(sizes: Mapping[str, int]) -> int | None:
    """Return the credits an hour of the size that most statements ran on; None if it is not known."""
    known = {
        CREDITS[name]: count
        for size, count in sizes.items()
        if (name := size.upper().replace("-", "").replace("_", "")) in CREDITS
    }
    return max(known, key=lambda units: known[units]) if known else None
