"""The password form of the admin site, with rate limits. Contract: Limits, as for magic links."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError

from accounts.emails import normalize_email
from accounts.events import known_address, record_event, record_refusal
from accounts.models.events import EventKind
from accounts.signin.limits import count_use, reset_uses
from tenantadmin.core.addresses import client_address, network_of
from tenantadmin.core.errors import ApiError, RateLimited

if TYPE_CHECKING:
    from django.http import HttpRequest

_EMAIL: Final = "password-email"


class PasswordForm(AdminAuthenticationForm):
    """Counts every try before it checks the password, so that concurrent tries are counted too.

    ``refusal`` is the error if a rate limit refused the try, else None.
    """

    request: HttpRequest
    refusal: ApiError | None = None

    def clean(self) -> dict[str, Any]:
        email = normalize_email(self.cleaned_data.get("username") or "")
        try:
            count_use(
                limit=settings.PASSWORD_ADDRESS_LIMIT,
                kind="password-address",
                key=client_address(self.request),
            )
            count_use(limit=settings.PASSWORD_EMAIL_LIMIT, kind=_EMAIL, key=email)
        except ApiError as error:
            self.refusal = error
            self._record_failure(email, error.text)
            raise ValidationError(_explain(error), code=error.code) from error
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError as error:
            self._record_failure(email, str(error.messages[0]))
            raise
        if self.get_user() is not None:
            reset_uses(limit=settings.PASSWORD_EMAIL_LIMIT, kind=_EMAIL, key=email)
            signed_in = {"provider": "password"}
            record_event(EventKind.SIGN_IN_SUCCEEDED, actor=email, subject=email, after=signed_in)
        return cleaned

    def _record_failure(self, email: str, reason: str) -> None:
        # People type passwords into this field too: only an address is recorded.
        subject = known_address(email)
        record_refusal(
            EventKind.SIGN_IN_FAILED,
            subject=subject,
            credential=f"{subject} {network_of(client_address(self.request))}",
            reason=reason,
        )


def _explain(error: ApiError) -> str:
    if not isinstance(error, RateLimited):
        return "Nobody can sign in at the moment. Try again later."
    minutes = math.ceil(int(error.headers["Retry-After"]) / 60)
    return f"Too many tries. Try again in {minutes} minute{'s' if minutes > 1 else ''}."
