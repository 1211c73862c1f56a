"""Errors of replays. Contract: Errors."""

from __future__ import annotations

from tenantadmin.lib.core.errors import NotFound, RateLimited, ValidationFailed


class ReplayNotFound(NotFound):
    message = "There is no such replay."


class TooLarge(ValidationFailed):
    message = "The replay is too large. Choose fewer days."


class TooManyReplays(RateLimited):
    message = "Too many replays of this tenant are waiting. Try again when one has ended."


class ReplayEnded(Exception):
    """A running replay must end: it was cancelled, its tenant was deleted, or it took too long."""
