"""The password form of the admin site, with a delay that grows with each wrong password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.core.exceptions import ValidationError

from accounts.events import known_address, record_failed_sign_in
from accounts.limits import claim_try, count_use, forget_tries
from accounts.models import User
from accounts.signin.staff.adapters import why_not_staff
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.errors import ApiError, RateLimited
from tenantadmin.lib.core.hosts import client_address, network_of

if TYPE_CHECKING:
    from django.http import HttpRequest

_KIND: Final = "password"


class PasswordForm(AdminAuthenticationForm):
    """Counts every try before it checks the password, so that concurrent tries are counted too.

    Tries are counted for the email and the client's network together: strangers cannot keep the owner of a
    known email out. ``refusal`` is the error if a limit refused the try, else None.
    """

    error_messages = {  # noqa: RUF012  # as Django declares it
        **AdminAuthenticationForm.error_messages,
        "invalid_login": "The email or the password is wrong, or the user may not open this site.",
    }
    request: HttpRequest
    refusal: ApiError | None = None

    def clean(self) -> dict[str, Any]:
        network = network_of(client_address(self.request))
        email = normalize_email(self.cleaned_data.get("username") or "")
        key = f"{network} {email}"
        try:
            count_use(limit=settings.PASSWORD_ADDRESS_LIMIT, kind="password-address", key=network)
            claim_try(kind=_KIND, key=key)
        except ApiError as error:
            self.refusal = error
            self._record_failure(email, error.why)
            raise ValidationError(_explain(error), code=error.code) from error
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            self._record_failure(email)
            raise
        if self.get_user() is not None:
            forget_tries(kind=_KIND, key=key)
        return cleaned

    def _record_failure(self, email: str, reason: str = "") -> None:
        # People type passwords into this field too: only an address is recorded.
        subject = known_address(email)
        if not reason:
            user = User.objects.filter(email=subject).first()
            reason = why_not_staff(user) if subject else "What was typed is no email address."
        record_failed_sign_in(
            subject, way={"provider": "password"}, reason=reason or "The password is wrong."
        )


def _explain(error: ApiError) -> str:
    if not isinstance(error, RateLimited):
        return "Sign-in with a password is not possible at the moment. Try again later."
    return f"Too many tries. Try again in {error.headers['Retry-After']} seconds, or sign in another way."
