"""The end of the redirect flow. Contract: GET /auth/callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.signin.flow import SignIn, SignInFailed, complete_sign_in
from accounts.signin.providers import fetch_identity
from accounts.signin.state import InvalidState, finish

if TYPE_CHECKING:
    from django.http import HttpRequest


def finish_sign_in(request: HttpRequest, *, state: str, browser: str, refused: bool) -> tuple[SignIn, str]:
    """Return the tokens of a sign-in and where it leads.

    ``refused`` tells that the provider sent an error instead of a code. Its state is used up either way.

    Raises:
        SignInFailed: the state does not hold, or the provider refused or failed.
        Forbidden: the email's domain may not sign in, or the user is deactivated.
        RedisError: Redis does not answer.
    """
    try:
        begun = finish(state, browser=browser)
    except InvalidState as error:
        raise SignInFailed(f"{error} Start again.") from error
    if refused:
        raise SignInFailed("The identity provider refused. Start again.")
    return complete_sign_in(fetch_identity(request, begun)), begun.redirect
