"""Access tokens: JWTs signed with ES256. The Gateway verifies them offline with ``/.well-known/jwks.json``.

A key's id is its RFC 7638 thumbprint, so key rotation needs no table. Every process publishes and accepts the
next public key before any process signs with it, and the old ones until their tokens have expired.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

import jwt
import msgspec
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import (
    ExpiredTokenError,
    TokenBackendError,
    TokenBackendExpiredToken,
    TokenError,
)
from rest_framework_simplejwt.tokens import Token

from accounts.access.principal import WILDCARD, Claims
from accounts.access.scopes import Scope, with_included
from tenantadmin.conf.secrets import read_public_keys, read_signing_key
from tenantadmin.lib.core.errors import InvalidToken, TokenExpired
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )

ALGORITHM: Final = "ES256"


class CurvePoint(JsonStruct):
    """The members of a public key that its thumbprint is made of (RFC 7638)."""

    kty: Literal["EC"]
    crv: Literal["P-256"]
    x: str
    y: str


class JsonWebKey(CurvePoint):
    """A public key (RFC 7517) of access tokens."""

    kid: str
    use: Literal["sig"]
    alg: Literal["ES256"]


class JsonWebKeySet(JsonStruct):
    """All keys that verify access tokens; the token's `kid` names one."""

    keys: list[JsonWebKey]


@dataclass(frozen=True, slots=True)
class KeySet:
    """The private key that signs, and all accepted public keys by ``kid``."""

    signing_kid: str
    signing_key: EllipticCurvePrivateKey
    public_keys: dict[str, EllipticCurvePublicKey]

    def as_jwks(self) -> JsonWebKeySet:
        """Return the public keys, the signing one first."""
        return JsonWebKeySet(
            keys=[
                JsonWebKey.of(_numbers_of(key), kid=kid, use="sig", alg=ALGORITHM)
                for kid, key in self.public_keys.items()
            ]
        )


@cache
def load_keys(private_pem: str, previous_pems: str, next_pems: str) -> KeySet:
    """Return the key set of a private key, and of the previous and the next public keys, all PEM.

    Raises:
        ImproperlyConfigured: a key is not a P-256 key in PEM.
    """
    try:
        private = read_signing_key(private_pem)
        others = read_public_keys(f"{previous_pems}\n{next_pems}")
    except ValueError as error:
        raise ImproperlyConfigured(
            f"A key of JWT_PRIVATE_KEY, JWT_PREVIOUS_PUBLIC_KEYS or JWT_NEXT_PUBLIC_KEYS is {error}."
        ) from error
    accepted = {thumbprint(key): key for key in (private.public_key(), *others)}
    return KeySet(thumbprint(private.public_key()), private, accepted)


def current_keys() -> KeySet:
    """Return the key set that the settings configure."""
    return load_keys(
        settings.JWT_PRIVATE_KEY, settings.JWT_PREVIOUS_PUBLIC_KEYS, settings.JWT_NEXT_PUBLIC_KEYS
    )


def _numbers_of(key: EllipticCurvePublicKey) -> CurvePoint:
    numbers = key.public_numbers()
    x, y = (
        base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()
        for number in (numbers.x, numbers.y)
    )
    return CurvePoint(kty="EC", crv="P-256", x=x, y=y)


def thumbprint(key: EllipticCurvePublicKey) -> str:
    """Return the id of a key (RFC 7638)."""
    canonical = json.dumps(
        msgspec.to_builtins(_numbers_of(key)), sort_keys=True, separators=(",", ":")
    ).encode()
    return base64.urlsafe_b64encode(hashlib.sha256(canonical).digest()).rstrip(b"=").decode()


class RotatingTokenBackend(TokenBackend):
    """simplejwt's backend, with a ``kid`` in the header that selects the key."""

    def get_verifying_key(self, token: Any) -> Any:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
        except jwt.InvalidTokenError as error:
            raise TokenBackendError("Token is invalid") from error
        key = current_keys().public_keys.get(kid) if isinstance(kid, str) else None
        if key is None:
            raise TokenBackendError("Token is signed with an unknown key")
        return key

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """Verify as simplejwt does, but ignore ``iat``: another host's clock may be slightly ahead."""
        try:
            return jwt.decode(
                token,
                self.get_verifying_key(token),
                algorithms=[self.algorithm],
                audience=self.audience,
                issuer=self.issuer,
                options={"verify_signature": verify, "verify_iat": False},
            )
        except jwt.ExpiredSignatureError as error:
            raise TokenBackendExpiredToken("Token is expired") from error
        except (jwt.InvalidTokenError, ValueError, TypeError) as error:
            raise TokenBackendError("Token is invalid") from error

    def encode(self, payload: dict[str, Any]) -> str:
        keys = current_keys()
        return jwt.encode(
            {**payload, "aud": self.audience, "iss": self.issuer},
            keys.signing_key,
            algorithm=self.algorithm,
            headers={"kid": keys.signing_kid},
        )


class AccessToken(Token):
    """The service's own access token; ``typ`` is ``access``."""

    token_type = "access"  # noqa: S105
    lifetime = settings.ACCESS_TOKEN_LIFETIME

    @property
    def token_backend(self) -> TokenBackend:
        return _backend(settings.PUBLIC_BASE_URL)

    def get_token_backend(self) -> TokenBackend:
        return self.token_backend


@cache
def _backend(issuer: str) -> RotatingTokenBackend:
    return RotatingTokenBackend(ALGORITHM, audience=settings.JWT_AUDIENCE, issuer=issuer)


def mint_access_token(
    *,
    subject: str,
    epoch: UUID,
    role: str,
    scopes: Iterable[Scope],
    tenants: Iterable[str],
    accounts: Iterable[str],
    session: int | None = None,
    personal_access_token: int | None = None,
    secret_number: int = 1,
    ends_at: dt.datetime | None = None,
    tos_required: bool = False,
    is_staff: bool = False,
) -> str:
    """Return a signed access token with the claims of the contract (Authentication, 3).

    ``session`` or ``personal_access_token`` is the id of the row that the token is minted from. It expires at
    ``ends_at`` at the latest. ``is_staff`` marks a session that staff began to look at a customer's tenant.
    """
    token = AccessToken()
    token["sub"] = subject
    token["epoch"] = str(epoch)
    token["role"] = role
    token["scope"] = " ".join(sorted(scopes))
    token["tenants"] = sorted(tenants)
    token["accounts"] = sorted(accounts)
    if session is not None:
        token["sid"] = session
    if personal_access_token is not None:
        token["pat"] = personal_access_token
        if secret_number > 1:
            token["pat_secret"] = secret_number
    if ends_at is not None:
        token["exp"] = min(token["exp"], int(ends_at.timestamp()))
    if tos_required:
        token["tos_required"] = True
    if is_staff:
        token["staff"] = True
    return str(token)


def verify_access_token(text: str) -> Claims:
    """Verify signature, algorithm, key, issuer, audience, type and expiry.

    Raises:
        TokenExpired: the token has expired.
        InvalidToken: the token is invalid in any other way.
    """
    try:
        payload = AccessToken(text).payload  # type: ignore[arg-type]
    except ExpiredTokenError as error:
        raise TokenExpired from error
    except TokenError as error:
        raise InvalidToken from error
    try:
        pat = None if "pat" not in payload else _row_id(payload["pat"])
        return Claims(
            subject=_text(payload["sub"]),
            token_id=_text(payload["jti"]),
            expires_at=int(payload["exp"]),
            role=_text(payload["role"]),
            scopes=with_included(Scope(name) for name in _text(payload["scope"]).split()),
            tenants=_ids(payload["tenants"]),
            accounts=_ids(payload["accounts"]),
            epoch=UUID(_text(payload["epoch"])),
            has_wildcard=WILDCARD in (*payload["tenants"], *payload["accounts"]),
            session=None if pat is not None else _row_id(payload["sid"]),
            personal_access_token=pat,
            tos_required=payload.get("tos_required") is True,
            is_staff=payload.get("staff") is True,
            secret_number=_row_id(payload.get("pat_secret", 1)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidToken from error


def verified_subject(text: str) -> str:
    """Return the subject of a token that this service signed, expired or not; an empty text for any other."""
    try:
        key = _backend(settings.PUBLIC_BASE_URL).get_verifying_key(text)
        payload = jwt.decode(
            text,
            key,
            algorithms=[ALGORITHM],
            options={"verify_exp": False, "verify_iat": False, "verify_aud": False},
        )
        return _text(payload["sub"])
    except (TokenBackendError, jwt.InvalidTokenError, KeyError, TypeError, ValueError):
        return ""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _ids(names: Iterable[Any]) -> frozenset[UUID]:
    return frozenset(UUID(_text(name)) for name in names if name != WILDCARD)


def _row_id(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value
