"""Access tokens and the keys that sign them. Contract: Authentication, 3; GET /.well-known/jwks.json.

tests/accounts/test_tokens_forged.py tampers with tokens, tests/accounts/test_tokens.py changes the keys.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from rest_framework_simplejwt.exceptions import TokenBackendError

from accounts.access.principal import Claims
from accounts.access.scopes import Scope
from accounts.access.tokens import (
    AccessToken,
    KeySet,
    current_keys,
    load_keys,
    mint_access_token,
    thumbprint,
    verified_subject,
    verify_access_token,
)
from tenantadmin.conf.secrets import new_signing_key, read_signing_key
from tenantadmin.lib.core.errors import InvalidToken, TokenExpired

EPOCH: Final = UUID(int=7)
TENANT, ACCOUNT = UUID(int=1), UUID(int=2)
ADA: Final = "ada@example.org"
#: The elliptic key of RFC 7517, appendix A.1, and its thumbprint.
X: Final = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
Y: Final = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
THUMBPRINT: Final = "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s"


def mint(**changes: Any) -> str:
    plain = {"subject": ADA, "epoch": EPOCH, "role": "user", "scopes": (), "tenants": (), "accounts": ()}
    return mint_access_token(**{**plain, **changes})


def payload_of(text: str) -> dict[str, Any]:
    return jwt.decode(text, options={"verify_signature": False})


def sign(payload: dict[str, Any], *, key: Any = None, **header: Any) -> str:
    keys = current_keys()
    headers = {"kid": keys.signing_kid, **header}
    return jwt.encode(payload, key or keys.signing_key, algorithm="ES256", headers=headers)


def public_pem(private_pem: str) -> str:
    public = read_signing_key(private_pem).public_key()
    return public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def kid_of(private_pem: str) -> str:
    return thumbprint(read_signing_key(private_pem).public_key())


def known_key() -> ec.EllipticCurvePublicKey:
    x, y = (int.from_bytes(base64.urlsafe_b64decode(f"{number}="), "big") for number in (X, Y))
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def another_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def test_a_key_is_published_with_its_thumbprint_as_its_id() -> None:
    key = known_key()
    assert thumbprint(key) == THUMBPRINT
    keys = KeySet("x", another_key(), {THUMBPRINT: key})
    assert msgspec.to_builtins(keys.as_jwks()) == {
        "keys": [
            {"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": THUMBPRINT, "use": "sig", "alg": "ES256"}
        ]
    }


def test_the_signing_key_comes_first_then_the_previous_and_the_next_ones(settings: Any) -> None:
    private, *others = [new_signing_key() for _ in range(3)]
    settings.JWT_PRIVATE_KEY = private
    settings.JWT_PREVIOUS_PUBLIC_KEYS, settings.JWT_NEXT_PUBLIC_KEYS = map(public_pem, others)
    keys = current_keys()
    assert keys.signing_kid == kid_of(private)
    assert thumbprint(keys.signing_key.public_key()) == kid_of(private)
    assert list(keys.public_keys) == [kid_of(pem) for pem in (private, *others)]
    assert [thumbprint(key) for key in keys.public_keys.values()] == list(keys.public_keys)


def test_a_key_that_is_none_is_a_fault_of_the_configuration() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        load_keys("x", "", "")
    variables = "JWT_PRIVATE_KEY, JWT_PREVIOUS_PUBLIC_KEYS or JWT_NEXT_PUBLIC_KEYS"
    assert str(caught.value) == f"A key of {variables} is not a private key in PEM."


def test_a_token_has_its_subject_and_audience() -> None:
    text = mint(
        role="admin",
        scopes=[Scope.USERS_READ, Scope.CONFIG_READ],
        tenants=["b", "a"],
        accounts=["d", "c"],
        session=3,
        tos_required=True,
    )
    header = jwt.get_unverified_header(text)
    assert header == {"alg": "ES256", "typ": "JWT", "kid": current_keys().signing_kid}
    payload = payload_of(text)
    assert payload.pop("exp") - payload.pop("iat") == 3600
    assert len(payload.pop("jti")) == 32
    assert payload == {
        "iss": "http://testserver",
        "aud": "tenant-admin",
        "typ": "access",
        "sub": ADA,
        "epoch": str(EPOCH),
        "role": "admin",
        "scope": "config:read users:read",
        "tenants": ["a", "b"],
        "accounts": ["c", "d"],
        "sid": 3,
        "tos_required": True,
    }


def test_a_minted_token_is_verified() -> None:
    text = mint(
        role="guest",
        scopes=[Scope.USERS_READ, Scope.CONFIG_READ],
        tenants=[str(TENANT)],
        accounts=[str(ACCOUNT)],
        session=3,
    )
    payload = payload_of(text)
    assert verify_access_token(text) == Claims(
        subject=ADA,
        token_id=payload["jti"],
        expires_at=payload["exp"],
        role="guest",
        scopes=frozenset({Scope.USERS_READ, Scope.CONFIG_READ}),
        tenants=frozenset({TENANT}),
        accounts=frozenset({ACCOUNT}),
        epoch=EPOCH,
        has_wildcard=False,
        session=3,
        personal_access_token=None,
        tos_required=False,
    )
    assert "tos_required" not in payload


def test_a_token_is_of_a_session_or_of_a_pat() -> None:
    of_session = verify_access_token(mint(session=3, tos_required=True))
    assert (of_session.session, of_session.personal_access_token, of_session.is_sign_in) == (3, None, True)
    assert of_session.tos_required
    text = mint(personal_access_token=5)
    assert "sid" not in payload_of(text)
    of_pat = verify_access_token(text)
    assert (of_pat.session, of_pat.personal_access_token, of_pat.is_sign_in) == (None, 5, False)
    both = verify_access_token(mint(personal_access_token=5, session=3))
    assert (both.session, both.personal_access_token) == (None, 5)
    with pytest.raises(InvalidToken):
        verify_access_token(mint())


@pytest.mark.parametrize("field", ["tenants", "accounts"])
def test_a_wildcard_is_no_id(field: str) -> None:
    claims = verify_access_token(mint(session=3, **{field: ["*", str(TENANT)]}))
    assert claims.has_wildcard
    assert getattr(claims, field) == {TENANT}
    assert len(claims.tenants | claims.accounts) == 1


def test_only_the_term_that_is_true_demands_the_terms() -> None:
    payload = payload_of(mint(session=3))
    for value, is_required in ((True, True), (False, False), (1, False), ("true", False)):
        assert verify_access_token(sign({**payload, "tos_required": value})).tos_required is is_required


def test_an_expired_token_is_told_from_one_that_is_not_valid() -> None:
    payload = payload_of(mint(session=3))
    with pytest.raises(TokenExpired):
        verify_access_token(sign({**payload, "exp": int(time.time()) - 1}))
    for text in ("x", "a.b.c", sign(payload, kid="x"), sign(payload, key=another_key())):
        with pytest.raises(InvalidToken):
            verify_access_token(text)


def test_another_hosts_clock_may_be_ahead() -> None:
    ahead = {**payload_of(mint(session=3)), "iat": int(time.time()) + 60}
    assert verify_access_token(sign(ahead)).subject == ADA
    assert verified_subject(sign(ahead)) == ADA


def backend_of_tokens() -> Any:
    """Return simplejwt's backend. Its types want a token where it takes the text."""
    return AccessToken().token_backend


def test_the_backend_verifies_unless_told_otherwise() -> None:
    payload = payload_of(mint(session=3))
    forged = sign(payload, key=another_key())
    backend = backend_of_tokens()
    assert backend.decode(forged, verify=False) == payload
    for text in (forged, sign(payload, kid="x")):
        with pytest.raises(TokenBackendError):
            backend.decode(text)


def test_a_key_that_is_not_published_verifies_nothing() -> None:
    text = sign(payload_of(mint(session=3)), kid="x")
    with pytest.raises(TokenBackendError, match=r"^Token is signed with an unknown key$"):
        backend_of_tokens().get_verifying_key(text)


def test_a_refused_token_that_the_service_signed_has_a_subject() -> None:
    payload = payload_of(mint(session=3))
    for changes in ({}, {"exp": 1}, {"aud": "x"}, {"iss": "x"}):
        assert verified_subject(sign({**payload, **changes})) == ADA
    for text in (
        "x",
        sign(payload, kid="x"),
        sign(payload, key=another_key()),
        sign({**payload, "sub": 7}),
        sign({name: value for name, value in payload.items() if name != "sub"}),
        f"{sign(payload)}x",
    ):
        assert verified_subject(text) == ""


@pytest.mark.parametrize("kid", [7, None, ["x"], {}])
def test_a_key_id_that_is_no_text_is_refused(kid: object) -> None:
    header = json.dumps({"alg": "ES256", "kid": kid}).encode()
    text = ".".join([base64.urlsafe_b64encode(header).rstrip(b"=").decode(), *mint().split(".")[1:]])
    with pytest.raises(InvalidToken):
        verify_access_token(text)
    assert verified_subject(text) == ""


ROOT: Final = Path(__file__).parents[2]
#: Prints a token of its own, then for each line of its input whether it accepts that token.
_PROCESS: Final = """
import sys, uuid
import django
django.setup()
from accounts.access.tokens import mint_access_token, verify_access_token
from tenantadmin.lib.core.errors import InvalidToken
epoch, of = uuid.uuid4(), dict(subject="a@example.org", role="user", scopes=[], tenants=[], accounts=[])
print(mint_access_token(epoch=epoch, session=1, **of), flush=True)
for line in sys.stdin:
    try:
        verify_access_token(line.strip())
    except InvalidToken:
        print("refused", flush=True)
    else:
        print("accepted", flush=True)
"""


class Process:
    """A process of the service with keys of its own."""

    def __init__(self, **keys: str) -> None:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("JWT_")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROCESS],
            cwd=ROOT,
            env={**environment, **keys, "DJANGO_SETTINGS_MODULE": "tests.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.token = self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return str(self._process.stdout.readline()).strip()

    def answer(self, token: str) -> str:
        assert self._process.stdin is not None
        print(token, file=self._process.stdin, flush=True)
        return self._read()

    def close(self) -> None:
        self._process.communicate(timeout=30)


def step(*, private: str, **variables: str) -> tuple[str, dict[str, str]]:
    """Run the command with these keys. Return its output, and the variables that it names."""
    out = io.StringIO()
    names = {"JWT_PREVIOUS_PUBLIC_KEYS": "", "JWT_NEXT_PUBLIC_KEYS": "", **variables}
    with pytest.MonkeyPatch.context() as patch:
        for name, text in {"JWT_PRIVATE_KEY": private, **names}.items():
            patch.setattr(f"django.conf.settings.{name}", text.replace("\\n", "\n"))
        call_command("rotate_signing_key", "--file", "next.pem", stdout=out, stderr=io.StringIO())
    return out.getvalue(), dict(re.findall(r'^(\w+)="(.+)"$', out.getvalue(), re.MULTILINE))


@pytest.mark.slow
def test_no_token_is_refused_while_two_processes_are_a_step_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    old = new_signing_key()
    first, published = step(private=old)
    assert first.startswith("Step 1 of 3")
    assert stat.S_IMODE(Path("next.pem").stat().st_mode) == 0o600
    assert step(private=old)[1] == published
    second, retired = step(private=old, **published)
    assert second.startswith("Step 2 of 3")
    new = Path("next.pem").read_text()
    third, nothing = step(private=new, **retired)
    assert (third[:11], nothing) == ("Step 3 of 3", {})
    steps = [
        {"JWT_PRIVATE_KEY": old},
        {"JWT_PRIVATE_KEY": old, **published},
        {"JWT_PRIVATE_KEY": new, **retired},
        {"JWT_PRIVATE_KEY": new},
    ]

    before, publishing, signing, after = processes = [Process(**keys) for keys in steps]
    neighbours = [(before, publishing), (publishing, signing)]
    answers = [(one.answer(other.token), other.answer(one.token)) for one, other in neighbours]
    assert answers == [("accepted", "accepted")] * 2
    assert after.answer(signing.token) == signing.answer(after.token) == "accepted"
    # Two steps at once would refuse tokens.
    assert before.answer(signing.token) == "refused"
    assert after.answer(before.token) == "refused"
    for process in processes:
        process.close()


def test_the_key_that_signs_is_not_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, published = step(private=new_signing_key())
    with pytest.raises(CommandError, match="remove the variable"):
        step(private=Path("next.pem").read_text(), **published)


def test_a_file_that_is_no_key_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("next.pem").write_text("hello")
    with pytest.raises(CommandError, match="not a private key in PEM"):
        step(private=new_signing_key())
    assert Path("next.pem").read_text() == "hello"
