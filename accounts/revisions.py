"""Read the change history: pages of changes and single revisions. Contract: Change history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.cursors import cut_page, older_than, read_cursor, write_cursor
from accounts.models import Revision, Tenant
from accounts.models.history import RevisionAction, RevisionKind
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, now
from tenantadmin.lib.database.plans import planned_for_values

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping, Sequence

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


def read_last_changes(tenants: Iterable[UUID]) -> Mapping[UUID, dt.datetime | None]:
    """Return when the newest revision of each tenant's rules or configuration was made, in one query.

    ``Tenant.modified_at`` is for pollers: it is later if a change was dated back.
    """
    newest = Revision.objects.filter(tenant_id=OuterRef("pk")).values("changed_at")[:1]
    rows = Tenant.objects.filter(pk__in=[*tenants]).order_by()
    return dict(rows.values_list("pk", Subquery(newest)))


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


def history_of(change: Revision) -> DocumentHistory:
    """Return the history that a change belongs to."""
    return DocumentHistory(RevisionKind(change.kind), change.tenant_id or change.account_id)


class Change(JsonStruct):
    """One recorded change."""

    seq: Count
    kind: Annotated[str, one_of(RevisionKind.values)]
    tenant_id: UUID | None = None
    account_id: UUID
    user: str = msgspec.field(name="userId")
    changed_at: Timestamp
    action: Annotated[str, one_of(RevisionAction.values)]
    restored_from: Count | None = None
    summary: Annotated[dict[str, Any], Meta(description="Counts and names of what changed.")]
    text: Annotated[str, Meta(description="The same in words.")] = ""


class ChangeRevision(Change):
    """A change and the whole document after it; null after a deletion."""

    document: dict[str, Any] | None
    in_force: Annotated[
        str, Meta(description="On which days it was, or since when it is: `in force 3 to 9 November`.")
    ] = ""


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
    # One plan for all callers may read every revision from the newest on.
    with planned_for_values():
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


def say_in_force(revision: Revision) -> str:
    """Say on which days a revision was in force, or since when it is: ``in force 3 to 9 November``.

    The text of a deletion is empty.
    """
    if revision.action == RevisionAction.DELETE:
        return ""
    later = history_of(revision).revisions().filter(seq__gt=revision.seq).order_by("seq")
    ended_at = later.values_list("changed_at", flat=True).first()
    first, today = revision.changed_at.date(), now().date()
    day = formats.day_in_words(first, today)
    if ended_at is None:
        return f"in force since {day}"
    # A later revision may be dated back.
    ended_at = max(ended_at, revision.changed_at)
    if ended_at.date() == first:
        return f"in force on {day}, for {formats.apart(revision.changed_at, ended_at) or 'a moment'}"
    return f"in force {formats.days_between(first, ended_at.date(), today=today)}"


def read_last_document(history: DocumentHistory) -> tuple[int, dict[str, Any]]:
    """Return the newest revision that has a document, and the document: before a deletion, if there was one.

    Raises:
        RevisionNotFound: there is no such revision.
    """
    revision = history.revisions().filter(document__isnull=False).first()
    if revision is None or revision.document is None:
        raise RevisionNotFound
    return revision.seq, revision.document


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
