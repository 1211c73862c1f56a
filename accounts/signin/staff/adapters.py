"""What django-allauth asks the service when it signs staff in."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.stagekit import clear_login
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet
from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect
from django.utils.crypto import salted_hmac

from accounts.events import record_event
from accounts.models.events import EventKind
from accounts.signin.staff.sessions import is_freshly_proven, second_factors, ways_used
from tenantadmin.lib.core.request_context import current_network

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.models import User

NOT_STAFF = "Only active staff may sign in here."


def why_not_staff(user: User | None) -> str:
    """Return why the user may not enter the admin site, for the audit; empty if the user may."""
    if user is None:
        return "There is no user of this address."
    if not user.is_active:
        return "The user is deactivated."
    return "" if user.is_staff else "The user is not staff."


class StaffAccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """Signs in staff only. There is no sign-up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        return False

    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse | None:
        if not user.is_staff:
            clear_login(request)
            messages.error(request, NOT_STAFF)
            return redirect("admin:login")
        answer: HttpResponse | None = super().pre_login(request, user, **kwargs)
        return answer

    def login(self, request: HttpRequest, user: Any) -> None:
        """Open the session: everything that was asked for is proven."""
        with transaction.atomic():
            super().login(request, user)
            record_event(
                EventKind.SIGN_IN_SUCCEEDED,
                actor=user.email,
                subject=user.email,
                after=ways_used(request, user),
            )

    def get_client_ip(self, request: HttpRequest) -> str:  # noqa: ARG002
        return current_network()

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:  # noqa: ARG002
        return not is_freshly_proven(context.request)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Return the passkey first, and no password for users with a second factor: only that confirms."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        if not user.is_authenticated or not second_factors(user):
            return methods
        factors = [method for method in methods if method["id"] != "reauthenticate"]
        return sorted(factors, key=lambda method: method["id"] != "mfa_reauthenticate:webauthn")


class StaffMfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth is not typed
    """Encrypts the secrets of second factors in the database, with a key made of `SECRET_KEY`."""

    def encrypt(self, text: str) -> str:
        return _fernet().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _fernet().decrypt(encrypted_text.encode()).decode()


def _fernet() -> Fernet:
    key = salted_hmac("accounts.staff.second-factor", "", algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(key))
