"""SQL statements that users save under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from accounts.events import record_event
from accounts.models.events import EventKind
from logs.audit import shortened
from logs.models import SavedQuery
from logs.sql.guard import MAX_STATEMENT_BYTES
from tenantadmin.lib.core.errors import BadRequest, NotFound
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from accounts.models import User

#: Maximum number of saved queries of one user.
MAX_SAVED: Final = 100
#: Of a statement in an event.
_MAX_RECORDED_BYTES: Final = 4096


class SavedQueryNotFound(NotFound):
    message = "You have no such saved query."


def list_saved_queries(user: User) -> list[SavedQuery]:
    """Return the saved queries of a user, by name."""
    return list(SavedQuery.objects.filter(user=user))


def find_saved_query(user: User, query_id: int) -> SavedQuery:
    """Return a saved query.

    Raises:
        SavedQueryNotFound: the user has no such query.
    """
    query = SavedQuery.objects.filter(user=user, pk=query_id).first()
    if query is None:
        raise SavedQueryNotFound
    return query


def save_query(user: User, *, name: str, statement: str) -> SavedQuery:
    """Save a statement under a name. It replaces an earlier one with the same name.

    Raises:
        BadRequest: name or statement is empty or too long, or the user has too many saved queries.
    """
    name = name.strip()
    if not 1 <= len(name) <= SavedQuery.MAX_NAME or "\0" in name:
        raise BadRequest(f"Give the query a name of at most {SavedQuery.MAX_NAME} characters.")
    if not statement.strip() or "\0" in statement or len(statement.encode()) > MAX_STATEMENT_BYTES:
        raise BadRequest(f"A saved query has at most {MAX_STATEMENT_BYTES} bytes, and is not empty.")
    with transaction.atomic():
        others = SavedQuery.objects.filter(user=user).exclude(name=name)
        if others.count() >= MAX_SAVED:
            raise BadRequest(f"You have {MAX_SAVED} saved queries. Delete one first.")
        saved, _ = SavedQuery.objects.update_or_create(
            user=user, name=name, defaults={"statement": statement, "saved_at": now()}
        )
        after = {"statement": shortened(statement, most=_MAX_RECORDED_BYTES)}
        record_event(EventKind.QUERY_SAVED, actor=user.email, subject=name, after=after)
    return saved


def delete_saved_query(user: User, query_id: int) -> SavedQuery:
    """Delete a saved query, and return it.

    Raises:
        SavedQueryNotFound: the user has no such query.
    """
    with transaction.atomic():
        query = SavedQuery.objects.select_for_update().filter(user=user, pk=query_id).first()
        if query is None:
            raise SavedQueryNotFound
        query.delete()
        before = {"statement": shortened(query.statement, most=_MAX_RECORDED_BYTES)}
        record_event(EventKind.QUERY_DELETED, actor=user.email, subject=query.name, before=before)
    return query
