"""System checks of the settings for SQL over the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core import checks

from logs.sql.sandbox import missing_restrictions

if TYPE_CHECKING:
    from logs.sql.options import SqlOptions


@checks.register
def check_sql_options(**_: Any) -> list[checks.CheckMessage]:
    """Warn if one tenant can use all query slots, or queries all threads of a web process."""
    options: SqlOptions = settings.SQL_OPTIONS
    found: list[checks.CheckMessage] = []
    if options.slots_per_tenant > options.slots:
        found.append(
            checks.Warning(
                f"SQL_SLOTS_PER_TENANT ({options.slots_per_tenant}) exceeds SQL_SLOTS ({options.slots}):"
                " one tenant's queries can keep all others waiting.",
                hint="Set it below SQL_SLOTS.",
                id="logs.W001",
            )
        )
    if not options.service_url and options.slots + options.queue >= settings.WEB_THREADS:
        found.append(
            checks.Warning(
                f"SQL_SLOTS ({options.slots}) and SQL_QUEUE ({options.queue}) need all"
                f" WEB_THREADS ({settings.WEB_THREADS}): running and waiting queries can keep all other"
                " requests waiting.",
                hint="Set WEB_THREADS above their sum, or run a SQL service (SQL_SERVICE_URL).",
                id="logs.W002",
            )
        )
    return found


@checks.register(deploy=True)
def check_restrictions(**_: Any) -> list[checks.CheckMessage]:
    """Warn if the kernel cannot restrict query processes as it should."""
    if settings.SQL_OPTIONS.service_url or not (missing := missing_restrictions()):
        return []
    message = f"This kernel lacks {' and '.join(missing)}: query processes are restricted without it."
    hint = "Enable it (docs/operating.md, Kernel), or run the SQL service on a machine that has it."
    return [checks.Warning(message, hint=hint, id="logs.W003")]
