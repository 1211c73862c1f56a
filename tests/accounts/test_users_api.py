"""``/users`` and ``/users/{email}``. Contract: Users, roles, memberships."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import pytest

from accounts.access.credentials import create_pat
from accounts.access.scopes import Scope
from accounts.models import Membership, PersonalAccessToken, User
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from pytest_django.fixtures import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


def emails(answer: Any) -> list[str]:
    return [item["email"] for item in answer.json()["_links"]["items"]]


class TestList:
    def test_its_shape(self, world: factories.World) -> None:
        assert signed_in(world.stranger).get("/users").json() == {
            "_links": {
                "self": {"href": "/users"},
                "parent": {"href": "/"},
                "items": [
                    {"email": "stranger@example.org", "type": "user", "href": "/users/stranger@example.org"}
                ],
            }
        }

    @pytest.mark.parametrize(
        ("email", "href"),
        [
            ("a+b@example.org", "/users/a+b@example.org"),
            ("50%2f#?&@example.org", "/users/50%252f%23%3F&@example.org"),
            ("a@xn--bcher-kva.example", "/users/a@xn--bcher-kva.example"),
        ],
    )
    def test_its_links_lead_to_users_whatever_their_emails_hold(
        self, world: factories.World, email: str, href: str
    ) -> None:
        factories.make_user(email)
        admin = signed_in(world.platform_admin)
        items = admin.get("/users").json()["_links"]["items"]
        assert [item["href"] for item in items if item["email"] == email] == [href]
        assert admin.get(href).json()["email"] == email
        links = admin.get(f"{href}/tokens").json()["_links"]
        assert (links["self"]["href"], links["parent"]["href"]) == (f"{href}/tokens", href)

    def test_everyone_sees_whom_they_may_read(self, world: factories.World) -> None:
        of_tenant = ["member@example.org", "owner@example.org", "tenant-admin@example.org"]
        assert emails(signed_in(world.member).get("/users")) == ["member@example.org"]
        assert emails(signed_in(world.tenant_admin).get("/users")) == of_tenant
        assert emails(signed_in(world.owner).get("/users")) == of_tenant
        assert len(emails(signed_in(world.platform_admin).get("/users"))) == 5

    @pytest.mark.parametrize(
        ("userid", "found"),
        [
            ("", 5),
            ("EMBER", 1),
            ("%", 0),
            ("_", 0),
            ("admin", 2),
            ("\\", 0),
            ("@example.org", 5),
            (" ", 0),
        ],
    )
    def test_userid_is_a_part_of_the_email_in_any_case(
        self, world: factories.World, userid: str, found: int
    ) -> None:
        answer = signed_in(world.platform_admin)._client.get(
            "/users",
            {"userid": userid},
            headers={"Authorization": f"Bearer {factories.sign_in(world.platform_admin)}"},
        )
        assert len(emails(answer)) == found

    def test_a_pat_sees_users_of_the_tenants_that_it_names(self, world: factories.World) -> None:
        token = factories.pat_token(
            world.platform_admin, "users:read", tenants=[str(world.stranger_tenant.pk)]
        )
        assert emails(ApiClient(token).get("/users")) == ["admin@example.org", "stranger@example.org"]
        wildcard = factories.pat_token(world.platform_admin, "users:read", tenants=["*"])
        assert len(emails(ApiClient(wildcard).get("/users"))) == 5

    def test_unknown_and_unfit_parameters_are_refused(self, world: factories.World) -> None:
        client = signed_in(world.member)
        for query in ("?userId=x", "?userid=a&userid=b", "?userid=%00"):
            answer = client.get(f"/users{query}")
            assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), query


class TestRead:
    def test_the_whole_document(self, world: factories.World) -> None:
        user = factories.make_user(
            "ada@example.org",
            display_name="Ada",
            identity_provider="google",
            identity_subject="117",
            email_verified=True,
            last_login=now(),
            tos="0" * 32,
            scopes=["users:read"],
        )
        Membership.objects.create(user=user, tenant=world.tenant, role="member")
        answer = signed_in(world.platform_admin).get("/users/%20ADA@Example.org")
        assert answer.status_code == 200
        user.refresh_from_db()
        assert user.last_login is not None
        assert answer.json() == {
            "email": "ada@example.org",
            "type": "user",
            "displayName": "Ada",
            "roles": {"primary": "user", "scopes": ["users:read"]},
            "tenants": [{"tenantId": str(world.tenant.pk), "role": "member"}],
            "identity": {
                "provider": "google",
                "subject": "117",
                "emailVerified": True,
                "lastLoginAt": format_timestamp(user.last_login),
            },
            "tos": "0" * 32,
            "active": True,
            "createdAt": format_timestamp(user.created_at),
            "modifiedAt": format_timestamp(user.modified_at),
        }

    def test_a_user_without_sign_in(self, world: factories.World) -> None:
        document = signed_in(world.member).get("/users/member@example.org").json()
        assert document["identity"] == {
            "provider": None,
            "subject": None,
            "emailVerified": False,
            "lastLoginAt": None,
        }
        assert document["tos"] is None

    def test_only_a_platform_admin_gets_a_404(self, world: factories.World) -> None:
        assert signed_in(world.platform_admin).get("/users/unknown@example.org").status_code == 404
        for user in (world.member, world.owner):
            for email in ("unknown@example.org", "stranger@example.org"):
                assert signed_in(user).get(f"/users/{email}").status_code == 403

    def test_memberships_in_tenants_that_the_caller_may_not_read_are_not_shown(
        self, world: factories.World
    ) -> None:
        Membership.objects.create(user=world.member, tenant=world.stranger_tenant, role="owner")
        theirs = {"tenantId": str(world.tenant.pk), "role": "member"}
        both = [theirs, {"tenantId": str(world.stranger_tenant.pk), "role": "owner"}]
        assert signed_in(world.owner).get("/users/member@example.org").json()["tenants"] == [theirs]
        assert signed_in(world.member).get("/users/member@example.org").json()["tenants"] == both
        assert signed_in(world.platform_admin).get("/users/member@example.org").json()["tenants"] == both

    def test_memberships_in_deleted_tenants_are_not_shown(self, world: factories.World) -> None:
        type(world.tenant).objects.filter(pk=world.tenant.pk).update(deleted_at=now())
        assert signed_in(world.member).get("/users/member@example.org").json()["tenants"] == []
        assert signed_in(world.owner).get("/users/member@example.org").status_code == 403

    def test_an_admins_pat_reads_no_further_than_its_tenants(self, world: factories.World) -> None:
        named = ApiClient(
            factories.pat_token(
                world.platform_admin, "users:read", "users:write", tenants=[str(world.tenant.pk)]
            )
        )
        of_tenant = ["member@example.org", "owner@example.org", "tenant-admin@example.org"]
        assert emails(named.get("/users")) == ["admin@example.org", *of_tenant]
        assert named.get("/users/stranger@example.org").status_code == 403
        elsewhere = [{"tenantId": str(world.stranger_tenant.pk), "role": "member"}]
        assert named.patch("/users/member@example.org/tenants", elsewhere).status_code == 403

    def test_a_look_alike_letter_does_not_lead_to_another_user(self, world: factories.World) -> None:
        factories.make_user("kate@example.org")
        client = signed_in(world.platform_admin)
        assert client.get("/users/KATE@example.org").status_code == 200
        for method in ("GET", "PUT", "DELETE"):
            assert client.request(method, "/users/%E2%84%AAate@example.org", {}).status_code == 404

    def test_all_spellings_of_a_domain_are_one_user(self, world: factories.World) -> None:
        client = signed_in(world.platform_admin)
        for domain in ("bücher.example", "BÜCHER.example", "bu\u0308cher.example", "xn--bcher-kva.example"):
            answer = client.put(f"/users/{quote(f'Zoe@{domain}')}", {})
            assert (answer.status_code, answer.json()["email"]) == (200, "zoe@xn--bcher-kva.example")
        assert User.objects.filter(email__startswith="zoe@").count() == 1
        assert client.put(f"/users/{quote('zoe@straße.example')}", {}).status_code == 200
        assert client.get("/users/zoe@strasse.example").status_code == 404

    @pytest.mark.parametrize(
        "email",
        [
            "zoe@e\uff58ample.org",
            "zoe@exam\u00adple.org",
            "zoe@[127.0.0.1]",
            "zoe@127.0.0.1",
            "zoe@localhost",
        ],
    )
    def test_a_domain_that_mapping_changes_and_an_address_literal_are_refused(
        self, world: factories.World, email: str
    ) -> None:
        client, path = signed_in(world.platform_admin), f"/users/{quote(email)}"
        answer = client.put(path, {})
        assert (answer.status_code, answer.json()["details"][0]["code"]) == (400, "invalid-email")
        assert client.get(path).status_code == 404

    def test_an_address_with_a_nul_is_the_address_of_nothing(self, world: factories.World) -> None:
        assert signed_in(world.platform_admin).get("/users/a%00b@example.org").status_code == 404

    def test_reading_oneself_takes_one_query_besides_the_rights(
        self, world: factories.World, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        client = signed_in(world.owner)
        with django_assert_num_queries(2):
            assert client.get("/users/owner@example.org").status_code == 200


class TestWrite:
    def test_a_platform_admin_creates_a_user_with_the_defaults(self, world: factories.World) -> None:
        answer = signed_in(world.platform_admin).put("/users/New.One@Example.org", {})
        assert answer.status_code == 200
        document = answer.json()
        assert (document["email"], document["displayName"], document["active"]) == (
            "new.one@example.org",
            "",
            True,
        )
        assert (document["roles"], document["tenants"]) == ({"primary": "user", "scopes": []}, [])

    def test_a_platform_admin_creates_a_user_with_everything(self, world: factories.World) -> None:
        body = {
            "email": "NEW@example.org",
            "type": "user",
            "displayName": "New",
            "active": False,
            "roles": {"primary": "guest", "scopes": ["users:read", "config:read", "users:read"]},
            "tenants": [{"tenantId": str(world.tenant.pk), "role": "admin"}],
        }
        document = signed_in(world.platform_admin).put("/users/new@example.org", body).json()
        assert document["roles"] == {"primary": "guest", "scopes": ["config:read", "users:read"]}
        assert {**document, **body, "email": "new@example.org", "roles": document["roles"]} == document

    def test_absent_members_stay(self, world: factories.World) -> None:
        client = signed_in(world.platform_admin)
        before = client.get("/users/owner@example.org").json()
        after = client.put("/users/owner@example.org", {"displayName": "Olga"}).json()
        assert after["modifiedAt"] >= before["modifiedAt"]
        assert after == {**before, "displayName": "Olga", "modifiedAt": after["modifiedAt"]}

    def test_a_document_may_be_sent_back_as_it_was_read(self, world: factories.World) -> None:
        for user in (world.member, world.owner, world.platform_admin):
            client = signed_in(user)
            document = client.get(f"/users/{user.email}").json()
            answer = client.put(f"/users/{user.email}", {**document, "displayName": "Me"})
            assert answer.status_code == 200, answer.content
            assert answer.json()["displayName"] == "Me"
            assert answer.json()["tenants"] == document["tenants"]

    def test_ignored_members_are_not_written(self, world: factories.World) -> None:
        body = {"tos": "f" * 32, "identity": {"provider": "evil"}, "modifiedAt": "yesterday"}
        answer = signed_in(world.member).put("/users/member@example.org", body)
        assert answer.status_code == 200
        assert answer.json()["tos"] is None
        assert answer.json()["identity"]["provider"] is None

    @pytest.mark.parametrize(
        ("body", "path", "code"),
        [
            ({"email": "other@example.org"}, "/email", "read-only"),
            ({"type": "robot"}, "/type", "invalid-choice"),
            ({"createdAt": "2020-01-01T00:00:00Z"}, "/createdAt", "read-only"),
            ({"createdAt": "2020-01-01T00:00:00"}, "/createdAt", "invalid"),
            ({"displayname": "x"}, "/displayname", "unknown-property"),
            ({"displayName": 7}, "/displayName", "invalid"),
            ({"displayName": "x" * 201}, "/displayName", "max-length"),
            ({"displayName": None}, "/displayName", "null"),
            ({"active": "true"}, "/active", "invalid"),
            ({"active": None}, "/active", "null"),
            ({"roles": {}}, "/roles/primary", "required"),
            ({"roles": {"primary": "root"}}, "/roles/primary", "invalid-choice"),
            ({"roles": {"primary": "user", "scopes": ["all"]}}, "/roles/scopes/0", "invalid-choice"),
            ({"roles": {"primary": "user", "scope": []}}, "/roles/scope", "unknown-property"),
            ({"roles": []}, "/roles", "invalid"),
            ({"tenants": {}}, "/tenants", "not-a-list"),
            ({"tenants": [{}]}, "/tenants/0/tenantId", "required"),
            ({"tenants": [{"tenantId": "x", "role": "owner"}]}, "/tenants/0/tenantId", "invalid"),
            (
                {"tenants": [{"tenantId": "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11", "role": "member"}]},
                "/tenants/0/tenantId",
                "unknown-tenant",
            ),
            ([], "", "not-an-object"),
            (b"null", "", "not-an-object"),
            (None, "", "not-an-object"),
        ],
    )
    def test_errors_name_their_place(
        self, world: factories.World, body: object, path: str, code: str
    ) -> None:
        answer = signed_in(world.platform_admin).put("/users/member@example.org", body)
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
        assert [(row["path"], row["code"]) for row in answer.json()["details"]][:1] == [(path, code)]

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ({"roles": {"primary": "boss"}}, "Give one of: admin, user, guest."),
            ({"roles": {"primary": {"a": 1}}}, "Give one of: admin, user, guest."),
            (
                {"roles": {"primary": "user", "scopes": ["all"]}},
                """Give one of: analytics:numbers, analytics:read, analytics:users, cache-admin, \
config:read, config:write, logs:notify, logs:query, logs:read, tos:publish, users:read, users:write.""",
            ),
            ({"tenants": [{"tenantId": str(UUID(int=1)), "role": ""}]}, "Give one of: owner, admin, member."),
            ({"tenants": {}}, "Send an array."),
            ({"roles": "user"}, "Send a JSON object."),
        ],
    )
    def test_errors_list_the_allowed_values(self, world: factories.World, body: object, message: str) -> None:
        answer = signed_in(world.platform_admin).put("/users/member@example.org", body)
        assert [row["message"] for row in answer.json()["details"]] == [message]

    def test_an_unknown_property_names_the_nearest_known_one(self, world: factories.World) -> None:
        answer = signed_in(world.member).put("/users/member@example.org", {"displayname": "x"})
        assert answer.json()["details"][0]["message"] == (
            "Unknown property 'displayname'. Did you mean 'displayName'?"
        )

    @pytest.mark.parametrize(
        "email",
        ["nonsense", "a@b@example.org", "a b@example.org", "ädä@example.org", "x@y", "x\ny@example.org"],
    )
    def test_no_user_is_created_under_an_invalid_address(self, world: factories.World, email: str) -> None:
        answer = signed_in(world.platform_admin).put(f"/users/{quote(email)}", {})
        assert (answer.status_code, answer.json()["details"][0]["code"]) == (400, "invalid-email")
        assert User.objects.count() == 5

    @pytest.mark.parametrize(
        "body",
        [
            {"active": False},
            {"roles": {"primary": "admin"}},
            {"roles": {"primary": "user", "scopes": ["users:read"]}},
        ],
    )
    def test_only_platform_admins_change_roles_or_activity(
        self, world: factories.World, body: object
    ) -> None:
        for user in (world.member, world.owner):
            assert signed_in(user).put(f"/users/{user.email}", body).status_code == 403
            user.refresh_from_db()
            assert (user.role, user.is_active, user.scopes) == ("user", True, [])

    def test_only_platform_admins_create_or_change_others(self, world: factories.World) -> None:
        for user in (world.member, world.tenant_admin, world.owner):
            client = signed_in(user)
            assert client.put("/users/new@example.org", {}).status_code == 403
            assert client.put("/users/stranger@example.org", {"displayName": "x"}).status_code == 403
        assert (
            signed_in(world.owner).put("/users/member@example.org", {"displayName": "x"}).status_code == 403
        )
        assert not User.objects.filter(email="new@example.org").exists()
        assert not User.objects.exclude(display_name="").exists()

    def test_two_puts_of_a_new_user_make_one(self, world: factories.World) -> None:
        client = signed_in(world.platform_admin)
        for _ in range(2):
            assert client.put("/users/new@example.org", {}).status_code == 200
        assert User.objects.filter(email="new@example.org").count() == 1


class TestAnswerToAWrite:
    """A write that happened is never answered by a 403 or 404."""

    @pytest.fixture
    def writer(self, world: factories.World) -> ApiClient:
        """A wildcard PAT that may write users and not read them."""
        return ApiClient(factories.pat_token(world.platform_admin, "users:write", tenants=["*"]))

    def test_a_writer_without_read_access_gets_its_own_body_back(self, writer: ApiClient) -> None:
        body = {"displayName": "New", "roles": {"primary": "admin", "scopes": []}, "active": True}
        answer = writer.put("/users/new@example.org", body)
        assert (answer.status_code, answer.json()) == (
            200,
            {
                **body,
                "email": "new@example.org",
                "type": "user",
                "tenants": [],
                "identity": None,
                "tos": None,
            },
        )
        assert User.objects.get(email="new@example.org").role == "admin"

    def test_it_learns_nothing_of_an_existing_user(self, world: factories.World, writer: ApiClient) -> None:
        User.objects.filter(pk=world.member.pk).update(display_name="Mia", tos="0" * 32)
        body = {"tenants": [{"tenantId": str(world.tenant.pk), "role": "admin"}]}
        answer = writer.put("/users/member@example.org", body)
        unread: dict[str, Any] = {"type": "user", "identity": None, "tos": None}
        assert (answer.status_code, answer.json()) == (
            200,
            {**unread, **body, "email": "member@example.org"},
        )
        assert Membership.objects.get(user=world.member).role == "admin"
        assert writer.put("/users/admin@example.org", {}).json() == {
            **unread,
            "email": "admin@example.org",
            "tenants": [],
        }

    def test_it_gets_back_roles_and_the_memberships_that_it_may_see(
        self, world: factories.World, writer: ApiClient
    ) -> None:
        roles, tenants = "/users/member@example.org/roles", "/users/member@example.org/tenants"
        own = {"tenantId": str(world.tenant.pk), "role": "admin"}
        entry = {"tenantId": str(world.stranger_tenant.pk), "role": "member"}
        User.objects.filter(pk=world.member.pk).update(scopes=["users:read"])
        answers = [
            writer.patch(roles, {"primary": "guest"}),
            writer.put(roles, {"primary": "user"}),
            writer.put(tenants, [own]),
            writer.patch(tenants, [entry]),
        ]
        assert [(answer.status_code, answer.json()) for answer in answers] == [
            (200, {"primary": "guest"}),
            (200, {"primary": "user", "scopes": []}),
            (200, [own]),
            (200, [entry]),
        ]
        reads_config = factories.pat_token(world.platform_admin, "users:write", "config:read", tenants=["*"])
        assert ApiClient(reads_config).patch(tenants, [entry]).json() == [own, entry]
        assert ApiClient(reads_config).put("/users/member@example.org", {"tenants": [entry]}).json()[
            "tenants"
        ] == [entry]

    def test_an_owner_removing_a_member_gets_its_own_body_back(self, world: factories.World) -> None:
        answer = signed_in(world.owner).put("/users/member@example.org", {"tenants": []})
        assert (answer.status_code, answer.json()["tenants"]) == (200, [])
        assert not Membership.objects.filter(user=world.member).exists()
        assert signed_in(world.owner).get("/users/member@example.org").status_code == 403

    def test_an_owner_sees_only_its_own_tenant(self, world: factories.World) -> None:
        entry = {"tenantId": str(world.tenant.pk), "role": "member"}
        Membership.objects.create(user=world.stranger, tenant=world.tenant, role="member")
        answer = signed_in(world.owner).patch("/users/stranger@example.org/tenants", [entry])
        assert (answer.status_code, answer.json()) == (200, [entry])

    def test_an_owner_leaving_its_account_gets_the_account(self, world: factories.World) -> None:
        path, body = (
            f"/config/accounts/{world.account.pk}",
            {"name": "Acme", "owners": ["member@example.org"]},
        )
        answer = signed_in(world.owner).put(path, body)
        assert (answer.status_code, answer.json()["owners"]) == (200, ["member@example.org"])
        assert signed_in(world.owner).get(path).status_code == 403

    def test_a_token_that_may_not_read_gets_tenant_and_grant(self, world: factories.World) -> None:
        writer = ApiClient(
            factories.pat_token(world.platform_admin, "config:write", "users:write", accounts=["*"])
        )
        made = writer.post("/config/tenants", {"accountId": str(world.account.pk), "tenantName": "New"})
        assert (made.status_code, made.json()["tenantName"]) == (201, "New")
        assert writer.get(made["Location"]).status_code == 403
        body = {"tenantName": "Newer"}
        assert writer.put(f"{made['Location']}/config", body).json()["tenantName"] == "Newer"
        grant = {
            "grantee": "member@example.org",
            "resource": "tenant",
            "resourceId": made.json()["tenantId"],
            "permissions": ["config:write"],
        }
        answer = writer.post("/config/grants", grant)
        assert (answer.status_code, {**answer.json(), **grant}) == (201, answer.json())


class TestPrivacy:
    """What others than the user itself and platform admins see of a user."""

    def test_identity_and_terms_are_for_the_user_and_platform_admins(self, world: factories.World) -> None:
        User.objects.filter(pk=world.member.pk).update(
            identity_provider="corp", identity_subject="7", tos="0" * 32, display_name="Mia"
        )
        path = "/users/member@example.org"
        for user in (world.member, world.platform_admin):
            document = signed_in(user).get(path).json()
            assert (document["identity"]["subject"], document["tos"]) == ("7", "0" * 32)
        own = signed_in(world.member).get(path).json()
        narrow = factories.pat_token(world.platform_admin, "users:read", tenants=[str(world.tenant.pk)])
        for client in (signed_in(world.owner), signed_in(world.tenant_admin), ApiClient(narrow)):
            assert client.get(path).json() == {**own, "identity": None, "tos": None}

    def test_a_document_may_be_sent_back_as_it_was_read(self, world: factories.World) -> None:
        owner = signed_in(world.owner)
        document = owner.get("/users/member@example.org").json()
        answer = owner.put("/users/member@example.org", document)
        assert (answer.status_code, answer.json()["identity"], answer.json()["tos"]) == (200, None, None)


class TestLastAdmin:
    @pytest.mark.parametrize(
        ("body", "path"), [({"active": False}, "/active"), ({"roles": {"primary": "user"}}, "/roles/primary")]
    )
    def test_is_neither_demoted_nor_deactivated(
        self, world: factories.World, body: object, path: str
    ) -> None:
        client = signed_in(world.platform_admin)
        factories.make_user("sleeping@example.org", role="admin", is_active=False)
        answer = client.put("/users/admin@example.org", body)
        (detail,) = answer.json()["details"]
        assert (answer.status_code, detail["code"], detail["path"]) == (400, "last-admin", path)
        assert client.delete("/users/admin@example.org").status_code == 403
        world.platform_admin.refresh_from_db()
        assert world.platform_admin.is_staff

    def test_may_go_once_there_is_another(self, world: factories.World) -> None:
        factories.make_user("second@example.org", role="admin")
        client = signed_in(world.platform_admin)
        assert client.put("/users/admin@example.org", {"roles": {"primary": "user"}}).status_code == 200
        assert client.get("/users").json()["_links"]["items"] == [
            {"email": "admin@example.org", "type": "user", "href": "/users/admin@example.org"}
        ]

    def test_a_demotion_ends_the_wildcard_tokens_for_good(self, world: factories.World) -> None:
        second = factories.make_user("second@example.org", role="admin")
        scopes = [Scope.CONFIG_READ]
        wildcard, _ = create_pat(owner=second, name="all", scopes=scopes, accounts=["*"])
        narrow, _ = create_pat(owner=second, name="one", scopes=scopes, tenants=[str(world.tenant.pk)])
        client = signed_in(world.platform_admin)
        client.put("/users/second@example.org", {"roles": {"primary": "user"}})
        client.put("/users/second@example.org", {"roles": {"primary": "admin"}})
        live = PersonalAccessToken.objects.filter(revoked_at__isnull=True)
        assert [pat.pk for pat in live] == [narrow.pk]
        assert wildcard.pk != narrow.pk


class TestDelete:
    def test_deletes_and_ends_tokens_already_minted(self, world: factories.World) -> None:
        theirs = signed_in(world.member)
        answer = signed_in(world.platform_admin).delete("/users/MEMBER@example.org")
        assert (answer.status_code, answer.json()) == (
            200,
            {"success": True, "message": "The user member@example.org is deleted."},
        )
        after = theirs.get("/users/member@example.org")
        assert (after.status_code, after.json()["error"]) == (401, "invalid_token")
        assert signed_in(world.platform_admin).delete("/users/member@example.org").status_code == 404

    def test_names_tenants_and_accounts_left_without_an_owner(self, world: factories.World) -> None:
        account, tenant = world.account, world.tenant
        shared = factories.make_tenant(account, "Shared", owner=world.owner)
        Membership.objects.create(user=world.stranger, tenant=shared, role="owner")
        owned_by_both = factories.make_account("Both", owners=[world.owner, world.stranger])
        answer = signed_in(world.platform_admin).delete("/users/owner@example.org")
        assert (answer.status_code, answer.json()) == (
            200,
            {
                "success": True,
                "message": "The user owner@example.org is deleted. Without an owner now: "
                f"account 'Acme' ({account.pk}), tenant 'Warehouse' ({tenant.pk}).",
            },
        )
        assert list(account.owners.all()) == []
        assert list(owned_by_both.owners.all()) == [world.stranger]
        assert not Membership.objects.filter(tenant=tenant, role="owner").exists()
        read = signed_in(world.platform_admin).get(f"/config/accounts/{account.pk}")
        assert (read.status_code, read.json()["owners"]) == (200, [])
        history = (
            signed_in(world.platform_admin).get(f"/config/accounts/{account.pk}/history").json()["changes"]
        )
        assert [(change["seq"], change["userId"]) for change in history][:1] == [(1, "admin@example.org")]
        handed_over = {"name": "Acme", "owners": ["member@example.org"]}
        assert signed_in(world.platform_admin).put(f"/config/accounts/{account.pk}", handed_over).json()[
            "owners"
        ] == ["member@example.org"]

    def test_names_no_deleted_account_or_tenant(self, world: factories.World) -> None:
        for row in (world.account, world.tenant):
            type(row)._default_manager.filter(pk=row.pk).update(deleted_at=now())
        answer = signed_in(world.platform_admin).delete("/users/owner@example.org")
        assert answer.json()["message"] == "The user owner@example.org is deleted."


@pytest.mark.django_db(transaction=True)
def test_of_two_admins_demoting_each_other_at_once_one_remains() -> None:
    for _ in range(5):
        User.objects.all().delete()
        first, second = (factories.make_user(f"{name}@example.org", role="admin") for name in "ab")
        body = {"roles": {"primary": "user"}}
        answers = at_once(
            [
                partial(signed_in(first).put, f"/users/{second.email}", body),
                partial(signed_in(second).put, f"/users/{first.email}", body),
            ]
        )
        assert User.objects.filter(role="admin").count() == 1
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses[0] == 200
        assert statuses[1] in {400, 403}


@pytest.mark.parametrize("name", ["Ada\nLovelace", "Ada\u2028Lovelace", "Ada\x1b[31m"])
def test_names_are_of_one_line(world: factories.World, name: str) -> None:
    """They stand in mails and lists. Contract: 400 at the name."""
    owner, tenant = signed_in(world.owner), f"/config/tenants/{world.tenant.pk}"
    channels = [{"type": "email", "to": "owner@example.org"}]
    for method, path, body in (
        ("PUT", "/users/me", {"displayName": name}),
        ("POST", "/users/me/tokens", {"name": name, "scopes": ["config:read"]}),
        ("POST", f"{tenant}/rules/drafts", {"name": name}),
        ("POST", f"/tenants/{world.tenant.pk}/alerts", {"name": name, "kind": "leak", "channels": channels}),
    ):
        details = owner.request(method, path, body).json()["details"]
        assert [detail["code"] for detail in details] == ["not-a-line"], path
