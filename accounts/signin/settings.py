"""The sign-in settings as values. Read for every request, so that tests and processes may differ."""

from __future__ import annotations

from django.conf import settings

from accounts.signin.redirects import resolve_redirect


def return_address(target: str) -> str:
    """Return where a sign-in that asked for ``target`` leads to."""
    return resolve_redirect(
        target, dashboard_url=settings.DASHBOARD_URL, allowed=settings.ALLOWED_REDIRECT_HOSTS
    )


def is_domain_permitted(email: str) -> bool:
    """Tell whether the domain of a normalized ``email`` may sign in; an empty list permits all."""
    permitted = {domain.strip().lower().removeprefix("@") for domain in settings.SIGNIN_EMAIL_DOMAINS}
    return not permitted or email.rpartition("@")[2] in permitted
