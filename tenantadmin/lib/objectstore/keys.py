"""The keys of objects, and the errors of a store.

A key is a POSIX path without a leading slash: ``<tenantId>/logs/2026/11/21/07/a.json``. A prefix is
empty, or a key followed by a slash. A store may allow fewer keys: names of local files must be shorter.
"""

from __future__ import annotations

from typing import Final

MAX_KEY_BYTES: Final = 1024
_FORBIDDEN_SEGMENTS: Final = frozenset({"", ".", ".."})


class StoreError(Exception):
    """The store failed: the disk, the network or the S3 server."""


class ObjectNotFound(StoreError, FileNotFoundError):
    """There is no object under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no object {key!r}")
        self.key = key


class InvalidKey(StoreError, ValueError):
    """The key could name something outside the store, or cannot be stored."""


def check_key(key: str) -> str:
    """Return ``key`` if it is a valid key.

    Raises:
        InvalidKey: it is empty, absolute, too long, not Unicode, or has an empty, ``.`` or ``..`` segment.
    """
    if not _FORBIDDEN_SEGMENTS.isdisjoint(key.split("/")):
        raise InvalidKey(f"object key {key!r} has an empty segment, or the segment '.' or '..'")
    if "\0" in key:
        raise InvalidKey(f"object key {key!r} contains a NUL character")
    try:
        length = len(key) if key.isascii() else len(key.encode())
    except UnicodeEncodeError:
        raise InvalidKey(f"object key {key!r} is not Unicode text") from None
    if length > MAX_KEY_BYTES:
        raise InvalidKey(f"object key {key[:80]!r}… has {length} bytes; the most is {MAX_KEY_BYTES}")
    return key


def is_key(key: str) -> bool:
    """Return True if the key is valid. S3 tools also write folder markers (``a/``), whose keys are not."""
    try:
        check_key(key)
    except InvalidKey:
        return False
    return True


def check_prefix(prefix: str) -> str:
    """Return ``prefix`` if it is empty, or a valid key followed by one slash.

    Raises:
        InvalidKey: it is neither.
    """
    if prefix:
        if not prefix.endswith("/"):
            raise InvalidKey(f"prefix {prefix!r} does not end in a slash")
        check_key(prefix[:-1])
    return prefix
