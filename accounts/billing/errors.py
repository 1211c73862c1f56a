"""Refusals of account administration. Contract: Errors."""

from __future__ import annotations

from tenantadmin.core.errors import ApiError, NotFound


class InUse(ApiError):
    """Something else still depends on what was to go, or holds what was to be taken."""

    status = 409
    code = "conflict"
    message = "Something else still depends on this."


class DomainNotFound(NotFound):
    message = "The account has no such domain."


class GrantNotFound(NotFound):
    message = "There is no such grant."


class FqdnNotFound(NotFound):
    message = "Nobody holds this FQDN."
