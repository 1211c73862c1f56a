"""Passwords and authenticator apps of staff."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value

if TYPE_CHECKING:
    from django.test import Client
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer

    from accounts.models import User

PASSWORD = "correct horse battery"


def by_password(client: Client, target: str = "/admin/") -> Answer:
    form = {"username": "ada@example.org", "password": PASSWORD, "next": target}
    return client.post("/admin/login/", form)


def add_totp(user: User) -> str:
    """Add an authenticator app and recovery codes; return the app's secret."""
    secret = str(generate_totp_secret())
    TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    return secret


def code_of(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))
