"""Statements that PostgreSQL plans anew, although connections prepare what they send often.

`docs/decisions/0012-prepared-queries.md` says why.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import NotSupportedError, connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def planned_for_values() -> Iterator[None]:
    """Plan the statements of the `with` block for their values. One plan for all may read a whole table."""
    connection.ensure_connection()
    session = connection.connection
    before, session.prepare_threshold = session.prepare_threshold, None
    try:
        yield
    finally:
        session.prepare_threshold = before


def retry_after_migration(
    execute: Callable[..., Any],
    sql: str,
    params: Any,
    many: bool,  # noqa: FBT001 - Django passes it so
    context: dict[str, Any],
) -> Any:
    """Run a prepared statement again if a migration has changed the type of its columns (an execute wrapper).

    In a transaction it fails. The rollback makes the connection forget its prepared statements.
    """
    try:
        return execute(sql, params, many, context)
    except NotSupportedError:
        if context["connection"].in_atomic_block:
            raise
        context["cursor"].execute("DEALLOCATE ALL")
        return execute(sql, params, many, context)
