"""Read the log for a report, with audited queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final

from django.db.models import Sum
from msgspec import Meta

from logs.models import Partition
from logs.queries import query_rows
from tenantadmin.lib.core.errors import BadRequest, Detail
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from uuid import UUID

    from logs.audit import Reader
    from tenantadmin.lib.objectstore import ObjectStore

#: A report covers at most this many days.
MAX_DAYS: Final = 31


@dataclass(frozen=True, slots=True)
class Window:
    """The days of a report, both included.

    Raises:
        BadRequest: the window ends before it begins, or is too long.
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


class ReportQuery(JsonStruct):
    name: str
    sql: Annotated[str, Meta(description="The statement that gave the numbers, to run yourself.")]


class ReportHead(JsonStruct):
    from_: date
    to: date
    queries: list[ReportQuery]


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads a tenant's log for a caller. Each query is audited before it runs."""

    store: ObjectStore
    tenant: UUID
    reader: Reader

    def count_rows(self, window: Window) -> int:
        """Return how many entries the log has on the days of the window."""
        days = Partition.objects.filter(tenant_id=self.tenant, day__range=(window.first, window.last))
        count: int = days.aggregate(Sum("rows", default=0))["rows__sum"]
        return count

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows of a statement over ``proxy_logs``.

        Raises:
            ApiError: the query failed.
        """
        return query_rows(self.store, tenant=self.tenant, statement=statement, reader=self.reader)
