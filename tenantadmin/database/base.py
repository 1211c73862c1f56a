"""The database backend. Django looks for this module by its name."""

from __future__ import annotations

import select

import psycopg
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Looks at the socket before it asks the server whether a kept connection still stands.

    Django's own check sends ``SELECT 1`` ahead of the first query of every request, which doubles what a
    light request costs. A server that went away has closed its end, which makes the socket readable; an
    idle connection's is silent.
    """

    def is_usable(self) -> bool:
        if self.connection is None:
            return False
        try:
            poll = select.poll()
            poll.register(self.connection.fileno(), select.POLLIN | select.POLLPRI)
            is_silent = not poll.poll(0)
        except (psycopg.Error, OSError, ValueError):
            return False
        return is_silent or super().is_usable()
