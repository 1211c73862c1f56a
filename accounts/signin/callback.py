"""The end of the redirect flow. Contract: GET /auth/callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.events import known_address, sign_in_failures_recorded
from accounts.signin.flow import SignIn, SignInFailed, complete_sign_in
from accounts.signin.providers import fetch_identity
from accounts.signin.state import InvalidState, take_pending

if TYPE_CHECKING:
    from django.http import HttpRequest


def finish_sign_in(request: HttpRequest, *, state: str, browser: str, refused: bool) -> tuple[SignIn, str]:
    """Return the tokens of a sign-in and the address to redirect to.

    ``refused`` is true if the provider sent an error instead of a code. The state is used up in both cases.

    Raises:
        SignInFailed: the state is invalid, or the provider refused or failed.
        Forbidden: the email's domain may not sign in, or the user is deactivated.
        RedisError: Redis does not answer.
    """
    with sign_in_failures_recorded():
        try:
            pending = take_pending(state, browser=browser)
        except InvalidState as error:
            raise SignInFailed(f"{error} Start again.") from error
        if refused:
            raise SignInFailed("The identity provider refused. Start again.")
        identity = fetch_identity(request, pending)
    with sign_in_failures_recorded(known_address(identity.email)):
        return complete_sign_in(identity), pending.redirect
