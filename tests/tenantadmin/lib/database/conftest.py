from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import pytest
from django.db import connection, connections

if TYPE_CHECKING:
    from tenantadmin.lib.database.postgresql.base import DatabaseWrapper


@pytest.fixture
def connect(db: None) -> Iterator[Callable[[], DatabaseWrapper]]:
    """Return a function that returns a further connection to the database of the tests, not opened yet."""
    opened = []

    def make() -> DatabaseWrapper:
        wrapper = cast("DatabaseWrapper", connections.create_connection("default"))
        wrapper.settings_dict = dict(connection.settings_dict)
        opened.append(wrapper)
        return wrapper

    yield make
    for wrapper in opened:
        wrapper.close()


@pytest.fixture
def other(connect: Callable[[], DatabaseWrapper]) -> DatabaseWrapper:
    """Return such a connection."""
    return connect()
