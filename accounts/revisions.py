"""Read the change history: pages of changes and single revisions. Contract: Change history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.db.models.functions import Coalesce

from accounts.access.scopes import Scope
from accounts.cursors import cut_page, older_than, read_cursor, write_cursor
from accounts.models import Revision
from accounts.models.history import RevisionKind
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.timestamps import format_timestamp
from tenantadmin.lib.database.plans import planned_with_values

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.access.principal import Principal

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200


class RevisionNotFound(NotFound):
    message = "There is no such revision."


@dataclass(frozen=True, slots=True)
class DocumentHistory:
    """The history of one document: a tenant's rules or configuration, or an account."""

    kind: RevisionKind
    #: The tenant's id, or the account's.
    id: UUID

    def revisions(self) -> QuerySet[Revision]:
        """Return the revisions, newest first. The query uses the unique index on ``seq``."""
        return (
            Revision.objects.alias(document_key=Coalesce("tenant_id", "account_id"))
            .filter(kind=self.kind, document_key=self.id)
            .order_by("-seq")
        )


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """The filters of ``GET /config/history``. ``since`` and ``until`` are inclusive."""

    since: dt.datetime | None = None
    until: dt.datetime | None = None
    user: str | None = None
    kind: str | None = None

    def as_q(self) -> Q:
        given = {
            "changed_at__gte": self.since,
            "changed_at__lte": self.until,
            "user": self.user,
            "kind": self.kind,
        }
        return Q(**{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of changes, newest first. ``cursor`` is None on the last page."""

    changes: Sequence[Revision] = field(default=())
    cursor: str | None = None

    def as_json(self) -> list[dict[str, Any]]:
        return [change_as_json(change) for change in self.changes]


def history_of(change: Revision) -> DocumentHistory:
    """Return the history that a change belongs to."""
    return DocumentHistory(RevisionKind(change.kind), change.tenant_id or change.account_id)


def change_as_json(change: Revision) -> dict[str, Any]:
    """Return the row of a ChangeHistoryPage."""
    return {
        "seq": change.seq,
        "kind": change.kind,
        **({"tenantId": str(change.tenant_id)} if change.tenant_id else {}),
        "accountId": str(change.account_id),
        "userId": change.user,
        "changedAt": format_timestamp(change.changed_at),
        "action": change.action,
        **({} if change.restored_from is None else {"restoredFrom": change.restored_from}),
        "summary": change.summary,
    }


def read_timeline(history: DocumentHistory, *, limit: int, cursor: str | None) -> HistoryPage:
    """Return a page of one document's changes.

    Raises:
        NotFound: the document never existed.
        BadRequest: the cursor is not from this list.
    """
    rows = history.revisions().defer("document")
    if cursor is not None:
        (seq,) = read_cursor(cursor, (int,))
        rows = rows.filter(seq__lt=seq)
    page = _page(rows, limit, lambda change: [change.seq])
    if not page.changes and not history.revisions().exists():
        raise NotFound
    return page


def read_changes(
    principal: Principal, asked: HistoryFilter, *, limit: int, cursor: str | None
) -> HistoryPage:
    """Return a page of all changes that the caller may read.

    Raises:
        BadRequest: the cursor is not from this list.
    """
    is_account = Q(kind=RevisionKind.ACCOUNT)
    on_tenants = principal.on_tenants.as_q(Scope.CONFIG_READ, tenant="tenant_id", account="account_id")
    on_accounts = principal.on_accounts.as_q(Scope.CONFIG_READ, account="account_id")
    readable = (on_tenants & ~is_account) | (on_accounts & is_account)
    rows = Revision.objects.filter(readable, asked.as_q()).defer("document")
    if cursor is not None:
        rows = older_than(rows, cursor, time="changed_at")
    with planned_with_values():
        return _page(
            rows.order_by("-changed_at", "-pk"),
            limit,
            lambda change: [change.changed_at.isoformat(), change.pk],
        )


def read_revision(history: DocumentHistory, seq: int) -> Revision:
    """Return one revision with its document.

    Raises:
        RevisionNotFound: there is no such revision.
    """
    revision = history.revisions().filter(seq=seq).first()
    if revision is None:
        raise RevisionNotFound
    return revision


def read_pair(history: DocumentHistory, *, earlier: int, later: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the documents of two revisions. The document of a deletion is empty.

    Raises:
        RevisionNotFound: there is no such revision.
    """
    # Not "in": it would pass a number outside the column's range to the driver.
    pair = history.revisions().filter(Q(seq=earlier) | Q(seq=later))
    found = dict(pair.values_list("seq", "document"))
    if earlier not in found or later not in found:
        raise RevisionNotFound
    return found[earlier] or {}, found[later] or {}


def _page(rows: QuerySet[Revision], limit: int, key: Callable[[Revision], list[str | int]]) -> HistoryPage:
    changes, more = cut_page(rows, limit)
    return HistoryPage(changes, write_cursor(key(changes[-1])) if more else None)
