"""Plans of queries that PostgreSQL must not reuse."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenantadmin.lib.database.base import DatabaseWrapper


@contextmanager
def planned_with_values() -> Iterator[None]:
    """Have PostgreSQL plan each query in this block for its values.

    A connection prepares a query that it repeats, and after five executions PostgreSQL may keep one plan for
    all values. Where OR joins conditions and the newest rows are asked for, that plan may read the whole
    table from its newest row on, although the values are rare and each condition has an index.
    """
    wrapper = cast("DatabaseWrapper", connection)
    wrapper.ensure_connection()
    link = wrapper.connection
    threshold, link.prepare_threshold = link.prepare_threshold, None
    try:
        yield
    finally:
        link.prepare_threshold = threshold
