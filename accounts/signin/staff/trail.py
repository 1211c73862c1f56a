"""Events of proofs and second factors of staff. django-allauth tells of them by its forms and signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from allauth.account.forms import ReauthenticateForm as ReauthenticateByPasswordForm
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.signals import authenticator_added, authenticator_removed
from allauth.mfa.webauthn.forms import AddWebAuthnForm, AuthenticateWebAuthnForm, LoginWebAuthnForm
from django.core.exceptions import ValidationError
from django.dispatch import receiver

from accounts.events import record_event, record_failed_sign_in
from accounts.models.events import EventKind

if TYPE_CHECKING:
    from allauth.mfa.models import Authenticator

    from accounts.models import User


@contextmanager
def _failures_recorded(user: User | None, *, way: Mapping[str, str], wrong: str) -> Iterator[None]:
    """Record that a proof was refused, but not the proof. ``user`` is None if it is not known yet."""
    try:
        yield
    except ValidationError as error:
        is_wrong = error.code in {"incorrect_code", "incorrect_password"}
        reason = wrong if is_wrong else "There were too many tries."
        record_failed_sign_in(user.email if user else "", way=way, reason=reason)
        raise


@contextmanager
def _malformed_refused() -> Iterator[None]:
    """Refuse what is no response of a passkey. django-allauth expects its members."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise get_adapter().validation_error("incorrect_code") from error


class CodeForm(AuthenticateForm):  # type: ignore[misc]  # allauth is not typed
    """Takes a code of the authenticator app or a recovery code."""

    def clean_code(self) -> str:
        with _failures_recorded(self.user, way={"secondFactor": "code"}, wrong="The code is wrong."):
            return str(super().clean_code())


class ConfirmingCodeForm(ReauthenticateForm):  # type: ignore[misc]
    """Takes a code that confirms the sign-in before an act."""

    def clean_code(self) -> str:
        wrong = "The code that confirms the sign-in is wrong."
        with _failures_recorded(self.user, way={"secondFactor": "code"}, wrong=wrong):
            return str(super().clean_code())


class ConfirmingPasswordForm(ReauthenticateByPasswordForm):  # type: ignore[misc]
    """Takes the password that confirms the sign-in before an act."""

    def clean_password(self) -> str:
        wrong = "The password that confirms the sign-in is wrong."
        with _failures_recorded(self.user, way={"provider": "password"}, wrong=wrong):
            return str(super().clean_password())


class PasskeyForm(AuthenticateWebAuthnForm):  # type: ignore[misc]
    """Takes a passkey as the second factor."""

    way: ClassVar[Mapping[str, str]] = {"secondFactor": "webauthn"}
    wrong: ClassVar[str] = "The passkey is wrong."

    def clean_credential(self) -> Authenticator:
        with _failures_recorded(self.user, way=self.way, wrong=self.wrong), _malformed_refused():
            return super().clean_credential()


class AddedPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """Takes a new passkey."""

    def clean(self) -> dict[str, Any]:
        with _malformed_refused():
            return dict(super().clean())


class ConfirmingPasskeyForm(PasskeyForm):
    """Takes a passkey that confirms the sign-in before an act."""

    reauthenticated = True
    wrong = "The passkey that confirms the sign-in is wrong."


class PasskeySignInForm(PasskeyForm, LoginWebAuthnForm):  # type: ignore[misc]
    """Takes a passkey that says who signs in."""

    way = {"provider": "passkey"}  # noqa: RUF012  # see PasskeyForm


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
