"""The staff's pages of people: who may do what, revoking many rights at once, offboarding, files."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.access.credentials import create_pat, create_refresh_token
from accounts.access.scopes import ABILITIES, ALL_SCOPES, Scope
from accounts.admin import revoking
from accounts.admin.rights import far_reaching_rights, rights_of, rights_on
from accounts.memberships import change_memberships
from accounts.models import (
    Account,
    Event,
    Membership,
    PermissionGrant,
    PersonalAccessToken,
    RefreshToken,
    Revision,
    Tenant,
    User,
)
from accounts.models.tokens import OF_DASHBOARD
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.reading import text_of
from tests.admin.staff import page_text, prove_factor, require_roles, signed_in, support_client
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test import Client

PEOPLE = "/admin/people/"


def people_of(tenant: Tenant) -> str:
    return reverse("admin:tenant-people", args=[tenant.pk])


def of(person: User, page: str = "person") -> str:
    return reverse(f"admin:{page}", args=[person.pk])


def make_pat(owner: User, *scopes: str, tenants: list[str] | None = None, **more: Any) -> PersonalAccessToken:
    given = [Scope(it) for it in scopes] or [Scope.CONFIG_READ]
    pat, _ = create_pat(owner=owner, name="ci", scopes=given, tenants=tenants or (), **more)
    return pat


def make_grant(grantee: User, tenant: Tenant, by: User) -> PermissionGrant:
    return PermissionGrant.objects.create(
        grantee=grantee,
        resource="tenant",
        resource_id=tenant.pk,
        permissions=["config:read"],
        granted_by=by,
    )


def read_csv(answer: Any) -> list[dict[str, str]]:
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def acts() -> list[dict[str, Any] | None]:
    return [event.after for event in Event.objects.filter(kind="staff.acted").order_by("pk")]


@pytest.mark.slow
def test_access_to_each_page(staff: Client, world: factories.World) -> None:
    looks = {
        "review": PEOPLE,
        "people": people_of(world.tenant),
        "person": of(world.member),
    }
    admins = {
        "review": "/admin/people/revoke/?right=x",
        "tenant": reverse("admin:tenant-revoke", args=[world.tenant.pk]) + "?right=x",
        "member": reverse("admin:tenant-member", args=[world.tenant.pk]),
        "person": of(world.member, "person-revoke") + "?right=x",
        "offboard": of(world.member, "person-offboard"),
    }
    require_roles(looks, admins, world, staff)
    world.member.refresh_from_db()
    assert world.member.is_active
    assert acts() == []


class TestTables:
    def test_a_tenant_shows_every_right_on_it(self, staff: Client, world: factories.World) -> None:
        tenant, pat = world.tenant, make_pat(world.tenant_admin, tenants=[str(world.tenant.pk)])
        make_pat(world.platform_admin, tenants=["*"])
        make_pat(world.stranger, tenants=[str(world.stranger_tenant.pk)])
        make_grant(world.stranger, tenant, world.owner)
        PersonalAccessToken.objects.filter(pk=pat.pk).update(last_used_at=now())
        rights = rights_on(tenant)
        assert [(it.kind, it.person.email, it.has_wildcard) for it in rights.rows] == [
            ("ownership", "owner@example.org", False),
            ("membership", "member@example.org", False),
            ("membership", "owner@example.org", False),
            ("membership", "tenant-admin@example.org", False),
            ("grant", "stranger@example.org", False),
            ("token", "admin@example.org", True),
            ("token", "tenant-admin@example.org", False),
        ]
        text = page_text(staff, people_of(tenant))
        assert (
            "owner@example.org account owner ownership change the account, its owners and domains, create "
            in text
        )
        assert (
            "permissions from owner@example.org grant read rules and configuration Warehouse permanent"
            in text
        )
        assert "admin@example.org ci token read rules and configuration everything" in text
        assert "no end" not in text

    def test_the_last_use_of_a_membership_is_the_last_use_of_a_session(self, world: factories.World) -> None:
        session, _ = create_refresh_token(user=world.member)
        moment = now()
        RefreshToken.objects.filter(pk=session.pk).update(last_used_at=moment)
        by_person = {it.person.email: it.last_used_at for it in rights_on(world.tenant).rows}
        assert by_person["member@example.org"] == moment
        assert by_person["owner@example.org"] is None

    def test_expired_access_is_not_listed(self, staff: Client, world: factories.World) -> None:
        over = Membership.objects.create(
            user=world.stranger, tenant=world.tenant, role="member", ends_at=now() - dt.timedelta(minutes=1)
        )
        assert "stranger@example.org" not in {it.person.email for it in rights_on(world.tenant).rows}
        assert [it.on for it in rights_of(world.stranger).rows if it.kind == "membership"] == [
            [world.stranger_tenant.pk]
        ]
        assert [it.kind for it in far_reaching_rights().rows] == ["role"]
        over.ends_at = now() + dt.timedelta(hours=1)
        over.save()
        assert "stranger@example.org" in {it.person.email for it in rights_on(world.tenant).rows}
        assert [it.kind for it in far_reaching_rights().rows] == ["role", "membership"]

    def test_ended_rights_are_not_listed(self, world: factories.World) -> None:
        pat = make_pat(world.member, tenants=[str(world.tenant.pk)])
        grant = make_grant(world.member, world.tenant, world.owner)
        session, _ = create_refresh_token(user=world.member)
        assert [it.kind for it in rights_of(world.member).rows] == ["membership", "grant", "token", "session"]
        for row in (pat, grant, session):
            row.revoked_at = now()
            row.save()
        assert [it.kind for it in rights_of(world.member).rows] == ["membership"]

    def test_the_review_lists_far_reaching_rights(self, staff: Client, world: factories.World) -> None:
        make_pat(world.platform_admin, accounts=["*"])
        support = factories.make_user("support@example.org", is_support=True)
        Membership.objects.create(
            user=support, tenant=world.tenant, role="member", ends_at=now() + dt.timedelta(hours=1)
        )
        rows = far_reaching_rights().rows
        assert [(it.kind, it.person.email, it.what) for it in rows][:3] == [
            ("role", "admin@example.org", "platform admin"),
            ("role", "support@example.org", "support"),
            ("membership", "support@example.org", "member"),
        ]
        assert "Platform admins and support" in page_text(staff, PEOPLE)

    def test_a_long_table_is_cut_and_its_file_is_not(
        self, staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("accounts.admin.pages.people.MAX_ROWS", 2)
        html = staff.get(people_of(world.tenant)).content.decode()
        assert "There are more" in html
        rows = read_csv(staff.get(people_of(world.tenant), {"format": "csv"}))
        assert len(rows) == 4

    def test_it_says_what_each_right_allows(self, staff: Client, world: factories.World) -> None:
        make_pat(world.member, "config:read", "cache-admin", tenants=[str(world.tenant.pk)])
        text = page_text(staff, people_of(world.tenant))
        reads = "read rules and configuration, read requests, run SQL, read summaries, savings and digests"
        assert f"member membership {reads} Warehouse" in text
        assert "token read rules and configuration, invalidate results Warehouse" in text
        Membership.objects.filter(user=world.member).update(role="owner")
        User.objects.filter(pk=world.member.pk).update(role="guest")
        assert f"owner membership {reads}, see members Warehouse" in page_text(staff, of(world.member))

    @pytest.mark.parametrize(
        ("path", "title"),
        [
            ("{person}", "Users"),
            ("{tenant}", "Tenants"),
            ("{account}", "Accounts"),
            (PEOPLE, "Access review"),
        ],
    )
    def test_the_sidebar_marks_where_the_page_belongs(
        self, staff: Client, world: factories.World, path: str, title: str
    ) -> None:
        addresses = {
            "person": of(world.member),
            "tenant": people_of(world.tenant),
            "account": reverse("admin:account", args=[world.account.pk]),
        }
        groups = staff.get(path.format(**addresses)).context["sidebar_navigation"]
        assert [it["title"] for group in groups for it in group["items"] if it["active"]] == [title]

    def test_every_scope_has_words(self) -> None:
        assert set(ABILITIES) == ALL_SCOPES

    def test_sign_ins_to_the_dashboard_are_one_row_and_end_together(
        self, staff: Client, world: factories.World
    ) -> None:
        tokens = [make_pat(world.member, tenants=[str(world.tenant.pk)]) for _ in range(3)]
        PersonalAccessToken.objects.filter(owner=world.member).update(name=OF_DASHBOARD)
        html = staff.get(of(world.member)).content.decode()
        assert html.count("Dashboard, until sign-out: 3 sign-ins") == 1 + 1
        (key,) = re.findall(r'name="right" value="(token:[^"]+)"', html)
        assert sorted(key.split(",")) == sorted(f"token:{it.pk}" for it in tokens)
        address = reverse("admin:person-revoke", args=[world.member.pk])
        assert staff.post(address, {"right": key, "reason": "x"}).status_code == 302
        assert not PersonalAccessToken.objects.filter(owner=world.member, revoked_at__isnull=True).exists()

    def test_tokens_that_people_made_are_not_cut_off_by_sign_ins(self, world: factories.World) -> None:
        made = [make_pat(world.member) for _ in range(3)]
        PersonalAccessToken.objects.filter(pk__in=[it.pk for it in made[:2]]).update(name=OF_DASHBOARD)
        rights = rights_of(world.member, limit=2)
        assert [it.what for it in rights.rows if it.kind == "token"] == ["ci", OF_DASHBOARD]

    def test_the_number_of_queries_does_not_grow(self, staff: Client, world: factories.World) -> None:
        make_grant(world.stranger, world.tenant, world.owner)
        make_pat(world.owner, tenants=[str(world.tenant.pk)])

        def count(address: str) -> int:
            with CaptureQueriesContext(connection) as captured:
                assert staff.get(address).status_code == 200
            return len(captured)

        addresses = [people_of(world.tenant), of(world.owner), PEOPLE, of(world.owner, "person-offboard")]
        before = [count(address) for address in addresses]
        for number in range(3):
            user = factories.make_user(f"u{number}@example.org", is_support=True)
            tenant = factories.make_tenant(world.account, f"T{number}", owner=world.owner, member=user)
            Membership.objects.create(user=user, tenant=world.tenant, role="member")
            make_pat(user, tenants=[str(world.tenant.pk)])
            make_pat(world.owner, tenants=[str(tenant.pk)])
            make_grant(user, world.tenant, world.owner)
            create_refresh_token(user=world.owner)
        assert [count(address) for address in addresses] == before
        assert max(before) <= 25

    def test_no_large_table_is_scanned(self, world: factories.World) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO accounts_user (email, password, display_name, role, scopes, identity_provider,"
                " identity_subject, email_verified, tos, is_active, created_at, modified_at)"
                " SELECT 'n' || n || '@example.org', '', '', 'user', '{}', '', '', true, '', true, now(),"
                " now() FROM generate_series(1, 5000) AS n"
            )
            cursor.execute(
                "INSERT INTO accounts_personalaccesstoken (digest, prefix, created_at, owner_id, name,"
                " scopes, tenants, accounts, endpoints, expires_at)"
                " SELECT sha256(id::text::bytea), 'p', now(), id,"
                " 'n', '{}', ARRAY[gen_random_uuid()::text], '{}', '[]',"
                " now() + interval '1 day' FROM accounts_user"
            )
            cursor.execute(
                "INSERT INTO accounts_membership (user_id, tenant_id, role) SELECT id, %s, 'owner'"
                " FROM accounts_user WHERE email LIKE 'n%%'",
                [world.stranger_tenant.pk],
            )
            cursor.execute("ANALYZE accounts_user, accounts_personalaccesstoken, accounts_membership")
        with CaptureQueriesContext(connection) as captured:
            rights_of(world.owner)
            rights_on(world.tenant)
            far_reaching_rights()
        with connection.cursor() as cursor:
            # These tables are small, so that a scan would be cheap. Each must have an index to go by.
            cursor.execute("SET LOCAL enable_seqscan = off")
            for query in captured.captured_queries:
                cursor.execute(f"EXPLAIN {query['sql']}")
                plan = "\n".join(line for (line,) in cursor.fetchall())
                for table in ("user", "personalaccesstoken", "membership"):
                    assert f"Seq Scan on accounts_{table} " not in plan, (query["sql"], plan)


class TestFile:
    def test_it_has_the_rights_and_leaves_an_event(self, world: factories.World) -> None:
        pat = make_pat(world.member, tenants=[str(world.tenant.pk)])
        PersonalAccessToken.objects.filter(pk=pat.pk).update(name="=1+1")
        answer = support_client().get(of(world.member), {"format": "csv"})
        assert answer["Content-Disposition"] == 'attachment; filename="person-access.csv"'
        rows = read_csv(answer)
        assert [(it["person"], it["kind"], it["right"], it["on"]) for it in rows] == [
            ("member@example.org", "membership", "member", "Warehouse"),
            ("member@example.org", "token", "'=1+1", "Warehouse"),
        ]
        assert rows[0]["ids"] == str(world.tenant.pk)
        event = Event.objects.get(kind="staff.acted")
        assert (event.actor, event.subject) == ("support@example.org", "member@example.org")
        assert event.after == {"act": "rights.exported", "rows": 2}

    def test_files_of_a_tenant_and_of_the_review(self, staff: Client, world: factories.World) -> None:
        assert len(read_csv(staff.get(people_of(world.tenant), {"format": "csv"}))) == 4
        rows = read_csv(staff.get(PEOPLE, {"format": "csv"}))
        assert [(it["person"], it["right"], it["on"]) for it in rows] == [
            ("admin@example.org", "platform admin", "everything")
        ]
        assert Event.objects.filter(kind="staff.acted", tenant_id=world.tenant.pk).count() == 1


class TestRevoking:
    def revoke(self, client: Client, address: str, *keys: str, reason: str = "review 7") -> Any:
        return client.post(address, {"right": keys, "reason": reason}, follow=True)

    def test_many_end_at_once(self, staff: Client, world: factories.World) -> None:
        tenant = world.tenant
        pat = make_pat(world.tenant_admin, tenants=[str(tenant.pk)])
        grant = make_grant(world.stranger, tenant, world.owner)
        limited = Membership.objects.create(
            user=world.platform_admin, tenant=tenant, role="member", ends_at=now() + dt.timedelta(hours=1)
        )
        member = Membership.objects.get(user=world.member)
        keys = [f"membership:{member.pk}", f"membership:{limited.pk}", f"grant:{grant.pk}", f"token:{pat.pk}"]
        address = reverse("admin:tenant-revoke", args=[tenant.pk])
        asked = staff.get(address, {"right": keys}).content.decode()
        assert "4 to revoke" in text_of(asked)
        assert all(f'value="{key}"' in asked for key in keys)
        answer = self.revoke(staff, address, *keys)
        assert "Revoked 4 of 4." in text_of(answer.content.decode())
        kinds = ["membership.removed", "membership.removed", "grant.revoked", "pat.revoked", "staff.acted"]
        events = Event.objects.filter(kind__in=kinds).order_by("pk")
        assert sorted(it.kind for it in events) == sorted(kinds)
        assert {(it.actor, it.reason) for it in events} == {("admin@example.org", "review 7")}
        assert events.get(kind="staff.acted").tenant_id == tenant.pk
        assert [it.kind for it in rights_on(tenant).rows] == ["ownership", "membership", "membership"]

    def test_sessions_of_a_person_end(self, staff: Client, world: factories.World) -> None:
        session, _ = create_refresh_token(user=world.member)
        self.revoke(staff, of(world.member, "person-revoke"), f"session:{session.pk}")
        session.refresh_from_db()
        assert session.revoked_at is not None
        assert Event.objects.get(kind="session.ended").before == {"session": session.pk}

    def test_an_account_keeps_an_owner(self, staff: Client, world: factories.World) -> None:
        address = of(world.owner, "person-revoke")
        key = f"ownership:{Account.owners.through.objects.get(user=world.owner).pk}"
        html = staff.get(address, {"right": key}).content.decode()
        assert "The account Acme would have no owner: this is refused." in text_of(html)
        assert 'name="reason"' not in html
        refused = self.revoke(staff, address, key)
        assert refused.status_code == 400
        assert world.account.owners.count() == 1
        world.account.owners.add(world.member)
        assert "Revoked 1 of 1." in text_of(self.revoke(staff, address, key).content.decode())
        assert [it.email for it in world.account.owners.all()] == ["member@example.org"]
        assert Revision.objects.get(kind="account", account_id=world.account.pk).seq == 1

    def test_two_owners_at_once_are_the_last(self, staff: Client, world: factories.World) -> None:
        world.account.owners.add(world.member)
        through = Account.owners.through.objects.filter(account=world.account)
        address = reverse("admin:tenant-revoke", args=[world.tenant.pk])
        keys = [f"ownership:{row.pk}" for row in through]
        assert self.revoke(staff, address, *keys).status_code == 400
        assert world.account.owners.count() == 2

    def test_a_tenant_may_lose_its_owner_but_not_unseen(self, staff: Client, world: factories.World) -> None:
        member = Membership.objects.get(user=world.owner)
        address = reverse("admin:tenant-revoke", args=[world.tenant.pk])
        assert "The tenant Warehouse would have no owner." in page_text(
            staff, address, right=f"membership:{member.pk}"
        )
        self.revoke(staff, address, f"membership:{member.pk}")
        assert not Membership.objects.filter(user=world.owner).exists()

    def test_all_or_nothing(
        self, staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> bool:
            raise RuntimeError("killed")

        pat = make_pat(world.tenant_admin, tenants=[str(world.tenant.pk)])
        member = Membership.objects.get(user=world.member)
        monkeypatch.setattr(revoking, "end_pat", fail)
        address = reverse("admin:tenant-revoke", args=[world.tenant.pk])
        with pytest.raises(RuntimeError):
            self.revoke(staff, address, f"membership:{member.pk}", f"token:{pat.pk}")
        assert Membership.objects.filter(pk=member.pk).exists()
        assert not Event.objects.filter(kind="membership.removed").exists()

    @pytest.mark.parametrize("keys", [(), ("membership:0",), ("x",), ("role:1",), ("token:\0",)])
    def test_rights_of_other_pages_are_not_revoked(
        self, staff: Client, world: factories.World, keys: tuple[str, ...]
    ) -> None:
        elsewhere = Membership.objects.get(user=world.stranger)
        address = reverse("admin:tenant-revoke", args=[world.tenant.pk])
        answer = self.revoke(staff, address, *keys, f"membership:{elsewhere.pk}")
        assert answer.status_code == 409
        for page in (answer, staff.get(address, {"right": keys or ("y",)})):
            assert "Nothing is chosen that is in force." in text_of(page.content.decode())
            assert f'<a href="{people_of(world.tenant)}">Go back</a> and choose' in page.content.decode()
        assert Membership.objects.filter(pk=elsewhere.pk).exists()
        assert acts() == []

    def test_a_reason_is_needed(self, staff: Client, world: factories.World) -> None:
        member = Membership.objects.get(user=world.member)
        address = of(world.member, "person-revoke")
        assert self.revoke(staff, address, f"membership:{member.pk}", reason="").status_code == 400
        assert Membership.objects.filter(pk=member.pk).exists()

    def test_roles_are_not_offered(self, staff: Client, world: factories.World) -> None:
        html = staff.get(PEOPLE).content.decode()
        assert "platform admin" in html
        assert 'name="right"' not in html

    def test_support_is_offered_nothing(self, world: factories.World) -> None:
        support = support_client()
        for address in (people_of(world.tenant), of(world.member)):
            html = support.get(address).content.decode()
            assert 'name="right"' not in html
            assert "A platform admin revokes." in html
            assert "Offboard" not in html


class TestMember:
    def test_a_tenant_without_owner_gets_one(self, staff: Client, world: factories.World) -> None:
        Membership.objects.filter(user=world.owner).delete()
        address = reverse("admin:tenant-member", args=[world.tenant.pk])
        form = {"email": " Member@Example.org", "role": "owner", "reason": "hand-over"}
        answer = staff.post(address, form, follow=True)
        assert "member@example.org is owner of Warehouse." in text_of(answer.content.decode())
        assert Membership.objects.get(user=world.member).role == "owner"
        event = Event.objects.get(kind="membership.changed")
        assert (event.before, event.after, event.reason) == (
            {"role": "member"},
            {"role": "owner"},
            "hand-over",
        )

    def test_staff_do_not_add_themselves(self, staff: Client, world: factories.World, settings: Any) -> None:
        page = reverse("admin:tenant-member", args=[world.tenant.pk])
        values = {"email": world.platform_admin.email, "role": "member", "reason": "curious"}
        prove_factor(staff, world.platform_admin)
        settings.STAFF_SECOND_FACTOR = True
        answer = staff.post(page, values)
        assert answer.status_code == 403
        assert "You may not make yourself a member of this tenant." in text_of(answer.content.decode())
        assert not world.platform_admin.memberships.exists()

    def test_an_unknown_user_is_reported(self, staff: Client, world: factories.World) -> None:
        address = reverse("admin:tenant-member", args=[world.tenant.pk])
        form = {"email": "unknown@example.org", "role": "owner", "reason": "x"}
        refused = staff.post(address, form)
        assert refused.status_code == 404
        assert "There is no user 'unknown@example.org'." in text_of(refused.content.decode())
        world.tenant.deleted_at = now()
        world.tenant.save()
        assert staff.post(address, {**form, "email": "member@example.org"}).status_code == 404
        assert Membership.objects.get(user=world.member).role == "member"


def test_the_reader_is_seen_now(staff: Client, world: factories.World) -> None:
    shown = page_text(staff, of(world.platform_admin))
    assert re.search("permanent now .*Uses are noted once a minute", shown)


class TestOffboarding:
    def form(self, world: factories.World, **changes: str) -> dict[str, str]:
        return {
            "everything": "tenant-admin@example.org",
            str(world.account.pk): "",
            str(world.tenant.pk): "",
            "reason": "left the company",
            **changes,
        }

    def test_sole_ownerships_go_first_then_everything_ends(
        self, staff: Client, world: factories.World
    ) -> None:
        owner, address = world.owner, of(world.owner, "person-offboard")
        shared = factories.make_account("Shared", owners=[owner, world.member])
        make_pat(owner, tenants=[str(world.tenant.pk)])
        make_grant(owner, world.stranger_tenant, world.stranger)
        bearer = ApiClient(factories.sign_in(owner))
        assert bearer.get(f"/config/tenants/{world.tenant.pk}").status_code == 200
        text = page_text(staff, address)
        told = "Suggested: tenant-admin@example.org, admin of Warehouse, never seen. "
        others = "Another owner for the account Acme optional Another owner for the tenant Warehouse optional"
        assert f"New owner of everything below {told}{others}" in text
        assert "Shared" not in text.partition("What ends")[0]
        answer = staff.post(address, self.form(world), follow=True)
        told = (
            "owner@example.org is offboarded. Ended: 1 membership, 1 grant, 1 token. "
            "tenant-admin@example.org now owns Acme, Warehouse."
        )
        assert told in text_of(answer.content.decode())
        owner.refresh_from_db()
        assert not owner.is_active
        assert rights_of(owner).rows == []
        assert [it.email for it in world.account.owners.all()] == ["tenant-admin@example.org"]
        assert [it.email for it in shared.owners.all()] == ["member@example.org"]
        assert Membership.objects.get(user=world.tenant_admin).role == "owner"
        assert bearer.get(f"/config/tenants/{world.tenant.pk}").status_code == 401
        assert acts() == [
            {
                "act": "person.offboarded",
                "handedOver": 2,
                "memberships": 1,
                "accounts": 2,
                "grants": 1,
                "tokens": 1,
            }
        ]
        account = page_text(staff, reverse("admin:account", args=[world.account.pk]))
        assert "admin@example.org offboarded owner@example.org changed “Owners” left the company" in account
        reasons = Event.objects.filter(actor="admin@example.org").values_list("reason", flat=True)
        assert set(reasons) == {"left the company"}
        kinds = set(Event.objects.filter(subject="owner@example.org").values_list("kind", flat=True))
        assert {
            "membership.removed",
            "grant.revoked",
            "pat.revoked",
            "session.ended",
            "user.deactivated",
        } <= kinds

    def test_who_could_own_it_is_suggested_by_role_and_last_use(
        self, staff: Client, world: factories.World
    ) -> None:
        def suggested() -> list[tuple[str, str]]:
            fields = staff.get(of(world.owner, "person-offboard")).context["form"].fields.values()
            return [(it.initial, it.help_text) for it in fields if it.label.endswith(("below", "Warehouse"))]

        def heir(user: User, right: str) -> tuple[str, str]:
            return user.email, f"Suggested: {user.email}, {right}."

        tenant, admin, of_all = world.tenant, world.tenant_admin, ("", "")
        Membership.objects.create(tenant=tenant, user=world.stranger, role="admin")
        other = factories.make_tenant(world.account, "Lake", owner=world.member)
        admin.last_login = now() - dt.timedelta(days=3, minutes=1)
        admin.save()
        nearest = heir(admin, "admin of Warehouse, last seen 3 days ago")
        assert suggested() == [heir(world.member, "owner of Lake, never seen"), nearest]
        Membership.objects.filter(tenant=other).delete()
        assert suggested() == [nearest, of_all]
        User.objects.filter(pk=admin.pk).update(is_active=False)
        assert suggested() == [heir(world.stranger, "admin of Warehouse, never seen"), of_all]
        world.stranger.memberships.update(ends_at=now() + dt.timedelta(hours=1))
        assert suggested() == [("", "There is no other active owner or admin to suggest."), of_all]
        world.account.owners.add(world.stranger)
        [one] = suggested()
        assert one == heir(world.stranger, "owner of the account Acme, never seen")

    @pytest.mark.parametrize(
        ("heir", "said"),
        [
            ("unknown@example.org", "There is no other active user 'unknown@example.org'."),
            ("owner@example.org", "There is no other active user 'owner@example.org'."),
            ("gone@example.org", "There is no other active user 'gone@example.org'."),
        ],
    )
    def test_without_an_heir_nothing_happens(
        self, staff: Client, world: factories.World, heir: str, said: str
    ) -> None:
        factories.make_user("gone@example.org", is_active=False)
        form = self.form(world, **{str(world.tenant.pk): heir})
        answer = staff.post(of(world.owner, "person-offboard"), form)
        assert answer.status_code == 400
        assert said in text_of(answer.content.decode())
        world.owner.refresh_from_db()
        assert world.owner.is_active
        assert [it.email for it in world.account.owners.all()] == ["owner@example.org"]
        assert acts() == []

    def test_a_new_owner_of_everything_is_required(self, staff: Client, world: factories.World) -> None:
        form = self.form(world, everything="")
        answer = staff.post(of(world.owner, "person-offboard"), form)
        assert answer.status_code == 400
        assert answer.context["form"].errors == {"everything": ["There is no other owner. Name a new one."]}
        assert text_of(answer.content.decode()).count("There is no other owner.") == 1

    def test_each_wrong_heir_is_told_at_its_field(self, staff: Client, world: factories.World) -> None:
        fields = {str(world.tenant.pk): "a@example.org", str(world.account.pk): "b@example.org"}
        answer = staff.post(of(world.owner, "person-offboard"), self.form(world, **fields))
        form = answer.context["form"]
        assert form.errors == {
            str(world.tenant.pk): ["There is no other active user 'a@example.org'."],
            str(world.account.pk): ["There is no other active user 'b@example.org'."],
        }
        assert f"/{world.tenant.pk}:" not in text_of(answer.content.decode())

    def test_one_heir_of_everything_and_another_of_one(self, staff: Client, world: factories.World) -> None:
        address = of(world.owner, "person-offboard")
        form = {"everything": "nobody@example.org", "reason": "left"}
        answer = staff.post(address, form)
        errors = {"everything": ["There is no other active user 'nobody@example.org'."]}
        assert answer.context["form"].errors == errors
        form |= {"everything": "tenant", str(world.tenant.pk): "member@example.org"}
        assert staff.post(address, form).status_code == 302
        assert [it.email for it in world.account.owners.all()] == ["tenant-admin@example.org"]
        assert Membership.objects.get(tenant=world.tenant, role="owner").user == world.member

    @pytest.mark.parametrize("gives_billing", [True, False])
    def test_mails_about_billing_go_to_another_owner(
        self, staff: Client, world: factories.World, gives_billing: bool
    ) -> None:
        shared = factories.make_account("Shared", owners=[world.owner, world.member])
        lent = factories.make_account("Lent", owners=[world.stranger])
        Account.objects.filter(pk__in=[world.account.pk, shared.pk, lent.pk]).update(
            billing_email="owner@example.org"
        )
        address = of(world.owner, "person-offboard")
        text = page_text(staff, address)
        assert "Mails about billing go to the new owner of Acme and to another owner of Lent, Shared" in text
        assert "Otherwise they still go to owner@example.org." in text
        form = self.form(world, **({"billing": "on"} if gives_billing else {}))
        assert staff.post(address, form).status_code == 302
        after = ["tenant-admin@example.org", "stranger@example.org", "member@example.org"]
        billed = Account.objects.filter(pk__in=[world.account.pk, shared.pk, lent.pk]).order_by("name")
        emails = list(billed.values_list("billing_email", flat=True))
        assert emails == (after if gives_billing else ["owner@example.org"] * 3)

    def test_staff_lose_their_role(self, staff: Client, world: factories.World) -> None:
        admin = factories.make_user("two@example.org", role="admin", is_support=True)
        wildcard = make_pat(admin, tenants=["*"])
        colleague = signed_in(admin)
        assert colleague.get("/admin/").status_code == 200
        assert staff.post(of(admin, "person-offboard"), {"reason": "left"}).status_code == 302
        admin.refresh_from_db()
        wildcard.refresh_from_db()
        assert (admin.role, admin.is_support, admin.is_active) == ("user", False, False)
        assert wildcard.revoked_at is not None
        assert colleague.get("/admin/").status_code == 302

    def test_oneself_and_the_last_admin_stay(self, staff: Client, world: factories.World) -> None:
        address = of(world.platform_admin, "person-offboard")
        assert address not in staff.get(of(world.platform_admin)).content.decode()
        html = staff.get(address).content.decode()
        assert "This is you. Ask another platform admin." in html
        assert 'name="reason"' not in html
        assert staff.post(address, {"reason": "x"}).status_code == 400
        world.platform_admin.refresh_from_db()
        assert world.platform_admin.is_active
        assert revoking.why_not_offboard(world.platform_admin, actor="x@example.org").startswith(
            "This is the last active platform admin."
        )

    def test_an_offboarded_person_is_not_offered_it_again(
        self, staff: Client, world: factories.World
    ) -> None:
        address = of(world.member, "person-offboard")
        User.objects.filter(pk=world.member.pk).update(is_active=False)
        # Who is only deactivated still has rights to end.
        assert address in staff.get(of(world.member)).content.decode()
        assert staff.post(address, {"reason": "left"}).status_code == 302
        assert address not in staff.get(of(world.member)).content.decode()
        html = staff.get(address).content.decode()
        assert "The person is inactive and has no right any more." in html
        assert 'name="reason"' not in html
        assert staff.post(address, {"reason": "left"}).status_code == 400
        assert len(acts()) == 1

    def test_a_tenant_gained_after_the_page_was_shown_has_the_owner_of_everything(
        self, staff: Client, world: factories.World
    ) -> None:
        """A tenant that the person got after the page was shown is not left without owner."""
        form = self.form(world)
        tenant = factories.make_tenant(world.account, "New")
        change_memberships(
            world.owner, stored={}, added={tenant.pk: "owner"}, removed=(), actor="x@example.org"
        )
        answer = staff.post(of(world.owner, "person-offboard"), form)
        assert answer.status_code == 302
        assert tenant.memberships.get(role="owner").user == world.tenant_admin


class TestPerson:
    def test_an_email_leads_to_its_person(self, staff: Client, world: factories.World) -> None:
        answer = staff.get("/admin/people/of/", {"email": " MEMBER@example.org"})
        assert answer["Location"] == of(world.member)
        for email in ("unknown@example.org", "", "\0"):
            answer = staff.get("/admin/people/of/", {"email": email})
            assert answer.status_code == 404
            assert "There is nothing here" in answer.content.decode()
        assert staff.get(reverse("admin:person", args=[2**40])).status_code == 404

    def test_events_about_the_person_are_there(self, staff: Client, world: factories.World) -> None:
        assert "No event names this person." in page_text(staff, of(world.stranger))
        make_grant(world.stranger, world.tenant, world.owner)
        make_pat(world.stranger)
        assert "stranger@example.org created a personal access token" in page_text(staff, of(world.stranger))

    def test_a_tenant_that_is_gone_is_its_id(self, staff: Client, world: factories.World) -> None:
        gone = uuid4()
        make_pat(world.stranger, tenants=[str(gone)])
        assert str(gone) in page_text(staff, of(world.stranger))

    def test_access_is_offered_or_its_end(self, staff: Client, world: factories.World) -> None:
        take = reverse("admin:tenant-access", args=[world.tenant.pk])
        end = reverse("admin:tenant-access-end", args=[world.tenant.pk])
        html = staff.get(people_of(world.tenant)).content.decode()
        assert take in html
        assert end not in html
        staff.post(take, {"hours": 1, "reason": "x"})
        html = staff.get(people_of(world.tenant)).content.decode()
        assert end in html

    def test_a_lasting_member_is_offered_neither(self, staff: Client, world: factories.World) -> None:
        take = reverse("admin:tenant-access", args=[world.tenant.pk])
        end = reverse("admin:tenant-access-end", args=[world.tenant.pk])
        Membership.objects.create(user=world.platform_admin, tenant=world.tenant, role="member")
        html = staff.get(people_of(world.tenant)).content.decode()
        assert take not in html
        assert end not in html
        assert "You are a member of this tenant already." in page_text(staff, take, status=409)
        assert "You have no limited access to this tenant." in page_text(staff, end, status=409)
