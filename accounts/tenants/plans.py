"""The limits of plans. Contract: accounts. The numbers are in the setting ``PLAN_LIMITS``."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from tenantadmin.lib.core.errors import Detail, PlanLimitExceeded


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """How many of each a plan allows; None means no limit. All but ``tenants`` are per tenant.

    Attributes:
        stored_bytes: of each kind of rows in a day (`accounts.limits.Quota`).
        markers: that are not expired.
    """

    tenants: int | None
    fqdns: int | None
    rules: int | None
    stored_bytes: int | None = None
    markers: int | None = None
    cache_entries: int | None = None


def limits_of(plan: str) -> PlanLimits:
    """Return the limits of ``plan``."""
    return PlanLimits(**settings.PLAN_LIMITS[plan])


def require_within(limit: int | None, *, count: int, what: str, plan: str, path: str) -> None:
    """Refuse more than the plan allows. ``what`` is a plural noun, ``path`` a JSON Pointer into the request.

    Raises:
        PlanLimitExceeded: ``count`` is over ``limit``.
    """
    if limit is not None and count > limit:
        message = f"The plan '{plan}' allows {limit} {what}; this would make {count}."
        raise PlanLimitExceeded(message, details=[Detail(path, "plan-limit-exceeded", message)])
