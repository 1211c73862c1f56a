"""Whether a command failed because nobody has migrated its database."""

from __future__ import annotations

from typing import Final

from django.db import ProgrammingError, connection
from django.db.migrations.executor import MigrationExecutor
from psycopg.errors import UndefinedTable

NOT_MIGRATED: Final = (
    "The database is not migrated: "
    "run manage.py migrate, or set VAR_DIR or DATABASE_URL to that of the service."
)


def is_for_want_of_migrations(error: ProgrammingError) -> bool:
    """Say whether ``error`` is of a missing table in a database that lacks migrations."""
    if not isinstance(error.__cause__, UndefinedTable):
        return False
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
