"""Publish and read the terms. Contract: Terms of service."""

from __future__ import annotations

from typing import ClassVar, Final

from django.db import connection, transaction

from accounts.events import record_event
from accounts.models.events import EventKind
from tenantadmin.lib.core.errors import BadRequest, Conflict, Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import Email, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, now
from tenantadmin.lib.objectstore import default_store
from tosapp.active import TosNotLoaded, active_terms
from tosapp.announcement import announce
from tosapp.normal import HASH, Terms, terms_of
from tosapp.store import (
    last_publication,
    read_current,
    read_historical,
    write_publication,
)

#: The advisory lock that serializes publications; an arbitrary constant.
_PUBLISH_LOCK: Final = 4_202_302


class TermsChanged(Conflict):
    """Other terms have become active since the caller read them."""

    message: ClassVar[str] = "Other terms were published in the meantime. Compare your text with them."


class TosPublishResult(JsonStruct):
    """``published`` is false where the document was active already."""

    hash: str
    published: bool
    published_at: Timestamp
    published_by: Email


def publish(markdown: str, *, actor: str, replacing: str | None = None) -> TosPublishResult:
    """Make ``markdown`` the active terms. ``actor`` is an email.

    Publishing the active document again writes nothing. ``replacing`` is the hash of the terms that the
    caller wants to replace (empty: there are none). If it is None, any active terms are replaced.

    Raises:
        ValidationFailed: the document is empty after normalization.
        TermsChanged: other terms than ``replacing`` are active.
        StoreError: the store failed; the earlier document is still active, and publishing may be repeated.
    """
    terms = require_terms(markdown)
    store = default_store()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PUBLISH_LOCK])
        current = read_current(store)
        if replacing not in {None, current.hash if current else ""}:
            raise TermsChanged
        known = last_publication(store, terms.hash) if current == terms else None
        publication = known or write_publication(store, terms, at=now(), by=actor)
        if known is None:
            before = {"hash": current.hash} if current else None
            record_event(EventKind.TERMS_PUBLISHED, actor=actor, subject=terms.hash, before=before)
    active_terms().adopt(terms)
    announce(terms.hash)
    return TosPublishResult.of(publication, published=known is None)


def require_terms(markdown: str) -> Terms:
    """Return ``markdown`` as terms, in its normal form.

    Raises:
        ValidationFailed: it is empty after normalization.
    """
    terms = terms_of(markdown)
    if terms is None:
        raise ValidationFailed(
            details=[
                Detail(
                    "/markdown", "empty", "The document is empty after normalization. Send the whole text."
                )
            ]
        )
    return terms


def require_active() -> Terms:
    """Return the active terms.

    Raises:
        TosNotLoaded: there are none.
    """
    terms = active_terms().get()
    if terms is None:
        raise TosNotLoaded
    return terms


def read_by_hash(md5: str) -> Terms:
    """Return the document with this hash, active or superseded.

    Raises:
        BadRequest: it is not a hash.
        NotFound: no document has it.
        StoreError: the store failed.
    """
    if not HASH.fullmatch(md5):
        raise BadRequest("The hash is 32 lowercase hexadecimal digits.")
    terms = read_historical(default_store(), md5)
    if terms is None:
        raise NotFound("No terms of service have this hash.")
    return terms
