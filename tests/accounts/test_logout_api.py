"""``POST /auth/logout``. Contract: Authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from accounts.access.credentials import (
    InvalidGrant,
    create_pat,
    create_refresh_token,
    exchange_pat,
    mint_for_sign_in,
    revoke,
)
from accounts.access.scopes import Scope
from tests.accounts.support import signed_in
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests import factories

pytestmark = pytest.mark.django_db


def test_a_session_ends_with_its_access_tokens(anonymous: ApiClient, world: factories.World) -> None:
    session, text = create_refresh_token(user=world.member)
    client = ApiClient(mint_for_sign_in(session).access_token)
    another = signed_in(world.member)
    assert client.get("/users/member@example.org").status_code == 200
    for _ in range(2):
        answer = anonymous.post("/auth/logout", {"token": text, "token_type_hint": "refresh_token"})
        assert (answer.status_code, answer.json()) == (200, {})
    grant = {"grant_type": "refresh_token", "refresh_token": text}
    assert anonymous.post("/oauth/token", grant).status_code == 401
    assert client.get("/users/member@example.org").status_code == 401
    assert another.get("/users/member@example.org").status_code == 200


def test_a_pat_ends_with_the_tokens_minted_from_it(anonymous: ApiClient, world: factories.World) -> None:
    _, text = create_pat(owner=world.platform_admin, name="x", scopes=[Scope.USERS_READ], tenants=["*"])
    minted = anonymous.post("/oauth/token", {"grant_type": "pat_exchange", "pat": text}).json()
    client = ApiClient(minted["access_token"])
    assert client.get("/users").status_code == 200
    assert anonymous.post("/auth/logout", {"token": text}).status_code == 200
    assert client.get("/users").status_code == 401


def test_an_unknown_token_is_as_good_as_ended(anonymous: ApiClient, db: None) -> None:
    for text in ("tas_refresh_unknown", "nonsense", "ä"):
        assert anonymous.post("/auth/logout", {"token": text}).status_code == 200


def test_a_text_that_is_not_unicode_is_unknown_too(db: None) -> None:
    revoke("tas_pat_\ud800")
    with pytest.raises(InvalidGrant):
        exchange_pat("tas_pat_\ud800")


def test_no_bearer_is_looked_at(world: factories.World) -> None:
    _, text = create_refresh_token(user=world.member)
    assert ApiClient("nonsense").post("/auth/logout", {"token": text}).status_code == 200
    assert signed_in(world.stranger).post("/auth/logout", {"token": text}).status_code == 200


def test_a_form_is_read_too(anonymous: ApiClient, world: factories.World) -> None:
    _, text = create_refresh_token(user=world.member)
    answer = anonymous.request(
        "POST",
        "/auth/logout",
        f"token={text}".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 200
    grant = {"grant_type": "refresh_token", "refresh_token": text}
    assert anonymous.post("/oauth/token", grant).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"token": ""},
        {"token": 7},
        {"token": "x", "tokn": "y"},
        {"token": "x", "token_type_hint": None},
        b"{",
    ],
)
def test_a_malformed_request_is_a_400_under_its_oauth_name(anonymous: ApiClient, body: object) -> None:
    answer = anonymous.post("/auth/logout", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
