"""Arguments that several commands take."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from uuid import UUID

from accounts.models import Revision, Tenant


def tenant_id(text: str) -> UUID:
    """Return the id of a tenant; argparse's type of ``--tenant``.

    A deleted tenant is accepted too, even after its tombstone is removed, because its history, logs and
    summaries stay (contract: "Tenant lifecycle").

    Raises:
        ArgumentTypeError: the text is not a UUID, or no such tenant ever existed.
    """
    try:
        tenant = UUID(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no tenant's id, which is a UUID.") from None
    if not (Tenant.objects.filter(pk=tenant).exists() or Revision.objects.filter(tenant_id=tenant).exists()):
        raise ArgumentTypeError(f"There is no tenant {tenant}.")
    return tenant


def add_tenant(parser: ArgumentParser) -> None:
    """Add the required option ``--tenant``."""
    parser.add_argument("--tenant", type=tenant_id, required=True, metavar="ID")


def add_days(parser: ArgumentParser) -> None:
    """Add the required options ``--from`` and ``--to``, whose values are ``first`` and ``last``."""
    for option, name in (("--from", "first"), ("--to", "last")):
        parser.add_argument(
            option, dest=name, type=day_argument, required=True, metavar="DAY", help="YYYY-MM-DD"
        )


def day_argument(text: str) -> date:
    """Return a day; argparse's type of an option that takes one.

    Raises:
        ArgumentTypeError: the text is not a day.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no day; write it like 2026-03-01") from None
