"""Access tokens that were tampered with. Contract: Authentication."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.access.credentials import create_pat
from accounts.access.scopes import Scope
from accounts.access.tokens import current_keys, verify_access_token
from accounts.models import RefreshToken, User
from tenantadmin.conf.secrets import new_signing_key
from tenantadmin.lib.core.errors import InvalidToken
from tests import factories
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db
PATH = "/users/member@example.org"
EPOCH: Final = UUID(int=7)
SESSION: Final = 777


@pytest.fixture
def world(world: factories.World) -> factories.World:
    """The usual people; the member has the epoch `EPOCH` and the session `SESSION`."""
    User.objects.filter(pk=world.member.pk).update(epoch=EPOCH)
    world.member.refresh_from_db()
    RefreshToken.objects.create(pk=SESSION, user=world.member, digest=b"x" * 32, prefix="x")
    return world


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    all_claims = {
        "iss": "http://testserver",
        "aud": "tenant-admin",
        "sub": "member@example.org",
        "epoch": str(EPOCH),
        "sid": SESSION,
        "iat": now,
        "exp": now + 60,
        "jti": "x",
        "typ": "access",
        "role": "user",
        "scope": "",
        "tenants": [],
        "accounts": [],
        **changes,
    }
    return {name: value for name, value in all_claims.items() if value is not ...}


def sign(payload: Mapping[str, Any], *, key: Any = None, algorithm: str = "ES256", **header: Any) -> str:
    keys = current_keys()
    return jwt.encode(
        dict(payload),
        keys.signing_key if key is None else key,
        algorithm=algorithm,
        headers={"kid": keys.signing_kid, **header},
    )


def status_of(token: str) -> tuple[int, str]:
    answer = ApiClient(token).get(PATH)
    return answer.status_code, answer.json().get("error", "")


def test_the_untampered_token_is_good(world: factories.World) -> None:
    assert status_of(sign(claims())) == (200, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"iss": ...},
        {"aud": "another"},
        {"aud": ...},
        {"aud": ["x", "y"]},
        {"typ": "refresh"},
        {"typ": ...},
        {"sub": ...},
        {"sub": 7},
        {"sub": "unknown@example.org"},
        {"sub": "MEMBER@example.org"},
        {"exp": ...},
        {"exp": "tomorrow"},
        {"exp": 1e400},
        {"nbf": int(time.time()) + 3600},
        {"jti": ...},
        {"role": ...},
        {"role": 7},
        {"scope": ...},
        {"scope": ["users:read"]},
        {"scope": "everything"},
        {"tenants": ...},
        {"tenants": 7},
        {"tenants": [7]},
        {"tenants": ["x"]},
        {"accounts": ...},
        {"accounts": None},
        {"accounts": [7]},
        {"epoch": ...},
        {"epoch": 7},
        {"epoch": "seven"},
        {"epoch": str(UUID(int=8))},
        {"sid": ...},
        {"sid": None},
        {"sid": True},
        {"sid": str(SESSION)},
        {"sid": SESSION + 1},
        {"pat": 424242},
        {"pat": "one"},
        {"pat": None},
    ],
)
def test_a_claim_that_does_not_hold_is_a_401(world: factories.World, changes: dict[str, Any]) -> None:
    assert status_of(sign(claims(**changes))) == (401, "invalid_token")


def test_an_expired_token_says_so(world: factories.World) -> None:
    assert status_of(sign(claims(exp=int(time.time()) - 1))) == (401, "token_expired")


def test_no_other_algorithm_is_taken(world: factories.World) -> None:
    public = current_keys().signing_key.public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header = {"alg": "HS256", "typ": "JWT", "kid": current_keys().signing_kid}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims())]
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(b".".join(parts), pem)
    confused = b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()
    no_key: Any = None
    for token in (
        jwt.encode(claims(), no_key, algorithm="none", headers={"kid": current_keys().signing_kid}),
        confused,
        sign(claims(), key="s" * 64, algorithm="HS512"),
        sign(claims(), key=rsa.generate_private_key(public_exponent=65537, key_size=2048), algorithm="RS256"),
        sign(claims(), key=ec.generate_private_key(ec.SECP384R1()), algorithm="ES384"),
        sign(claims(), key=ec.generate_private_key(ec.SECP256R1())),
    ):
        assert status_of(token) == (401, "invalid_token")


@pytest.mark.parametrize(
    "kid", ["", "x", "../../etc/passwd", "' OR 1=1 --", "http://evil.example/jwks", "\x00"]
)
def test_a_kid_is_looked_up_and_nothing_else(world: factories.World, kid: str) -> None:
    assert status_of(sign(claims(), kid=kid)) == (401, "invalid_token")


def test_keys_in_the_header_are_not_looked_at(world: factories.World) -> None:
    mine = ec.generate_private_key(ec.SECP256R1())
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(mine.public_key()))
    tricks: list[dict[str, Any]] = [
        {"jwk": jwk},
        {"jku": "http://127.0.0.1:9/keys"},
        {"x5u": "http://127.0.0.1:9/chain"},
    ]
    for header in tricks:
        assert status_of(sign(claims(), key=mine, **header)) == (401, "invalid_token")


def test_a_previous_key_is_good_until_it_is_taken_out(world: factories.World, settings: Any) -> None:
    token = sign(claims())
    public = current_keys().signing_key.public_key()
    old = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()
    settings.JWT_PRIVATE_KEY = new_signing_key()
    assert status_of(token) == (401, "invalid_token")
    settings.JWT_PREVIOUS_PUBLIC_KEYS = old
    assert status_of(token)[0] == 200
    assert status_of(sign(claims()))[0] == 200
    assert len(ApiClient().get("/.well-known/jwks.json").json()["keys"]) == 2


@pytest.mark.parametrize(
    "token", ["", " ", "a.b", "a.b.c", "....", "é", "\x00", "x" * 10_000, "e30.e30.e30", "bnVsbA.e30.AA"]
)
def test_an_invalid_token_is_a_401(db: None, token: str) -> None:
    answer = ApiClient().get(PATH, Authorization=f"Bearer {token}")
    assert answer.status_code == 401


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_nothing_made_up_verifies(text: str) -> None:
    with pytest.raises(InvalidToken):
        verify_access_token(f"{text}.{text}.{text}")


def test_a_credential_in_the_address_is_refused(world: factories.World, anonymous: ApiClient) -> None:
    _, pat = create_pat(owner=world.platform_admin, name="x", scopes=[Scope.USERS_READ], tenants=["*"])
    token = factories.sign_in(world.member)
    for path in (f"{PATH}?access_token={token}", f"{PATH}?token={pat}"):
        assert anonymous.get(path).status_code == 401
        assert ApiClient(token).get(path).status_code == 400
    for path in ("/oauth/token", "/auth/logout"):
        answer = anonymous.post(f"{path}?pat={pat}", {"grant_type": "pat_exchange", "pat": pat, "token": pat})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
