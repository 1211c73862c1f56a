"""The sign-in settings as values. They are read on every call, so that tests may change them."""

from __future__ import annotations

from django.conf import settings

from accounts.signin.redirects import resolve_redirect


def return_address(target: str) -> str:
    """Return the address that a sign-in with the target ``target`` redirects to."""
    return resolve_redirect(
        target, dashboard_url=settings.DASHBOARD_URL, allowed=settings.ALLOWED_REDIRECT_HOSTS
    )
