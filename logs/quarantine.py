"""Read quarantined entries, for members of a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from logs.compaction.entries import BadFile, split
from logs.tree import read_object
from tenantadmin.lib.core.errors import NotFound, PayloadTooLarge

if TYPE_CHECKING:
    from logs.audit import Reader
    from logs.models import QuarantinedEntry
    from tenantadmin.lib.objectstore import ObjectStore

#: The largest object, in bytes, that is read to find an entry in it.
MAX_OBJECT_BYTES: Final = 64 << 20
#: The first bytes of an entry or a file that are shown.
MAX_SHOWN_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class RawEntry:
    """The first bytes of an entry or of a whole file as text, and its size in bytes."""

    text: str
    size: int

    @property
    def is_cut(self) -> bool:
        return self.size > MAX_SHOWN_BYTES


def read_quarantined(store: ObjectStore, entry: QuarantinedEntry, *, reader: Reader) -> RawEntry:
    """Write an audit row, then return a quarantined entry.

    Raises:
        NotFound: the object is gone, or has changed so that there is no such entry.
        PayloadTooLarge: the object has more than `MAX_OBJECT_BYTES`.
        StoreError: the store failed.
    """
    *path, file = entry.key.split("/")[2:]
    raw = read_object(store, tenant=entry.tenant_id, path=tuple(path), file=file, reader=reader)
    if isinstance(raw.body, bytes):
        body = raw.body
    else:
        try:
            if raw.size > MAX_OBJECT_BYTES:
                raise PayloadTooLarge(
                    f"The object has {raw.size} bytes. The API of raw logs sends it to members."
                )
            body = b"".join(raw.body)
        finally:
            raw.body.close()
    if entry.position is not None:
        body = _entry_at(body, entry.position)
    return RawEntry(body[:MAX_SHOWN_BYTES].decode(errors="replace"), len(body))


def _entry_at(body: bytes, position: int) -> bytes:
    try:
        return bytes(split(body).values[position])
    except (BadFile, IndexError):
        raise NotFound("The object has changed since its day was built. Build the day again.") from None
