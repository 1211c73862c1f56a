"""Staff in the dashboard: how they come in from the admin site, and what they may do and read there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from uuid import UUID

import jwt
import pytest

from accounts.models import Event, Membership, PersonalAccessToken, RefreshToken
from accounts.signin.staff.opening import challenge_of
from rules.write import write_ruleset
from tests import factories
from tests.admin.filling import to
from tests.admin.staff import prove_factor, signed_in, support_client
from tests.conftest import ApiClient, clear_principal_cache

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
VERIFIER = "a-secret-of-one-tab-of-a-browser-0123456789"


def open_page(client: Client, world: factories.World, **values: Any) -> Any:
    address = f"{to('tenant-open', world.tenant)}?challenge={challenge_of(VERIFIER)}&to=alerts"
    return client.post(address, {"reason": "ticket 7", "hours": "", **values})


def fragment_of(answer: Any) -> dict[str, str]:
    """Return what the redirect to the dashboard gives it, behind the #."""
    assert answer.status_code == 302, answer.content
    path, _, query = answer["Location"].partition("#/open?")
    assert "?" not in path
    return {name: values[0] for name, values in parse_qs(query).items()}


def redeem(code: str, verifier: str = VERIFIER) -> Any:
    body = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
    return ApiClient(None).post("/oauth/token", body)


def enter(client: Client, world: factories.World, **values: Any) -> ApiClient:
    """Return a caller with the session that opening the tenant begins."""
    answer = redeem(fragment_of(open_page(client, world, **values))["code"])
    return ApiClient(answer.json()["access_token"])


def make_pat(caller: ApiClient, world: factories.World, *scopes: str, **more: Any) -> Any:
    body = {"name": "x", "scopes": scopes, "tenants": [str(world.tenant.pk)], **more}
    return caller.post("/users/me/tokens", body)


def exchange(pat: str) -> ApiClient:
    answer = ApiClient(None).post("/oauth/token", {"grant_type": "pat_exchange", "pat": pat})
    return ApiClient(answer.json()["access_token"])


class TestOpening:
    def test_the_dashboard_begins_with_its_challenge(self, world: factories.World) -> None:
        admin = signed_in(world.platform_admin)
        answer = admin.get(to("tenant-open", world.tenant), {"to": "history?kind=rules"})
        assert fragment_of(answer) == {"tenant": str(world.tenant.pk), "to": "history?kind=rules"}
        strange = admin.get(to("tenant-open", world.tenant), {"to": "//evil.example.org"})
        assert fragment_of(strange)["to"] == "overview"

    def test_it_signs_in_as_the_same_user_with_the_same_proofs(self, world: factories.World) -> None:
        admin = signed_in(world.platform_admin)
        prove_factor(admin, world.platform_admin)
        given = fragment_of(open_page(admin, world))
        assert {**given, "code": "…"} == {
            "code": "…",
            "to": f"/t/{world.tenant.pk}/alerts",
            "name": "Warehouse",
            "reason": "ticket 7",
        }
        tokens = redeem(given["code"]).json()
        claims = jwt.decode(tokens["access_token"], options={"verify_signature": False})
        assert (claims["sub"], claims["role"], claims["staff"]) == ("admin@example.org", "admin", True)
        session = RefreshToken.objects.get(pk=claims["sid"])
        assert session.is_staff
        assert list(session.amr) == ["totp"]
        event = Event.objects.get(kind="sign-in.succeeded")
        assert event.after == {"session": session.pk, "staff": True, "secondFactor": "totp"}
        assert (event.tenant_id, event.reason) == (world.tenant.pk, "ticket 7")
        acted = Event.objects.get(kind="staff.acted")
        assert (acted.after, acted.reason) == ({"act": "dashboard.opened"}, "ticket 7")
        # Renewed tokens are marked, too.
        refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        renewed = ApiClient(None).post("/oauth/token", refresh).json()["access_token"]
        assert jwt.decode(renewed, options={"verify_signature": False})["staff"] is True

    def test_a_code_is_valid_once_and_for_one_tab(self, world: factories.World) -> None:
        admin = signed_in(world.platform_admin)
        for verifier, status in (("of another tab", 401), (VERIFIER, 200)):
            code = fragment_of(open_page(admin, world))["code"]
            assert redeem(code, verifier).status_code == status
            again = redeem(code)
            assert (again.status_code, again.json()["error"]) == (401, "invalid_grant")

    @pytest.mark.parametrize("change", [{"is_active": False}, {"role": "user"}, {"epoch": UUID(int=7)}])
    def test_a_user_that_is_no_longer_staff_does_not_come_in(
        self, world: factories.World, change: dict[str, Any]
    ) -> None:
        code = fragment_of(open_page(signed_in(world.platform_admin), world))["code"]
        type(world.platform_admin).objects.filter(pk=world.platform_admin.pk).update(**change)
        assert redeem(code).status_code == 401

    def test_access_to_the_log_is_taken_with_the_same_reason(self, world: factories.World) -> None:
        given = fragment_of(open_page(support_client(), world, hours="2"))
        membership = Membership.objects.get(user__email="support@example.org")
        assert membership.ends_at is not None
        assert given["until"][:16] == membership.ends_at.isoformat()[:16]
        assert Event.objects.get(kind="membership.added").reason == "ticket 7"

    def test_access_needs_a_proof_of_the_last_minutes(self, world: factories.World, settings: Any) -> None:
        settings.STAFF_SECOND_FACTOR = True
        admin = signed_in(world.platform_admin)
        prove_factor(admin, world.platform_admin)
        session = admin.session
        session["account_authentication_methods"][0]["at"] -= 901
        session.save()
        assert "reauthenticate" in open_page(admin, world, hours="1")["Location"]
        assert "code" in fragment_of(open_page(admin, world))
        # An act in the dashboard was refused without one.
        address = f"{to('tenant-open', world.tenant)}?challenge={challenge_of(VERIFIER)}&proof=1"
        assert "reauthenticate" in admin.post(address, {"reason": "ticket 7"})["Location"]

    def test_the_form_begins_with_the_reason_of_the_session(self, world: factories.World) -> None:
        admin = signed_in(world.platform_admin)
        given = fragment_of(admin.get(to("tenant-open", world.tenant), {"reason": "ticket 7"}))
        assert given["reason"] == "ticket 7"
        given |= {"challenge": challenge_of(VERIFIER)}
        html = admin.get(to("tenant-open", world.tenant), given).content.decode()
        assert 'value="ticket 7"' in html

    def test_a_reason_is_needed(self, world: factories.World) -> None:
        assert open_page(signed_in(world.platform_admin), world, reason="").status_code == 400


class TestRights:
    def test_support_looks_at_a_tenant_and_writes_only_markers(self, world: factories.World) -> None:
        tenant = f"/tenants/{world.tenant.pk}"
        caller = enter(support_client(), world)
        assert caller.get(f"/config{tenant}/rules").status_code == 200
        assert caller.get(f"{tenant}/query/schema").status_code == 403
        assert caller.put(f"/config{tenant}/rules", {"rules": []}).status_code == 403
        pat = make_pat(caller, world, "analytics:read", "cache-admin", "config:read")
        holder = exchange(pat.json()["token"])
        assert holder.get(f"{tenant}/alerts").status_code == 200
        assert holder.get(f"{tenant}/invalidation-markers").status_code == 200
        for scope in ("config:write", "analytics:users", "logs:query"):
            assert make_pat(caller, world, scope).status_code == 403, scope

    def test_support_elsewhere_has_no_right_on_a_tenant(self, world: factories.World) -> None:
        support = factories.make_user("support@example.org", is_support=True)
        caller = ApiClient(factories.sign_in(support))
        assert caller.get(f"/config/tenants/{world.tenant.pk}/rules").status_code == 403
        assert make_pat(caller, world, "analytics:read").status_code == 403

    def test_names_of_users_are_for_members(self, world: factories.World) -> None:
        caller = enter(signed_in(world.platform_admin), world)
        assert make_pat(caller, world, "analytics:users").status_code == 403
        caller = enter(signed_in(world.platform_admin), world, hours="1")
        holder = exchange(make_pat(caller, world, "analytics:users").json()["token"])
        users = f"/tenants/{world.tenant.pk}/users"
        # Nothing is built yet.
        assert holder.get(users).status_code == 404
        signed_in(world.platform_admin).post(to("tenant-access-end", world.tenant), {"reason": "done"})
        clear_principal_cache()
        assert holder.get(users).status_code == 403

    def test_a_token_names_one_tenant_and_ends_with_the_session(
        self, world: factories.World, settings: Any
    ) -> None:
        caller = enter(signed_in(world.platform_admin), world)
        wider: list[dict[str, Any]] = [{"tenants": []}, {"tenants": ["*"]}]
        for more in (*wider, {"accounts": [str(world.account.pk)]}):
            assert make_pat(caller, world, "config:read", **more).status_code == 403
        made = make_pat(caller, world, "config:read").json()
        session = RefreshToken.objects.get(is_staff=True)
        assert session.expires_at is not None
        seconds = (session.expires_at - session.created_at).total_seconds()
        assert round(seconds) == settings.STAFF_SESSION_SECONDS
        assert made["expiresAt"][:19] == f"{session.expires_at:%Y-%m-%dT%H:%M:%S}"
        caller.delete(f"/users/me/sessions/{session.pk}")
        assert PersonalAccessToken.objects.get(pk=made["id"]).revoked_at is not None


class TestReason:
    def test_each_write_needs_one_and_keeps_it(self, world: factories.World) -> None:
        path = f"/config/tenants/{world.tenant.pk}/rules"
        caller = enter(signed_in(world.platform_admin), world)
        refused = caller.put(path, {"rules": []})
        assert (refused.status_code, refused.json()["details"][0]["code"]) == (403, "missing-reason")
        headers = {"X-Reason": "ticket%208"}
        assert caller.request("PUT", path, {"rules": []}, headers=headers).status_code == 200
        newest = caller.get(f"{path}/history").json()["changes"][0]
        assert newest["summary"]["comment"] == "ticket 8"

    def test_markers_of_staff_leave_events(self, world: factories.World) -> None:
        rule = {"id": "orders", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}
        write_ruleset(tenant_id=world.tenant.pk, document={"rules": [rule]}, actor="owner@example.org")
        tenant, headers = f"/tenants/{world.tenant.pk}", {"X-Reason": "ticket%208"}
        caller = exchange(make_pat(enter(support_client(), world), world, "cache-admin").json()["token"])
        at = f"{tenant}/invalidation-markers"
        body = {"markerId": "m", "targetRuleId": "orders"}
        assert caller.request("POST", at, body, headers=headers).status_code == 201
        made = caller.request("POST", f"{tenant}/invalidations", {"tables": ["a.b"]}, headers=headers).json()
        for _ in range(2):
            assert caller.request("DELETE", f"{at}/m", headers=headers).status_code == 200
        events = Event.objects.filter(tenant_id=world.tenant.pk, reason="ticket 8").order_by("pk")
        created = {"act": "marker.created", "rules": ["orders"]}
        assert [event.after for event in events] == [
            {**created, "markers": ["m"]},
            {**created, "markers": [made["markers"][0]["markerId"]], "tables": ["a.b"]},
            {"act": "marker.removed", "markers": ["m"]},
        ]
        assert {(event.kind, event.actor) for event in events} == {("staff.acted", "support@example.org")}

    def test_tokens_made_there_need_one_too(self, world: factories.World) -> None:
        caller = enter(signed_in(world.platform_admin), world)
        pat = make_pat(caller, world, "cache-admin").json()["token"]
        refused = exchange(pat).post(f"/tenants/{world.tenant.pk}/invalidations", {"tables": ["x"]})
        assert refused.json()["details"][0]["code"] == "missing-reason"
