"""PostgreSQL advisory locks: only one worker at a time builds a period."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID


class Busy(Exception):
    """Another worker is building the same period. Try again later."""


@contextmanager
def build_lock(*, tenant: UUID, period: str, wait: bool) -> Iterator[None]:
    """Hold the lock of a tenant's ``period``: ``2026-03-01``, ``2026-03``, ``2026`` or ``history``.

    The lock belongs to the database session. If a worker dies, its connection closes and the lock is free.

    Raises:
        Busy: another session holds it, and ``wait`` is false.
    """
    digest = hashlib.blake2b(f"build {tenant} {period}".encode(), digest_size=8).digest()
    number = int.from_bytes(digest, signed=True)
    with connection.cursor() as cursor:
        if wait:
            cursor.execute("SELECT pg_advisory_lock(%s)", [number])
        else:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
            if not cursor.fetchone()[0]:
                raise Busy(f"{period} of tenant {tenant} is being built by another worker")
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [number])
