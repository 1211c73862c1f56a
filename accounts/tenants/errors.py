"""Errors of the administration of tenants and accounts. Contract: Errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import IntegrityError, OperationalError
from psycopg.errors import DeadlockDetected

from tenantadmin.lib.core.errors import ApiError, Conflict, NotFound


class FqdnConflict(ApiError):
    """Another tenant holds the host name, or released it less than `TOMBSTONE_LIFETIME` ago."""

    status = 409
    code = "fqdn_conflict"
    message = "Another tenant holds the FQDN, or released it recently."


class TenantNameConflict(ApiError):
    """Another live tenant of the account has the same name; upper and lower case count as equal."""

    status = 409
    code = "tenant_name_conflict"
    message = "Another tenant of this account has this name."


class AccountNotFound(NotFound):
    code = "account_not_found"
    message = "There is no such account."


class TenantNotFound(NotFound):
    message = "There is no such tenant."


class TenantNotDeleted(ApiError):
    status = 409
    code = "conflict"
    message = "The tenant is not deleted, so there is nothing to restore."


_NAME_CONSTRAINT: Final = "tenant_name_unique"


@contextmanager
def database_refusals() -> Iterator[None]:
    """Translate database errors into errors of the API. Constraints decide races, not earlier checks.

    Raises:
        TenantNameConflict: another tenant of the account has the name.
        Conflict: PostgreSQL ended this transaction to resolve a deadlock.
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


class InUse(ApiError):
    """The object cannot be deleted because it is in use, or the name cannot be used because it is taken."""

    status = 409
    code = "conflict"
    message = "Something else still depends on this."


class DomainNotFound(NotFound):
    message = "The account has no such domain."


class GrantNotFound(NotFound):
    message = "There is no such grant."


class FqdnNotFound(NotFound):
    message = "No tenant holds this FQDN."
