"""PostgreSQL advisory locks: only one worker at a time does something."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from uuid import UUID


class Busy(Exception):
    """Another worker is doing the same. Try again later."""


@contextmanager
def advisory_lock(name: str, *, wait: bool) -> Iterator[None]:
    """Hold the lock with this name.

    The lock belongs to the database session. If a worker dies, its connection closes and the lock is free.

    Raises:
        Busy: another session holds it, and ``wait`` is false.
    """
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
    with connection.cursor() as cursor:
        if wait:
            cursor.execute("SELECT pg_advisory_lock(%s)", [number])
        else:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
            if not cursor.fetchone()[0]:
                raise Busy(f"Another worker is at work: {name}")
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [number])


def build_lock(*, tenant: UUID, period: str, wait: bool) -> AbstractContextManager[None]:
    """Hold the lock of a tenant's ``period``: ``2026-03-01``, ``2026-03``, ``2026`` or ``history``.

    Raises:
        Busy: another session holds it, and ``wait`` is false.
    """
    return advisory_lock(f"build {tenant} {period}", wait=wait)
