"""Which email domains may sign in, and so may be invited and get grants."""

from __future__ import annotations

from django.conf import settings

from tenantadmin.lib.core.errors import Forbidden


def require_permitted(email: str) -> None:
    """Refuse a normalized address whose domain is not in `SIGNIN_EMAIL_DOMAINS`. An empty list permits all.

    Raises:
        Forbidden: the domain may not sign in.
    """
    permitted = {domain.strip().lower().removeprefix("@") for domain in settings.SIGNIN_EMAIL_DOMAINS}
    if permitted and email.rpartition("@")[2] not in permitted:
        raise Forbidden("Addresses of this domain may not sign in here.")
