"""What ``manage.py check`` finds wrong with the settings of SQL over the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from logs.sql.options import Misconfigured, check_secret

if TYPE_CHECKING:
    from logs.sql.options import SqlOptions


@checks.register
def check_sql_options(**_: Any) -> list[checks.CheckMessage]:
    """Return what an operator has to mend before queries can run."""
    options: SqlOptions = settings.SQL_OPTIONS
    found: list[checks.CheckMessage] = []
    if options.service_url:
        found += _service_errors(options)
    if options.slots_per_tenant > options.slots:
        found.append(
            checks.Warning(
                f"SQL_SLOTS_PER_TENANT ({options.slots_per_tenant}) exceeds SQL_SLOTS ({options.slots}):"
                " one tenant's queries can keep all others waiting.",
                hint="Set it below SQL_SLOTS.",
                id="logs.W001",
            )
        )
    return found


def _service_errors(options: SqlOptions) -> list[checks.CheckMessage]:
    found: list[checks.CheckMessage] = []
    address = urlsplit(options.service_url)
    if address.scheme not in {"http", "https"} or not address.hostname or address.query or address.fragment:
        found.append(
            checks.Error(
                f"SQL_SERVICE_URL is {options.service_url!r}, which is no address of a service.",
                hint="Set it to something like http://sql:8100, or to nothing: queries then run here.",
                id="logs.E001",
            )
        )
    try:
        check_secret(options)
    except Misconfigured as error:
        found.append(checks.Error(str(error), id="logs.E002"))
    return found
