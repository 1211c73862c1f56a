"""What the cache saves on the warehouse's bill, for the overview and for the list of rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from analytics.savings.reading import find_source, read_savings
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    import datetime as dt
    from uuid import UUID

    from logs.audit import Reader


def savings_of(tenant: UUID, *, first: dt.date, last: dt.date, reader: Reader) -> dict[str, Any]:
    """Return the members of `Savings`.

    Raises:
        ApiError: there are too many days or log entries, or the query failed.
    """
    source = find_source(tenant=tenant, first=first, last=last, step="day")
    savings: dict[str, Any] = json.loads(read_savings(default_store(), source, reader=reader)[1])
    return savings
