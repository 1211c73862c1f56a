"""Errors of account administration. Contract: Errors."""

from __future__ import annotations

from tenantadmin.lib.core.errors import ApiError, NotFound


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
