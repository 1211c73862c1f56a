"""The ``state`` of the redirect flow: signed, bound to one browser, used once. Contract: GET /auth/callback.

The text is base64 of the JSON ``{redirect, ts, nonce, sig}``. The secrets (the PKCE verifier and the OpenID
nonce) are stored in Redis. Their key is a hash of the state's nonce and the browser's cookie, so another
browser cannot use the state.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac
from redis import Redis

if TYPE_CHECKING:
    from django.http import HttpResponse

BROWSER_COOKIE: Final = "signin_browser"
_SALT: Final = "accounts.signin.state"
_KEY: Final = "tenantadmin:signin:"
_BROWSER: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MAX_STATE: Final = 16_384
_TIMEOUT_SECONDS: Final = 2.0


class InvalidState(ValueError):
    """The state is malformed, forged, too old, from another browser, or already used."""


class Purpose(StrEnum):
    """What a sign-in at a provider is for: tokens, the admin site, or linking an identity to its user."""

    TOKENS = "tokens"
    STAFF = "staff"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A started sign-in, as the callback needs it. ``redirect`` is the address to go to afterwards.

    ``user_id`` is the user that asked to link an identity.
    """

    provider: str
    redirect: str
    verifier: str
    nonce: str
    purpose: str = Purpose.TOKENS
    user_id: int | None = None


def new_browser_id() -> str:
    """Return a random value for the cookie that binds a sign-in to one browser."""
    return secrets.token_urlsafe(32)


def is_browser_id(value: str) -> bool:
    """Return True if a cookie's value has the form of a browser id. Several tabs share one id."""
    return _BROWSER.fullmatch(value) is not None


def bind_browser(response: HttpResponse, browser: str) -> None:
    """Set the cookie that binds a started sign-in to this browser."""
    response.set_cookie(
        BROWSER_COOKIE,
        browser,
        max_age=settings.SIGNIN_STATE_SECONDS,
        path=reverse("callback").rpartition("/")[0],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def save_pending(pending: PendingSignIn, *, browser: str) -> str:
    """Store a started sign-in for `SIGNIN_STATE_SECONDS` and return its ``state``.

    Raises:
        RedisError: it cannot be stored.
    """
    handle = secrets.token_urlsafe(24)
    redis_of(settings.REDIS_URL).set(
        _key(handle, browser), json.dumps(asdict(pending)), ex=settings.SIGNIN_STATE_SECONDS
    )
    return encode_state(redirect=pending.redirect, timestamp_ms=int(time.time() * 1000), nonce=handle)


def take_pending(state: str, *, browser: str) -> PendingSignIn:
    """Return the sign-in that ``state`` belongs to, and delete it: a state is valid only once.

    Raises:
        InvalidState: the state is not valid.
        RedisError: Redis does not answer.
    """
    handle = decode_state(state, max_age_seconds=settings.SIGNIN_STATE_SECONDS)
    if not is_browser_id(browser):
        raise InvalidState("The sign-in was pending in another browser.")
    stored: Any = redis_of(settings.REDIS_URL).getdel(_key(handle, browser))
    if stored is None:
        raise InvalidState("The sign-in was pending in another browser, or is over.")
    return PendingSignIn(**json.loads(stored))


def encode_state(*, redirect: str, timestamp_ms: int, nonce: str) -> str:
    """Return the state's text, without ``+`` and ``/``: standard and URL-safe base64 both decode it."""
    signature = _sign(redirect, timestamp_ms, nonce)
    text = json.dumps({"redirect": redirect, "ts": timestamp_ms, "nonce": nonce, "sig": signature})
    for character in ">?~":
        # The only ASCII characters that can make a + or / in base64.
        text = text.replace(character, f"\\u{ord(character):04x}")
    return base64.b64encode(text.encode("ascii")).decode("ascii")


def decode_state(state: str, *, max_age_seconds: int) -> str:
    """Return the nonce of a state that this service signed within ``max_age_seconds``.

    Raises:
        InvalidState: the state is malformed, forged or too old.
    """
    if len(state) > _MAX_STATE:
        raise InvalidState("The state is too long.")
    try:
        fields = json.loads(base64.b64decode(state, validate=True))
        redirect, timestamp, nonce = fields["redirect"], fields["ts"], fields["nonce"]
        expected = _sign(redirect, timestamp, nonce)
        is_ours = isinstance(nonce, str) and constant_time_compare(str(fields["sig"]), expected)
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidState("The state is malformed.") from error
    if not is_ours or type(timestamp) is not int:
        raise InvalidState("The state is not of this service.")
    if not 0 <= time.time() * 1000 - timestamp <= max_age_seconds * 1000:
        raise InvalidState("The sign-in took too long.")
    return str(nonce)


def _sign(redirect: Any, timestamp: Any, nonce: Any) -> str:
    return salted_hmac(_SALT, json.dumps([redirect, timestamp, nonce]), algorithm="sha256").hexdigest()


def _key(handle: str, browser: str) -> str:
    return _KEY + hashlib.sha256(f"{handle}.{browser}".encode()).hexdigest()


@lru_cache(maxsize=8)
def redis_of(url: str) -> Redis:
    """Return a client of the server that holds what sign-ins wait for."""
    return Redis.from_url(url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS)
