"""The terms in the object store. Contract: Terms of service.

Three objects are written per publication, in this order: ``tos/history/<md5>.md``, the record
``tos/audit/<time>-<md5>.json``, and ``tos/current.md`` last. Each write is atomic, so after a crash between
two writes the earlier document is still active, and publishing again completes the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from django.core.files.base import ContentFile

from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp
from tenantadmin.lib.objectstore import ObjectNotFound
from tosapp.normal import Terms, terms_of

if TYPE_CHECKING:
    import datetime as dt

    from tenantadmin.lib.objectstore import ObjectStore

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
