"""Publish and read the terms. Contract: Terms of service.

Three objects are written per publication, in this order: ``tos/history/<md5>.md``, the record
``tos/audit/<time>-<md5>.json``, and ``tos/current.md`` last. Each write is atomic, so after a crash between
two writes the earlier document is still active, and publishing again completes the rest.

Each process caches the active terms for `TOS_REFRESH_SECONDS`. An announcement in the cache makes it read
terms at once that another process publishes. While the store fails, the cached terms stay active.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
from django.conf import settings
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.db import connection, transaction
from redis import RedisError

from accounts.events import record_event
from accounts.models.events import EventKind
from tenantadmin.lib.core.errors import ApiError, BadRequest, Conflict, Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.structs import Email, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now
from tenantadmin.lib.objectstore import ObjectNotFound, StoreError, default_store

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore


HASH: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Terms:
    """A document in its normal form and the lowercase hex MD5 of its UTF-8."""

    hash: str
    markdown: str


def normalize(markdown: str) -> str:
    """Return ``markdown`` with LF line ends, no trailing whitespace, no blank lines at start and end."""
    return "\n".join(line.rstrip() for line in markdown.split("\n")).strip("\n")


def terms_of(markdown: str) -> Terms | None:
    """Return ``markdown`` as terms in normal form, or None if it is empty after normalization."""
    text = normalize(markdown)
    if not text:
        return None
    return Terms(hash=hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), markdown=text)


CURRENT: Final = "tos/current.md"
AUDIT: Final = "tos/audit/"


class Publication(JsonStruct):
    """One record of the audit. ``published_by`` is an email."""

    hash: str
    published_at: Timestamp
    published_by: str


def write_publication(store: ObjectStore, terms: Terms, *, at: dt.datetime, by: str) -> Publication:
    """Write history, audit and the current document, in this order.

    Raises:
        StoreError: the store failed; the earlier document is still active.
    """
    publication = Publication(hash=terms.hash, published_at=format_timestamp(at), published_by=by)
    text = terms.markdown.encode()
    audit = f"{AUDIT}{publication.published_at}-{terms.hash}.json"
    store.save(_historical(terms.hash), ContentFile(text))
    store.save(audit, ContentFile(msgspec.json.format(dump_json(publication), indent=1)))
    store.save(CURRENT, ContentFile(text))
    return publication


def read_current(store: ObjectStore) -> Terms | None:
    """Return the active document, or None before the first publication.

    Raises:
        StoreError: the store failed.
    """
    return _read_terms(store, CURRENT)


def read_historical(store: ObjectStore, md5: str) -> Terms | None:
    """Return the document with this hash, or None if there never was one.

    Raises:
        StoreError: the store failed.
    """
    return _read_terms(store, _historical(md5))


def last_publication(store: ObjectStore, md5: str) -> Publication | None:
    """Return the newest audit record of the document with this hash.

    Raises:
        StoreError: the store failed.
    """
    keys = [entry.key for entry in store.list(AUDIT) if entry.key.endswith(f"-{md5}.json")]
    if not keys:
        return None
    with store.open(max(keys)) as file:
        return msgspec.json.decode(file.read(), type=Publication)


def _historical(md5: str) -> str:
    return f"tos/history/{md5}.md"


def _read_terms(store: ObjectStore, key: str) -> Terms | None:
    try:
        with store.open(key) as file:
            return terms_of(file.read().decode())
    except ObjectNotFound:
        return None


logger = logging.getLogger(__name__)

_KEY: Final = "tos:published"


def announce(terms_hash: str) -> None:
    """Tell every process that the document with this hash is active and in the store."""
    try:
        # After this time every process has refreshed its cache anyway.
        cache.set(_KEY, terms_hash, timeout=2 * settings.TOS_REFRESH_SECONDS + 1)
    except RedisError as error:
        logger.warning("Other processes adopt the new terms of service later: %s", error)


def announced_hash() -> str | None:
    """Return the hash of the last announcement; None if there is none or Redis does not answer."""
    try:
        found: str | None = cache.get(_KEY)
    except RedisError:
        return None
    return found


class TosNotLoaded(ApiError):
    """There are no active terms, or they could not be read yet."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "tos_not_loaded"
    message: ClassVar[str] = "The terms of service are not loaded yet."


class ActiveTerms:
    """The cached active terms of one process. Thread-safe."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        refresh_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        announced: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store = store
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._announced = announced
        self._lock = threading.Lock()
        self._terms: Terms | None = None
        self._read_at: float | None = None

    def get(self, *, fresh: bool = False) -> Terms | None:
        """Return the active terms, or None before the first publication. ``fresh`` bypasses the cache.

        Raises:
            TosNotLoaded: the store fails and the terms were never read.
        """
        announced = self._announced()
        with self._lock:
            has_cached = self._read_at is not None
            is_superseded = announced is not None and (self._terms is None or self._terms.hash != announced)
            if fresh or is_superseded or self._is_stale():
                try:
                    self._adopt(read_current(self._store))
                except StoreError:
                    if not has_cached:
                        logger.exception("The terms of service cannot be read")
                        raise TosNotLoaded from None
                    logger.warning("The terms of service cannot be read; the cached ones stay active")
            return self._terms

    def adopt(self, terms: Terms) -> None:
        """Cache ``terms``, which this process has just published."""
        with self._lock:
            self._adopt(terms)

    def _is_stale(self) -> bool:
        return self._read_at is None or self._clock() - self._read_at >= self._refresh_seconds

    def _adopt(self, terms: Terms | None) -> None:
        self._terms, self._read_at = terms, self._clock()


def active_terms() -> ActiveTerms:
    """Return the cache of this process for ``storages["objects"]``."""
    return _of_store(default_store(), settings.TOS_REFRESH_SECONDS)


@lru_cache(maxsize=8)
def _of_store(store: ObjectStore, refresh_seconds: float) -> ActiveTerms:
    return ActiveTerms(store, refresh_seconds=refresh_seconds, announced=announced_hash)


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
