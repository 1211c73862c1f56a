"""System checks of the settings for SQL over the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core import checks

if TYPE_CHECKING:
    from logs.sql.options import SqlOptions


@checks.register
def check_sql_options(**_: Any) -> list[checks.CheckMessage]:
    """Warn if one tenant can use all query slots."""
    options: SqlOptions = settings.SQL_OPTIONS
    if options.slots_per_tenant <= options.slots:
        return []
    return [
        checks.Warning(
            f"SQL_SLOTS_PER_TENANT ({options.slots_per_tenant}) exceeds SQL_SLOTS ({options.slots}):"
            " one tenant's queries can keep all others waiting.",
            hint="Set it below SQL_SLOTS.",
            id="logs.W001",
        )
    ]
