"""The end of the redirect flow. Contract: GET /auth/callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.events import known_address, sign_in_failures_recorded
from accounts.signin.flow import Device, SignIn, SignInFailed, complete_sign_in
from accounts.signin.providers import fetch_identity
from accounts.signin.state import InvalidState, take_pending

if TYPE_CHECKING:
    from django.http import HttpRequest

    from accounts.signin.flow import Identity
    from accounts.signin.state import PendingSignIn


def take_sign_in(*, state: str, browser: str, provider: str | None) -> PendingSignIn:
    """Return the started sign-in that ``state`` belongs to, and use it up.

    ``provider`` is the one whose address was called, or None for the address that all of them may use.

    Raises:
        SignInFailed: the state is invalid, or of a sign-in at another provider.
        RedisError: Redis does not answer.
    """
    with sign_in_failures_recorded(way=provider or ""):
        try:
            pending = take_pending(state, browser=browser)
        except InvalidState as error:
            raise SignInFailed(f"{error} Start again.", why=str(error)) from error
        if provider not in {None, pending.provider}:
            why = "The sign-in was begun at another identity provider."
            raise SignInFailed(f"{why} Start again.", why=why)
    return pending


def prove_identity(request: HttpRequest, pending: PendingSignIn, *, refused: bool) -> Identity:
    """Return who has signed in at the provider. ``refused`` is true if it sent an error instead of a code.

    Raises:
        SignInFailed: the provider refused or failed.
    """
    with sign_in_failures_recorded(way=pending.provider):
        if refused:
            why = "The identity provider refused."
            raise SignInFailed(f"{why} Start again.", why=why)
        return fetch_identity(request, pending)


def finish_sign_in(request: HttpRequest, pending: PendingSignIn, *, refused: bool, device: Device) -> SignIn:
    """Return the tokens of a sign-in.

    Raises:
        SignInFailed: the provider refused or failed, or the user of the address has another identity.
        Forbidden: the email's domain may not sign in, or the user is deactivated.
    """
    identity = prove_identity(request, pending, refused=refused)
    with sign_in_failures_recorded(known_address(identity.email), way=pending.provider):
        return complete_sign_in(identity, device)
