"""Refusals of tenant administration. Contract: Errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import IntegrityError, OperationalError
from psycopg.errors import DeadlockDetected

from tenantadmin.core.errors import ApiError, Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator


class FqdnConflict(ApiError):
    """A host name that another tenant holds, or held less than the tombstone's lifetime ago."""

    status = 409
    code = "fqdn_conflict"
    message = "The FQDN is claimed by another tenant, or was until recently."


class TenantNameConflict(ApiError):
    """A name that another live tenant of the account bears, whatever its case."""

    status = 409
    code = "tenant_name_conflict"
    message = "Another tenant of this account bears this name."


class AccountNotFound(NotFound):
    code = "account_not_found"
    message = "There is no such account."


class TenantNotFound(NotFound):
    message = "There is no such tenant."


_NAME_CONSTRAINT: Final = "tenant_name_unique"


@contextmanager
def database_refusals() -> Iterator[None]:
    """Name what the database refuses inside: its constraints decide races, not a check before.

    Raises:
        TenantNameConflict: the name stands already.
        Conflict: two writers waited for each other and this one gave way.
    """
    try:
        yield
    except IntegrityError as error:
        diagnostics = getattr(error.__cause__, "diag", None)
        if diagnostics is not None and diagnostics.constraint_name == _NAME_CONSTRAINT:
            raise TenantNameConflict from error
        raise
    except OperationalError as error:
        if isinstance(error.__cause__, DeadlockDetected):
            raise Conflict from error
        raise
