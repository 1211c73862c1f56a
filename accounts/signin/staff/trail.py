"""Events of second factors. django-allauth, which adds and removes them, tells only by signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.signals import authenticator_added, authenticator_removed
from django.core.exceptions import ValidationError
from django.dispatch import receiver

from accounts.events import record_event, record_failed_sign_in
from accounts.models.events import EventKind

if TYPE_CHECKING:
    from allauth.mfa.models import Authenticator

    from accounts.models import User


class CodeForm(AuthenticateForm):  # type: ignore[misc]  # allauth is not typed
    """Takes a code of the authenticator app or a recovery code, and records a wrong one."""

    def clean_code(self) -> str:
        try:
            return str(super().clean_code())
        except ValidationError as error:
            is_wrong = error.code == "incorrect_code"
            reason = "The code is wrong." if is_wrong else "There were too many tries."
            record_failed_sign_in(self.user.email, way={"secondFactor": "code"}, reason=reason)
            raise


@receiver(authenticator_added)
def record_added(user: User, authenticator: Authenticator, **_: Any) -> None:
    record_event(
        EventKind.SECOND_FACTOR_ADDED,
        actor=user.email,
        subject=user.email,
        after={"type": authenticator.type},
    )


@receiver(authenticator_removed)
def record_removed(user: User, authenticator: Authenticator, **_: Any) -> None:
    before = {"type": authenticator.type}
    record_event(EventKind.SECOND_FACTOR_REMOVED, actor=user.email, subject=user.email, before=before)
