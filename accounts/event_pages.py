"""Read the events that a caller may see, page by page. Contract: Events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from django.db.models import Q, Subquery
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.cursors import older_than, write_cursor
from accounts.models import Event, User
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp
from tenantadmin.lib.database.plans import first_of_each, merge_first

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.db.models.query import RawQuerySet

    from accounts.access.principal import Principal


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The filters of ``GET /config/events``. ``since`` and ``until`` are inclusive."""

    since: dt.datetime | None = None
    until: dt.datetime | None = None
    actor: str | None = None
    subject: str | None = None
    kind: str | None = None
    tenant: UUID | None = None

    def as_q(self) -> Q:
        given = {
            "at__gte": self.since,
            "at__lte": self.until,
            "actor": self.actor,
            "subject": self.subject,
            "kind": self.kind,
            "tenant_id": self.tenant,
        }
        return Q(**{name: value for name, value in given.items() if value is not None})


class EventDocument(JsonStruct):
    """An act or an attempt, and who made it. It never holds a secret."""

    id: int
    at: Timestamp
    kind: Annotated[str, one_of(EventKind.values)]
    actor: Annotated[
        str,
        Meta(
            description="The email of who did it, or the name of a command or job. "
            "Empty for an unknown caller."
        ),
    ]
    subject: Annotated[
        str,
        Meta(description="The email, domain or hash of terms that it was done to. Empty if unknown."),
    ]
    tenant_id: UUID | None = None
    account_id: UUID | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    reason: Annotated[str | None, Meta(description="Why something was refused, or why staff did it.")] = None
    request_id: Annotated[str, Meta(description="`-` for commands and jobs.")]
    address: Annotated[str, Meta(description="The client's address. Empty for commands and jobs.")]


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """A page of events, newest first. ``cursor`` is None on the last page."""

    events: Sequence[Event]
    cursor: str | None = None


def read_events(principal: Principal, asked: EventFilter, *, limit: int, cursor: str | None) -> FoundEvents:
    """Return a page of the events that the caller may see.

    Raises:
        BadRequest: the cursor is not from this list.
    """
    rows = Event.objects.filter(asked.as_q())
    if cursor is not None:
        rows = older_than(rows, cursor, time="at")
    rows = rows.order_by("-at", "-pk")
    first = rows[: limit + 1] if principal.is_platform_admin else _visible(principal, rows, limit + 1)
    found = list(first)
    if len(found) <= limit:
        return FoundEvents(found)
    last = found[limit - 1]
    return FoundEvents(found[:limit], write_cursor([last.at.isoformat(), last.pk]))


def _visible(principal: Principal, rows: QuerySet[Event], count: int) -> RawQuerySet[Event]:
    """Return the first ``count`` of ``rows`` that a caller other than a platform admin may see.

    Owners see the events of their tenants and accounts, and everyone those by or about itself, but not those
    of an earlier user with the same address. For each tenant, account and person PostgreSQL reads the first
    rows by an index, and merges them.
    """
    created_at = User.objects.filter(pk=principal.rights.user_id).values("created_at")
    own = rows.filter(at__gte=Subquery(created_at))
    branches = [
        own.filter(actor=principal.email)[:count].query.sql_with_params(),
        own.filter(subject=principal.email)[:count].query.sql_with_params(),
        first_of_each(rows, count, "tenant_id", _owned_tenants(principal), kind="uuid"),
        first_of_each(rows, count, "account_id", _owned_accounts(principal), kind="uuid"),
    ]
    return merge_first(Event, branches, count, time="at")


def _owned_tenants(principal: Principal) -> list[UUID]:
    """Return the tenants that the caller owns and that its token covers."""
    claimed = principal.on_tenants.claimed
    return [
        tenant_id
        for tenant_id, role in principal.rights.memberships.items()
        if role == MembershipRole.OWNER
        and Scope.USERS_READ in claimed.scopes_on(tenant_id=tenant_id, account_id=None)
    ]


def _owned_accounts(principal: Principal) -> list[UUID]:
    """Return the accounts that the caller owns and that its token covers."""
    claimed = principal.on_accounts.claimed
    return [
        account_id
        for account_id in principal.rights.owned_accounts
        if Scope.USERS_READ in claimed.scopes_on(account_id=account_id)
    ]
