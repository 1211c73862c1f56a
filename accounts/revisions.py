"""Append to the history of documents; read it and the events, page by page. Contract: Change history."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic
from uuid import UUID

import msgspec
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.cursors import Row, cut_page, older_than, read_cursor, write_cursor
from accounts.models import Event, Revision, Tenant, User
from accounts.models.events import EventKind
from accounts.models.history import RevisionAction, RevisionKind
from accounts.models.users import MembershipRole
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import Conflict, Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.request_context import current_reason, current_request_id
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, now
from tenantadmin.lib.database.plans import first_of_each, merge_first, planned_for_values

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.db.models.query import RawQuerySet

    from accounts.access.principal import Principal


#: Characters of a comment on a change, which ``summary.comment`` of its revision keeps.
MAX_COMMENT: Final = 500


def append_revision(
    *,
    kind: str,
    account_id: UUID,
    tenant_id: UUID | None,
    seq: int,
    action: str,
    actor: str,
    changed_at: dt.datetime,
    summary: dict[str, Any],
    document: dict[str, Any] | None,
    restored_from: int | None = None,
    comment: str = "",
) -> Revision:
    """Record one change of a document. Call it in the transaction of the change.

    ``actor`` is a normalized email. ``comment`` says why the document changes, in `MAX_COMMENT` characters.
    Without one, the reason that staff gave is the comment.
    The caller has just increased the document's version from ``seq - 1`` to ``seq`` under a row lock, so the
    numbers have no gaps.

    Raises:
        IntegrityError: the history has a revision with this ``seq`` already.
    """
    comment = comment or current_reason()[:MAX_COMMENT]
    return Revision.objects.create(
        kind=kind,
        account_id=account_id,
        tenant_id=tenant_id,
        seq=seq,
        action=action,
        user=actor,
        changed_at=changed_at,
        restored_from=restored_from,
        summary={**summary, "comment": comment} if comment else summary,
        document=document,
        request_id=current_request_id(),
    )


def require_unchanged(
    members: Mapping[str, tuple[object, object]], *, sent_seq: int | None, stored_seq: int
) -> None:
    """Refuse new values for members that cannot change.

    ``members`` maps names to the sent value (None if it was left out) and the stored value.

    Raises:
        ValidationFailed: a read-only member was sent with another value than the stored one.
        Conflict: ``seq`` was sent with another value than the stored one.
    """
    details = [
        Detail(f"/{name}", "read-only", f"'{name}' cannot be changed. Leave it out or send it as read.")
        for name, (sent, stored) in members.items()
        if sent not in {None, stored}
    ]
    if details:
        raise ValidationFailed(details=details)
    if sent_seq not in {None, stored_seq}:
        raise Conflict


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
class Page(Generic[Row]):
    """A page of changes or events, newest first. ``cursor`` is None on the last page."""

    rows: Sequence[Row]
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


def read_timeline(history: DocumentHistory, *, limit: int, cursor: str | None) -> Page[Revision]:
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
    if not page.rows and not history.revisions().exists():
        raise NotFound
    return page


def read_changes(principal: Principal, asked: Q, *, limit: int, cursor: str | None) -> Page[Revision]:
    """Return a page of all changes that the caller may read.

    Raises:
        BadRequest: the cursor is not from this list.
    """
    is_account = Q(kind=RevisionKind.ACCOUNT)
    on_tenants = principal.on_tenants.as_q(Scope.CONFIG_READ, tenant="tenant_id", account="account_id")
    on_accounts = principal.on_accounts.as_q(Scope.CONFIG_READ, account="account_id")
    readable = (on_tenants & ~is_account) | (on_accounts & is_account)
    rows = Revision.objects.filter(readable, asked).defer("document")
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


def describe_in_force(revision: Revision) -> str:
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


def _page(rows: QuerySet[Revision], limit: int, key: Callable[[Revision], list[str | int]]) -> Page[Revision]:
    changes, more = cut_page(rows, limit)
    return Page(changes, write_cursor(key(changes[-1])) if more else None)


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
    text: Annotated[str, Meta(description="What was done, in words: `made ada@example.org admin`.")]
    changes: Annotated[str, Meta(description="What changed, in words; may be empty.")]
    reason: Annotated[str | None, Meta(description="Why something was refused, or why staff did it.")] = None
    request_id: Annotated[str, Meta(description="`-` for commands and jobs.")]
    address: Annotated[str, Meta(description="The client's address. Empty for commands and jobs.")]


def read_events(principal: Principal, asked: Q, *, limit: int, cursor: str | None) -> Page[Event]:
    """Return a page of the events that the caller may see.

    Raises:
        BadRequest: the cursor is not from this list.
    """
    rows = Event.objects.filter(asked)
    if cursor is not None:
        rows = older_than(rows, cursor, time="at")
    rows = rows.order_by("-at", "-pk")
    first = rows[: limit + 1] if principal.is_platform_admin else _visible(principal, rows, limit + 1)
    found = list(first)
    if len(found) <= limit:
        return Page(found)
    last = found[limit - 1]
    return Page(found[:limit], write_cursor([last.at.isoformat(), last.pk]))


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
