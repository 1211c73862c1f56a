"""Signing in to the admin site by password: a few wrong ones, then a pause that grows."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from accounts import limits
from accounts.limits import claim_try, forget_tries
from tenantadmin.lib.core.errors import RateLimited
from tests import factories
from tests.accounts.support import at_once

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer

    from accounts.models import User


@pytest.fixture(autouse=True)
def _unspent_limits(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count from the beginning, and wait minutes where others wait seconds: no wait ends during a test."""
    settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
    assert (limits._FIRST_WAIT_SECONDS, limits._MAX_WAIT_SECONDS) == (1, 900)
    monkeypatch.setattr(limits, "_FIRST_WAIT_SECONDS", 60)
    monkeypatch.setattr(limits, "_MAX_WAIT_SECONDS", 60 * 900)


def minutes(seconds: object) -> int:
    return round(int(str(seconds)) / 60)


def make_admin(email: str = "ada@example.org", role: str = "admin") -> User:
    user = factories.make_user(email, role=role)
    user.set_password("right")
    user.save()
    return user


def try_password(password: str, email: str = "ada@example.org", address: str = "192.0.2.1") -> Answer:
    form = {"username": email, "password": password, "next": "/admin/"}
    return Client().post("/admin/login/", form, REMOTE_ADDR=address)


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "http:evil",
        "\0",
        "",
    ],
)
def test_signing_in_leads_to_the_site_if_the_address_to_go_to_is_bad(db: None, target: str) -> None:
    make_admin()
    form = {"username": "ada@example.org", "password": "right", "next": target}
    answer = Client().post("/admin/login/", form)
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")


def test_after_five_wrong_passwords_even_the_right_one_has_to_wait(db: None) -> None:
    make_admin()
    make_admin("bob@example.org")
    assert [try_password("wrong").status_code for _ in range(5)] == [200] * 5
    refused = try_password("right", email="Ada@Example.org")
    wait = refused.headers["Retry-After"]
    assert (refused.status_code, minutes(wait)) == (429, 1)
    said = f"Too many tries. Try again in {wait} seconds, or sign in another way."
    assert said in refused.content.decode()
    assert "_auth_user_id" not in refused.wsgi_request.session
    assert try_password("right", email="bob@example.org").status_code == 302


def test_strangers_cannot_lock_a_known_email(db: None) -> None:
    make_admin()
    for number in range(20):
        try_password("wrong", address="192.0.2.66")
        try_password("wrong", address=f"198.51.100.{number}")
    assert try_password("right", address="192.0.2.2").status_code == 302


def test_addresses_of_one_ipv6_network_are_counted_together(db: None) -> None:
    make_admin()
    answers = [try_password("wrong", address=f"2001:db8::{number}").status_code for number in range(1, 7)]
    assert answers == [200] * 5 + [429]
    assert try_password("right", address="2001:db8:0:1::1").status_code == 302


def test_each_wrong_password_doubles_the_wait_up_to_15_minutes(settings: Any) -> None:
    redis = limits._redis(settings.REDIS_URL)
    count, wait = limits._keys("t", "k")
    waits = []
    for _ in range(18):
        claim_try(kind="t", key="k")
        waits.append(max(0, minutes(redis.ttl(wait))))
        assert 3590 < redis.ttl(count) <= 3600
        if waits[-1]:
            with pytest.raises(RateLimited) as caught:
                claim_try(kind="t", key="k")
            assert minutes(caught.value.headers["Retry-After"]) == waits[-1]
            # The wait is over.
            redis.delete(wait)
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900]
    forget_tries(kind="t", key="k")
    claim_try(kind="t", key="k")
    assert redis.exists(wait) == 0


def test_the_right_password_clears_the_count(db: None) -> None:
    make_admin()
    for _ in range(3):
        assert [try_password("wrong").status_code for _ in range(4)] == [200] * 4
        assert try_password("right").status_code == 302


def test_an_address_gets_twenty_tries_whomever_it_tries(db: None) -> None:
    make_admin()
    answers = [try_password("wrong", email=f"user-{n}@example.org").status_code for n in range(21)]
    assert answers == [200] * 20 + [429]
    assert try_password("right").status_code == 429
    assert try_password("right", address="192.0.2.2").status_code == 302


def test_a_right_password_of_a_non_admin_counts_as_wrong(db: None) -> None:
    make_admin("eve@example.org", role="user")
    answers = [try_password("right", email="eve@example.org") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]


@pytest.mark.django_db(transaction=True)
def test_tries_at_the_same_moment_are_counted_too() -> None:
    make_admin()
    answers = at_once([partial(try_password, "wrong")] * 12)
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 7


def test_sign_in_fails_without_redis(db: None, settings: Any, tmp_path: Any) -> None:
    make_admin()
    settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
    refused = try_password("right")
    assert refused.status_code == 500
    assert "Sign-in with a password is not possible at the moment." in refused.content.decode()
