"""What a session has proven, what it may do then, and the way to prove more. Contract: Authentication."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache

from accounts.access.credentials import create_refresh_token, exchange_refresh_token
from accounts.limited_access import take_access
from accounts.models import Event, Membership, RefreshToken, User
from tests import factories
from tests.admin.staff import add_totp, by_password, code_of
from tests.conftest import ApiClient, clear_principal_cache

if TYPE_CHECKING:
    from django.test import Client
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer

pytestmark = pytest.mark.django_db
WHY = {"X-Reason": "ticket%2042%3A%20l%C3%B6schen"}


@pytest.fixture(autouse=True)
def _required(settings: Any) -> None:
    settings.STAFF_SECOND_FACTOR = True
    settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
    cache.clear()


@pytest.fixture
def ada(world: factories.World) -> User:
    user = factories.make_user("ada@example.org", role="admin")
    user.set_password("correct horse battery")
    user.save()
    return user


def role_in(token: str) -> str:
    claims: dict[str, str] = jwt.decode(token, options={"verify_signature": False})
    return claims["role"]


def tokens_of(answer: Answer) -> dict[str, str]:
    query = parse_qs(urlsplit(answer["Location"]).query)
    return {name: values[0] for name, values in query.items()}


def fresh(user: User) -> ApiClient:
    return ApiClient(factories.sign_in(user, proven_at=time.time()))


class TestRole:
    def test_a_link_alone_gives_the_rights_of_a_user(self, ada: User, world: factories.World) -> None:
        token = factories.sign_in(ada)
        assert role_in(token) == "user"
        client = ApiClient(token)
        assert client.get("/users/me").status_code == 200
        answer = client.get(f"/config/tenants/{world.tenant.pk}")
        assert (answer.status_code, answer.json()["error"]) == (403, "second_factor_required")

    def test_refreshing_a_session_proves_nothing(self, ada: User) -> None:
        session, text = create_refresh_token(user=ada)
        assert role_in(exchange_refresh_token(text).access_token) == "user"
        factor = Authenticator.objects.create(user=ada, type="totp", data={})
        RefreshToken.objects.filter(pk=session.pk).update(second_factor=factor)
        assert role_in(exchange_refresh_token(text).access_token) == "admin"

    def test_a_removed_second_factor_takes_the_role_of_issued_tokens(
        self, ada: User, world: factories.World
    ) -> None:
        client = fresh(ada)
        assert client.get(f"/config/tenants/{world.tenant.pk}").status_code == 200
        Authenticator.objects.filter(user=ada).delete()
        clear_principal_cache()
        answer = client.get(f"/config/tenants/{world.tenant.pk}")
        assert (answer.status_code, answer.json()["error"]) == (403, "second_factor_required")

    def test_a_token_from_before_the_setting_has_no_role(
        self, ada: User, world: factories.World, settings: Any
    ) -> None:
        settings.STAFF_SECOND_FACTOR = False
        token = factories.sign_in(ada)
        assert role_in(token) == "admin"
        settings.STAFF_SECOND_FACTOR = True
        assert ApiClient(token).get(f"/config/tenants/{world.tenant.pk}").status_code == 403

    def test_a_session_without_it_makes_no_pat_with_the_rights_of_the_role(
        self, ada: User, world: factories.World
    ) -> None:
        client = ApiClient(factories.sign_in(ada))
        wanted = {"name": "x", "scopes": ["config:write"], "tenants": [str(world.tenant.pk)]}
        answer = client.post("/users/me/tokens", wanted)
        assert (answer.status_code, answer.json()["error"]) == (403, "second_factor_required")
        Membership.objects.create(user=ada, tenant=world.tenant, role="admin")
        assert client.post("/users/me/tokens", wanted).status_code == 201

    def test_what_is_for_members_asks_no_second_factor(self, ada: User, world: factories.World) -> None:
        answer = ApiClient(factories.sign_in(ada)).get(f"/tenants/{world.tenant.pk}/logs")
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")

    def test_elsewhere_neither_proof_nor_reason_is_asked(
        self, ada: User, world: factories.World, settings: Any
    ) -> None:
        settings.STAFF_SECOND_FACTOR = False
        client = ApiClient(factories.sign_in(ada))
        wanted = {"name": "x", "scopes": ["config:read"], "tenants": ["*"]}
        assert client.post("/users/me/tokens", wanted).status_code == 201
        assert client.put(f"/users/{world.member.email}/roles", {"primary": "admin"}).status_code == 200
        entries = [{"tenantId": str(world.tenant.pk), "role": "owner"}]
        path = f"/users/{world.stranger.email}/tenants"
        assert client.patch(path, entries).status_code == 200


class TestActs:
    def test_a_wildcard_needs_a_fresh_proof_and_a_reason(self, ada: User) -> None:
        wanted = {"name": "x", "scopes": ["config:read"], "tenants": ["*"]}
        stale = ApiClient(factories.sign_in(ada, proven_at=time.time() - 901))
        for client, headers in ((stale, WHY), (fresh(ada), {})):
            answer = client.request("POST", "/users/me/tokens", wanted, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (403, "second_factor_required")
        assert "details" not in stale.request("POST", "/users/me/tokens", wanted, headers=WHY).json()
        answer = fresh(ada).request("POST", "/users/me/tokens", wanted)
        assert answer.json()["details"][0]["code"] == "missing-reason"
        assert fresh(ada).request("POST", "/users/me/tokens", wanted, headers=WHY).status_code == 201
        event = Event.objects.get(kind="pat.created")
        assert (event.actor, event.reason) == (ada.email, "ticket 42: löschen")

    @pytest.mark.parametrize("reason", ["a" * 501, "%FF", "a%0Ab", "l\xf6schen"])
    def test_a_malformed_reason(self, ada: User, reason: str) -> None:
        answer = fresh(ada).get("/users/me", **{"X-Reason": reason})
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
        assert "X-Reason" in answer.json()["message"]

    def test_a_reason_is_of_its_request_alone(self, ada: User, world: factories.World) -> None:
        wanted = {"name": "x", "scopes": ["config:read"], "tenants": [str(world.tenant.pk)]}
        client = fresh(ada)
        client.request("POST", "/users/me/tokens", wanted, headers=WHY)
        client.request("POST", "/users/me/tokens", wanted)
        reasons = Event.objects.filter(kind="pat.created").order_by("id").values_list("reason", flat=True)
        assert list(reasons) == ["ticket 42: löschen", ""]

    def test_an_admin_does_not_make_itself_a_member(self, ada: User, world: factories.World) -> None:
        entries = [{"tenantId": str(world.tenant.pk), "role": "member"}]
        for method, path, body in (
            ("PATCH", f"/users/{ada.email}/tenants", entries),
            ("PUT", f"/users/{ada.email}/tenants", entries),
            ("PUT", f"/users/{ada.email}", {"tenants": entries}),
        ):
            answer = fresh(ada).request(method, path, body, headers=WHY)
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert not ada.memberships.exists()
        path = f"/users/{world.stranger.email}/tenants"
        assert fresh(ada).request("PATCH", path, entries, headers=WHY).status_code == 200
        owner = ApiClient(factories.sign_in(world.owner))
        invited = {"email": ada.email, "role": "member"}
        created = owner.post(f"/config/tenants/{world.tenant.pk}/invitations", invited)
        assert created.status_code == 201
        path = f"/users/me/invitations/{created.json()['id']}/accept"
        assert ApiClient(factories.sign_in(ada)).post(path).status_code == 200

    def test_limited_access_does_not_become_a_membership(self, ada: User, world: factories.World) -> None:
        take_access(ada, tenant_id=world.tenant.pk, hours=1)
        entries = [{"tenantId": str(world.tenant.pk), "role": "owner"}]
        answer = fresh(ada).request("PUT", f"/users/{ada.email}/tenants", entries, headers=WHY)
        assert answer.status_code == 403
        assert ada.memberships.get().ends_at is not None

    def test_an_admin_who_owns_a_tenant_writes_its_members_as_an_owner(
        self, ada: User, world: factories.World
    ) -> None:
        Membership.objects.create(user=ada, tenant=world.tenant, role="owner")
        entries = [{"tenantId": str(world.tenant.pk), "role": "admin"}]
        for client in (ApiClient(factories.sign_in(ada)), fresh(ada)):
            assert client.put(f"/users/{world.member.email}/tenants", entries).status_code == 200
        # Adding a member needs the role of a platform admin.
        answer = fresh(ada).patch(f"/users/{world.stranger.email}/tenants", entries)
        assert (answer.status_code, answer.json()["error"]) == (403, "second_factor_required")


class TestSteppingUp:
    def test_the_second_factor_gives_tokens_of_a_proven_session(
        self, ada: User, client: Client, world: factories.World
    ) -> None:
        secret = add_totp(ada)
        address = "/auth/step-up?redirect=/reports"
        answer = client.get(address)
        assert answer.status_code == 302
        login = urlsplit(answer["Location"])
        assert (login.path, parse_qs(login.query)) == ("/admin/login/", {"next": [address]})
        by_password(client, target=address)
        answer = client.post("/admin/account/second-factor/authenticate/", {"code": code_of(secret)})
        assert answer["Location"] == address
        before = time.time()
        answer = client.get(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("http://testserver/reports?access_token=")
        assert (answer["Cache-Control"], answer["Referrer-Policy"]) == ("no-store", "no-referrer")
        tokens = tokens_of(answer)
        assert role_in(tokens["access_token"]) == "admin"
        session = RefreshToken.objects.get()
        assert (session.user, session.second_factor) == (ada, Authenticator.objects.get(type="totp"))
        assert session.amr.keys() == {"password", "totp"}
        assert before - 60 < session.amr["totp"] <= time.time()
        event = Event.objects.filter(kind="sign-in.succeeded").first()
        assert event is not None
        assert event.after == {"provider": "password", "secondFactor": "totp", "session": session.pk}
        wanted = {"name": "x", "scopes": ["config:read"], "tenants": ["*"]}
        api = ApiClient(tokens["access_token"])
        assert api.request("POST", "/users/me/tokens", wanted, headers=WHY).status_code == 201
        [shown] = api.get("/users/me/sessions").json()["sessions"]
        assert [proof["method"] for proof in shown["amr"]] == ["totp", "password"]

    def test_an_old_proof_is_asked_again(self, ada: User, client: Client) -> None:
        secret = add_totp(ada)
        by_password(client)
        client.post("/admin/account/second-factor/authenticate/", {"code": code_of(secret)})
        session = client.session
        records = session["account_authentication_methods"]
        session["account_authentication_methods"] = [
            {**record, "at": record["at"] - 901} for record in records
        ]
        session.save()
        answer = client.get("/auth/step-up?redirect=/")
        page = urlsplit(answer["Location"])
        assert page.path == "/admin/account/second-factor/reauthenticate/"
        assert parse_qs(page.query) == {"next": ["/auth/step-up?redirect=/"]}
        assert not RefreshToken.objects.exists()

    @pytest.mark.parametrize("has_factor", [False, True])
    def test_a_password_alone_gives_no_tokens(self, ada: User, client: Client, has_factor: bool) -> None:
        if has_factor:
            add_totp(ada)
        by_password(client)
        assert client.get("/auth/step-up?redirect=/")["Location"].startswith("/admin/login/")
        assert not RefreshToken.objects.exists()

    def test_only_staff_step_up(self, world: factories.World, client: Client) -> None:
        client.force_login(world.owner)
        assert client.get("/auth/step-up")["Location"].startswith("/admin/login/")
        assert not RefreshToken.objects.exists()

    def test_another_host_gets_no_tokens(self, ada: User, client: Client, settings: Any) -> None:
        settings.STAFF_SECOND_FACTOR = False
        by_password(client)
        answer = client.get("/auth/step-up?redirect=https://evil.example/")
        assert answer["Location"].startswith("http://testserver/dashboard")
