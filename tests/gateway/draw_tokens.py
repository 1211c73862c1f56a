"""Draw the vectors of access tokens: each is right in all but one respect, or right.

The keys are for these files alone. Signatures are deterministic (RFC 6979), so that the file is, too.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

#: Seconds since 1970, at which the tokens are verified. Clocks may differ by this many seconds.
NOW: Final = 1_767_225_600
LEEWAY: Final = 10
ISSUER: Final = "https://tas.example.org"
TENANT: Final = "11111111-2222-4333-8444-555555555555"
OTHER: Final = "99999999-2222-4333-8444-555555555555"

_KEYS: Final = {
    kid: ec.derive_private_key(secret, ec.SECP256R1()) for kid, secret in [("old", 71), ("new", 72)]
}
_STRANGER: Final = ec.derive_private_key(73, ec.SECP256R1())
_HEADER: Final[dict[str, Any]] = {"alg": "ES256", "typ": "JWT", "kid": "new"}
_CLAIMS: Final[dict[str, Any]] = {
    "iss": ISSUER,
    "aud": "tenant-admin",
    "sub": "ann@example.org",
    "iat": NOW - 60,
    "exp": NOW + 3540,
    "jti": "0123456789abcdef",
    "typ": "access",
    "role": "user",
    "scope": "config:read logs:query",
    "tenants": [TENANT],
    "accounts": [],
}


def draw_tokens() -> dict[str, Any]:
    return {
        "now": NOW,
        "leewaySeconds": LEEWAY,
        "issuer": ISSUER,
        "tenant": TENANT,
        "jwks": {"keys": [_public(kid) for kid in ("new", "old")]},
        "vectors": [
            {"name": name, "token": token, "userName": user}
            for name, token, user in [*_accepted(), *_refused()]
        ],
    }


def _accepted() -> list[tuple[str, str, str | None]]:
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "a token of a person": ({}, {}),
        "signed with the previous key": ({"kid": "old"}, {}),
        "all tenants": ({}, {"tenants": ["*"]}),
        "several tenants": ({}, {"tenants": [OTHER, TENANT]}),
        "the audience is one of a list": ({}, {"aud": ["other", "tenant-admin"]}),
        "issued in the future, by another clock": ({}, {"iat": NOW + 90}),
        "without iat": ({}, {"iat": None}),
        "expired within the leeway": ({}, {"exp": NOW - LEEWAY + 1}),
        "an unknown claim": ({}, {"colour": "green"}),
        "an unknown member of the header": ({"x": 1}, {}),
        "tos_required is false": ({}, {"tos_required": False}),
        "a user name that is not ASCII": ({}, {"sub": "zoë@example.org"}),
    }
    return [
        (name, _sign(header, claims), (_CLAIMS | claims)["sub"]) for name, (header, claims) in cases.items()
    ]


def _refused() -> list[tuple[str, str, str | None]]:
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "expired before the leeway": ({}, {"exp": NOW - LEEWAY - 1}),
        "without exp": ({}, {"exp": None}),
        "exp is a text": ({}, {"exp": "tomorrow"}),
        "another issuer": ({}, {"iss": "https://evil.example.org"}),
        "the issuer with a slash": ({}, {"iss": ISSUER + "/"}),
        "without an issuer": ({}, {"iss": None}),
        "another audience": ({}, {"aud": "billing"}),
        "without an audience": ({}, {"aud": None}),
        "a refresh token": ({}, {"typ": "refresh"}),
        "without typ": ({}, {"typ": None}),
        "another tenant": ({}, {"tenants": [OTHER]}),
        "no tenant": ({}, {"tenants": []}),
        "without tenants": ({}, {"tenants": None}),
        "tenants is a text that contains the id": ({}, {"tenants": f"x{TENANT}*"}),
        "new terms of service": ({}, {"tos_required": True}),
        "without a subject": ({}, {"sub": None}),
        "an unknown key": ({"kid": "newest"}, {}),
        "without a key": ({"kid": None}, {}),
    }
    drawn = [(name, _sign(header, claims)) for name, (header, claims) in cases.items()]
    whole = _sign({}, {})
    head, body, signature = whole.split(".")
    drawn += [
        ("signed by a stranger under our key's id", _sign({}, {}, key=_STRANGER)),
        ("signed with the other key", _sign({"kid": "old"}, {}, key=_KEYS["new"])),
        ("no algorithm", f"{_encode(_HEADER | {'alg': 'none'})}.{body}."),
        ("an HMAC with the public key as its secret", _hmac_with_public_key()),
        ("the algorithm of another curve", _sign({"alg": "ES384"}, {})),
        ("without a signature", f"{head}.{body}."),
        ("two parts", f"{head}.{body}"),
        (
            "other claims under the same signature",
            f"{head}.{_encode(_CLAIMS | {'tenants': ['*']})}.{signature}",
        ),
        ("a signature of zeros", f"{head}.{body}.{_base64(bytes(64))}"),
        ("a signature in DER", f"{head}.{body}.{_base64(_der(_KEYS['new'], f'{head}.{body}'))}"),
        ("claims that are no object", _sign_text(_encode(_HEADER), _base64(b"[]"), _KEYS["new"])),
        ("no token", "tas_pat_0000000000000000000000000000000000000000000"),
        ("an empty text", ""),
    ]
    return [(name, token, None) for name, token in drawn]


def _sign(
    header: dict[str, Any], claims: dict[str, Any], *, key: ec.EllipticCurvePrivateKey | None = None
) -> str:
    """Return a token with changes of the header and the claims. None leaves a member out."""
    merged = [
        {name: value for name, value in part.items() if value is not None}
        for part in (_HEADER | header, _CLAIMS | claims)
    ]
    kid = merged[0].get("kid", "")
    return _sign_text(_encode(merged[0]), _encode(merged[1]), key or _KEYS.get(kid, _KEYS["new"]))


def _sign_text(head: str, body: str, key: ec.EllipticCurvePrivateKey) -> str:
    r, s = decode_dss_signature(_der(key, f"{head}.{body}"))
    return f"{head}.{body}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _der(key: ec.EllipticCurvePrivateKey, text: str) -> bytes:
    return key.sign(text.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def _hmac_with_public_key() -> str:
    text = f"{_encode(_HEADER | {'alg': 'HS256'})}.{_encode(_CLAIMS)}"
    mac = hmac.HMAC(json.dumps(_public("new")).encode(), hashes.SHA256())
    mac.update(text.encode())
    return f"{text}.{_base64(mac.finalize())}"


def _public(kid: str) -> dict[str, str]:
    numbers = _KEYS[kid].public_key().public_numbers()
    point = {
        name: _base64(number.to_bytes(32, "big")) for name, number in (("x", numbers.x), ("y", numbers.y))
    }
    return {"kty": "EC", "crv": "P-256", **point, "kid": kid, "use": "sig", "alg": "ES256"}


def _encode(value: Any) -> str:
    return _base64(json.dumps(value).encode())


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
