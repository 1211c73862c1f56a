"""The password form of the admin site: guesses are few. Contract: Limits, as for magic links."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError

from accounts.emails import normalize_email
from accounts.signin.limits import forget, spend
from tenantadmin.core.addresses import client_address
from tenantadmin.core.errors import ApiError, RateLimited

if TYPE_CHECKING:
    from django.http import HttpRequest

_EMAIL: Final = "password-email"


class PasswordForm(AdminAuthenticationForm):
    """Counts a try before the password is looked at, so that tries at the same moment are counted too.

    ``refusal`` is what kept the password from being looked at, if anything did.
    """

    request: HttpRequest
    refusal: ApiError | None = None

    def clean(self) -> dict[str, Any]:
        email = normalize_email(self.cleaned_data.get("username") or "")
        try:
            spend(
                limit=settings.PASSWORD_ADDRESS_LIMIT,
                kind="password-address",
                key=client_address(self.request),
            )
            spend(limit=settings.PASSWORD_EMAIL_LIMIT, kind=_EMAIL, key=email)
        except ApiError as error:
            self.refusal = error
            raise ValidationError(_explain(error), code=error.code) from error
        cleaned: dict[str, Any] = super().clean()
        if self.get_user() is not None:
            forget(limit=settings.PASSWORD_EMAIL_LIMIT, kind=_EMAIL, key=email)
        return cleaned


def _explain(error: ApiError) -> str:
    if not isinstance(error, RateLimited):
        return "Nobody can sign in at the moment. Try again later."
    minutes = math.ceil(int(error.headers["Retry-After"]) / 60)
    return f"Too many tries. Try again in {minutes} minute{'s' if minutes > 1 else ''}."
