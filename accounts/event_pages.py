"""Read the events that a caller may see, page by page. Contract: Events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from accounts.access.scopes import Scope
from accounts.cursors import cut_page, older_than, write_cursor
from accounts.models import Event
from accounts.models.users import MembershipRole
from tenantadmin.core.timestamps import format_timestamp

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from uuid import UUID

    from django.db.models import QuerySet

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


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events, newest first. ``cursor`` is None on the last page."""

    events: Sequence[Event]
    cursor: str | None = None

    def as_json(self) -> list[dict[str, Any]]:
        return [event_as_json(event) for event in self.events]


def event_as_json(event: Event) -> dict[str, Any]:
    """Return the Event of the contract. Optional members without a value are left out."""
    optional = {
        "tenantId": event.tenant_id and str(event.tenant_id),
        "accountId": event.account_id and str(event.account_id),
        "before": event.before,
        "after": event.after,
        "reason": event.reason or None,
    }
    return {
        "id": event.pk,
        "at": format_timestamp(event.at),
        "kind": event.kind,
        "actor": event.actor,
        "subject": event.subject,
        **{name: value for name, value in optional.items() if value is not None},
        "requestId": event.request_id,
        "address": event.address,
    }


def read_events(principal: Principal, asked: EventFilter, *, limit: int, cursor: str | None) -> EventPage:
    """Return a page of the events that the caller may see.

    Raises:
        BadRequest: the cursor is not from this list.
    """
    rows = visible_events(principal, asked)
    if cursor is not None:
        rows = older_than(rows, cursor, time="at")
    events, more = cut_page(rows, limit)
    return EventPage(events, write_cursor([events[-1].at.isoformat(), events[-1].pk]) if more else None)


def visible_events(principal: Principal, asked: EventFilter) -> QuerySet[Event]:
    """Return the events that the caller may see and asks for, newest first."""
    return Event.objects.filter(_visible(principal), asked.as_q()).order_by("-at", "-pk")


def _visible(principal: Principal) -> Q:
    """Return the filter for events that the caller may see.

    Platform admins see all, owners those of their tenants and accounts, and everyone those by or about
    itself. The token must cover the tenant or account too.
    """
    if principal.is_platform_admin:
        return Q()
    rights = principal.rights
    on_tenants, on_accounts = principal.on_tenants.claimed, principal.on_accounts.claimed
    tenants = [
        tenant_id
        for tenant_id, role in rights.memberships.items()
        if role == MembershipRole.OWNER
        and Scope.USERS_READ in on_tenants.scopes_on(tenant_id=tenant_id, account_id=None)
    ]
    accounts = [
        account_id
        for account_id in rights.owned_accounts
        if Scope.USERS_READ in on_accounts.scopes_on(account_id=account_id)
    ]
    own = Q(actor=principal.email) | Q(subject=principal.email)
    return own | Q(tenant_id__in=tenants) | Q(account_id__in=accounts)
