"""Read the log for a report: days, one audited query at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from logs.queries import query_rows
from tenantadmin.lib.core.errors import BadRequest, Detail

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from logs.audit import Reader
    from tenantadmin.lib.objectstore import ObjectStore

#: A report covers at most this many days.
MAX_DAYS: Final = 31


@dataclass(frozen=True, slots=True)
class Window:
    """The days of a report, both included.

    Raises:
        BadRequest: it ends before it begins, or is too long.
    """

    first: date
    last: date

    def __post_init__(self) -> None:
        days = (self.last - self.first).days + 1
        if days < 1:
            message = "'from' is later than 'to'."
        elif days > MAX_DAYS:
            message = f"A report covers at most {MAX_DAYS} days, and these are {days}."
        else:
            return
        raise BadRequest(message, details=[Detail("/from", "out-of-range", message)])

    def as_json(self) -> dict[str, str]:
        return {"from": self.first.isoformat(), "to": self.last.isoformat()}


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads a tenant's log for a caller. Each query is audited before it runs."""

    store: ObjectStore
    tenant: UUID
    reader: Reader

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows of a statement over ``proxy_logs``.

        Raises:
            ApiError: the query failed.
        """
        return query_rows(self.store, tenant=self.tenant, statement=statement, reader=self.reader)
