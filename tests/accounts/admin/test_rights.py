"""Tables of rights on staff pages, their files, and revoking many rights at once."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.access.credentials import create_refresh_token
from accounts.access.scopes import ABILITIES, ALL_SCOPES
from accounts.admin import rights
from accounts.admin.rights import far_reaching_rights, rights_of, rights_on
from accounts.models import Account, Event, Membership, PersonalAccessToken, RefreshToken, Revision, User
from accounts.models.tokens import OF_DASHBOARD
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.accounts.admin.people import PEOPLE, acts, make_grant, make_pat, of, people_of, read_csv
from tests.admin.staff import page_text, support_client, text_of

if TYPE_CHECKING:
    from django.test import Client


class TestTables:
    def test_a_tenant_shows_every_right_on_it(self, staff: Client, world: factories.World) -> None:
        tenant, pat = world.tenant, make_pat(world.tenant_admin, tenants=[str(world.tenant.pk)])
        make_pat(world.platform_admin, tenants=["*"])
        make_pat(world.stranger, tenants=[str(world.stranger_tenant.pk)])
        make_grant(world.stranger, tenant, world.owner)
        PersonalAccessToken.objects.filter(pk=pat.pk).update(last_used_at=now())
        rights = rights_on(tenant)
        assert [(right.kind, right.person.email, right.has_wildcard) for right in rights.rows] == [
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
        by_person = {right.person.email: right.last_used_at for right in rights_on(world.tenant).rows}
        assert by_person["member@example.org"] == moment
        assert by_person["owner@example.org"] is None

    def test_expired_access_is_not_listed(self, staff: Client, world: factories.World) -> None:
        over = Membership.objects.create(
            user=world.stranger, tenant=world.tenant, role="member", ends_at=now() - dt.timedelta(minutes=1)
        )
        assert "stranger@example.org" not in {right.person.email for right in rights_on(world.tenant).rows}
        assert [right.on for right in rights_of(world.stranger).rows if right.kind == "membership"] == [
            [world.stranger_tenant.pk]
        ]
        assert [right.kind for right in far_reaching_rights().rows] == ["role"]
        over.ends_at = now() + dt.timedelta(hours=1)
        over.save()
        assert "stranger@example.org" in {right.person.email for right in rights_on(world.tenant).rows}
        assert [right.kind for right in far_reaching_rights().rows] == ["role", "membership"]

    def test_ended_rights_are_not_listed(self, world: factories.World) -> None:
        pat = make_pat(world.member, tenants=[str(world.tenant.pk)])
        grant = make_grant(world.member, world.tenant, world.owner)
        session, _ = create_refresh_token(user=world.member)
        assert [right.kind for right in rights_of(world.member).rows] == [
            "membership",
            "grant",
            "token",
            "session",
        ]
        for row in (pat, grant, session):
            row.revoked_at = now()
            row.save()
        assert [right.kind for right in rights_of(world.member).rows] == ["membership"]

    def test_the_review_lists_far_reaching_rights(self, staff: Client, world: factories.World) -> None:
        make_pat(world.platform_admin, accounts=["*"])
        support = factories.make_user("support@example.org", is_support=True)
        Membership.objects.create(
            user=support, tenant=world.tenant, role="member", ends_at=now() + dt.timedelta(hours=1)
        )
        rows = far_reaching_rights().rows
        assert [(right.kind, right.person.email, right.what) for right in rows][:3] == [
            ("role", "admin@example.org", "platform admin"),
            ("role", "support@example.org", "support"),
            ("membership", "support@example.org", "member"),
        ]
        assert "Platform admins and support" in page_text(staff, PEOPLE)

    def test_a_long_table_is_cut_and_its_file_is_not(
        self, staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("accounts.admin.people.MAX_ROWS", 2)
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
        assert [item["title"] for group in groups for item in group["items"] if item["active"]] == [title]

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
        assert sorted(key.split(",")) == sorted(f"token:{token.pk}" for token in tokens)
        address = reverse("admin:person-revoke", args=[world.member.pk])
        assert staff.post(address, {"right": key, "reason": "x"}).status_code == 302
        assert not PersonalAccessToken.objects.filter(owner=world.member, revoked_at__isnull=True).exists()

    def test_tokens_that_people_made_are_not_cut_off_by_sign_ins(self, world: factories.World) -> None:
        made = [make_pat(world.member) for _ in range(3)]
        PersonalAccessToken.objects.filter(pk__in=[token.pk for token in made[:2]]).update(name=OF_DASHBOARD)
        rights = rights_of(world.member, limit=2)
        assert [right.what for right in rights.rows if right.kind == "token"] == ["ci", OF_DASHBOARD]

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
        assert [(right["person"], right["kind"], right["right"], right["on"]) for right in rows] == [
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
        assert [(right["person"], right["right"], right["on"]) for right in rows] == [
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
        assert "Revoked 2 memberships, 1 grant, 1 token." in text_of(answer.content.decode())
        kinds = ["membership.removed", "membership.removed", "grant.revoked", "pat.revoked", "staff.acted"]
        events = Event.objects.filter(kind__in=kinds).order_by("pk")
        assert sorted(event.kind for event in events) == sorted(kinds)
        assert {(event.actor, event.reason) for event in events} == {("admin@example.org", "review 7")}
        assert events.get(kind="staff.acted").tenant_id == tenant.pk
        assert [right.kind for right in rights_on(tenant).rows] == ["ownership", "membership", "membership"]

    def test_sessions_of_a_person_end(self, staff: Client, world: factories.World) -> None:
        session, _ = create_refresh_token(user=world.member)
        answer = self.revoke(staff, of(world.member, "person-revoke"), f"session:{session.pk}")
        assert "Ended 1 session." in text_of(answer.content.decode())
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
        assert "Revoked 1 account ownership." in text_of(self.revoke(staff, address, key).content.decode())
        assert [owner.email for owner in world.account.owners.all()] == ["member@example.org"]
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
        monkeypatch.setattr(rights, "end_pat", fail)
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


def test_the_reader_is_seen_now(staff: Client, world: factories.World) -> None:
    shown = page_text(staff, of(world.platform_admin))
    assert re.search("permanent now .*Uses are noted once a minute", shown)
