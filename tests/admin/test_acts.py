"""What staff do on the admin site: it warns first, acts as the API does, and leaves a trace."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from redis import RedisError

from accounts.access.credentials import create_pat, create_refresh_token, exchange_pat
from accounts.access.scopes import Scope
from accounts.models import Domain, Event, PermissionGrant, PersonalAccessToken, RefreshToken, User
from accounts.readers.rule import Author
from accounts.roles import replace_roles
from accounts.users import delete_user
from logs.audit import QueryAudit, Reader
from logs.cancelling import WATCH
from logs.models import QueryRun
from logs.sql.protocol import Cancellation, QueryCancelled
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.filling import make_row
from tests.admin.staff import act, text_of
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model
    from django.test import Client

SCOPES = [Scope.CONFIG_READ]


@pytest.mark.parametrize(
    "reason", [None, "", " \n", "x" * 501, "a\0b"], ids=["none", "empty", "blank", "long", "nul"]
)
def test_an_act_needs_a_reason(staff: Client, world: factories.World, reason: str | None) -> None:
    form = {"action": "deactivate", "_selected_action": [str(world.member.pk)], "confirmed": "yes"}
    given = {} if reason is None else {"reason": reason}
    page = staff.post(reverse("admin:accounts_user_changelist"), {**form, **given}).content.decode()
    assert "Give a reason of at most 500 characters. Nothing was done." in page
    assert '<input type="text" name="reason" id="reason" required maxlength="500"' in page
    assert User.objects.get(pk=world.member.pk).is_active
    assert not Event.objects.exists()


def test_an_act_is_an_event_with_its_reason(staff: Client, world: factories.World) -> None:
    pat, _ = create_pat(owner=world.member, name="ci", scopes=SCOPES)
    refresh, _ = create_refresh_token(user=world.member)
    grant = PermissionGrant.objects.create(
        grantee=world.member, resource="tenant", resource_id=world.tenant.pk, permissions=["config:read"]
    )
    domain = Domain.objects.create(account=world.account, name="example.com", challenge="c")
    before = Event.objects.count()
    for row in (pat, refresh, grant):
        act(staff, "revoke", row)
    act(staff, "verify", domain)
    for name in ("deactivate", "activate", "delete"):
        act(staff, name, world.member)
    found = list(Event.objects.order_by("pk"))[before:]
    assert [(event.kind, event.subject) for event in found] == [
        ("pat.revoked", "member@example.org"),
        ("session.ended", "member@example.org"),
        ("grant.revoked", "member@example.org"),
        ("domain.verified", "example.com"),
        ("user.deactivated", "member@example.org"),
        ("user.activated", "member@example.org"),
        ("membership.removed", "member@example.org"),
        ("user.deleted", "member@example.org"),
    ]
    assert {(event.actor, event.reason, event.address) for event in found} == {
        ("admin@example.org", "asked to", "127.0.0.1")
    }


def test_a_reason_goes_with_its_act_alone(staff: Client, world: factories.World) -> None:
    act(staff, "deactivate", world.member)
    create_pat(owner=world.owner, name="later", scopes=SCOPES)
    assert Event.objects.get(kind="pat.created").reason == ""


def traces() -> list[tuple[str, str, str]]:
    """Return who did what to what on the site, oldest first."""
    entries = LogEntry.objects.order_by("pk").select_related("user")
    return [
        (str(entry.user), entry.object_repr, entry.get_change_message() or str(entry.action_flag))
        for entry in entries
    ]


def is_revoked(row: Model) -> bool:
    return type(row)._default_manager.filter(pk=row.pk, revoked_at__isnull=False).exists()


@pytest.fixture
def second_admin(world: factories.World) -> User:
    return factories.make_user("second@example.org", role="admin")


def wildcard_pat(owner: User, name: str = "gateway") -> tuple[PersonalAccessToken, str]:
    return create_pat(owner=owner, name=name, scopes=SCOPES, tenants=["*"], accounts=[], endpoints=[])


def test_a_demotion_warns_first_and_changes_nothing_until_confirmed(
    staff: Client, second_admin: User, world: factories.World
) -> None:
    pat, _ = wildcard_pat(second_admin)
    shown = act(staff, "demote", second_admin, world.member, confirmed=False)
    assert "Personal access tokens with a wildcard will be revoked." in shown
    assert f"These personal access tokens with a wildcard end for good: gateway ({pat.prefix}…)." in shown
    assert "Is no platform admin: will be refused." in shown
    second_admin.refresh_from_db()
    assert second_admin.role == "admin"
    assert traces() == []


@pytest.mark.parametrize("name", ["demote", "deactivate"])
def test_tokens_of_an_admin_end_with_the_office(
    staff: Client, second_admin: User, world: factories.World, name: str
) -> None:
    _, text = wildcard_pat(second_admin)
    caller = ApiClient(exchange_pat(text).access_token)
    assert caller.get(f"/config/tenants/{world.tenant.pk}/config").status_code == 200
    done = {"demote": "Demoted to user", "deactivate": "Deactivated"}[name]
    assert f"{done}: second@example.org." in act(staff, name, second_admin)
    assert caller.get(f"/config/tenants/{world.tenant.pk}/config").status_code == 401
    assert PersonalAccessToken.objects.get(owner=second_admin).revoked_at is not None
    assert traces() == [("admin@example.org", "second@example.org", f"{done}.")]


def test_a_demoted_admin_is_signed_out_at_once(staff: Client, second_admin: User, client: Client) -> None:
    other = type(client)()
    other.force_login(second_admin)
    assert other.get("/admin/").status_code == 200
    act(staff, "demote", second_admin)
    assert other.get("/admin/").status_code == 302


@pytest.mark.parametrize("name", ["demote", "deactivate"])
def test_the_last_admin_stays(staff: Client, world: factories.World, name: str) -> None:
    shown = act(staff, name, world.platform_admin, confirmed=False)
    assert "Is the last active platform admin: will be refused." in shown
    shown = act(staff, name, world.platform_admin)
    assert "Refused for admin@example.org: Is the last active platform admin." in shown
    world.platform_admin.refresh_from_db()
    assert world.platform_admin.is_staff
    assert traces() == []


def test_all_admins_at_once_leave_one(staff: Client, second_admin: User, world: factories.World) -> None:
    shown = act(staff, "demote", second_admin, world.platform_admin, confirmed=False)
    assert "This is you: you leave this site at once." in shown
    act(staff, "demote", second_admin, world.platform_admin)
    assert User.objects.filter(role="admin").count() == 1


def test_a_guest_is_not_made_a_user_by_a_demotion(staff: Client, db: None) -> None:
    guest = factories.make_user("guest@example.org", role="guest")
    assert "Refused for guest@example.org: Is no platform admin." in act(staff, "demote", guest)
    guest.refresh_from_db()
    assert guest.role == "guest"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (delete_user, "Was deleted."),
        (partial(replace_roles, primary="guest", scopes=None), "Is no platform admin."),
    ],
    ids=["deleted", "made a guest"],
)
def test_what_changed_since_the_row_was_shown_refuses_the_act(
    staff: Client, second_admin: User, change: Callable[..., object], refusal: str
) -> None:
    changes = [change]

    def change_first(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "pg_advisory_xact_lock" in sql and changes:
            changes.pop()(second_admin.email, author=Author("another"))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(change_first):
        assert f"Refused for second@example.org: {refusal}" in act(staff, "demote", second_admin)
    assert (traces(), changes) == ([], [])


def test_a_deactivated_user_is_active_again(staff: Client, world: factories.World) -> None:
    caller = ApiClient(factories.sign_in(world.member))
    _, pat = create_pat(owner=world.member, name="x", scopes=SCOPES)
    shown = act(staff, "deactivate", world.owner, world.member, confirmed=False)
    alone = f"account 'Acme' ({world.account.pk}), tenant 'Warehouse' ({world.tenant.pk})"
    assert shown.count(f"This user is the only owner of {alone}.") == 1
    act(staff, "deactivate", world.member)
    assert caller.get("/users/member@example.org").status_code == 401
    assert "Is deactivated already." in act(staff, "deactivate", world.member)
    act(staff, "activate", world.member)
    assert caller.get("/users/member@example.org").status_code == 401
    world.member.refresh_from_db()
    assert ApiClient(factories.sign_in(world.member)).get("/users/member@example.org").status_code == 200
    assert ApiClient(exchange_pat(pat).access_token).get("/config/tenants").status_code == 200
    assert [message for *_, message in traces()] == ["Deactivated.", "Activated."]


def test_a_deletion_warns_of_tenants_and_accounts_left_without_an_owner(
    staff: Client, world: factories.World
) -> None:
    factories.pat_token(world.member, "config:read", tenants=[str(world.tenant.pk)])
    shown = act(staff, "delete", world.member, world.owner, confirmed=False)
    assert "Memberships: 1, tokens: 1, grants: 0 are deleted too." in shown
    alone = f"account 'Acme' ({world.account.pk}), tenant 'Warehouse' ({world.tenant.pk})"
    assert shown.count(f"This user is the only owner of {alone}.") == 1
    shown = act(staff, "delete", world.member, world.owner)
    assert "Deleted: member@example.org." in shown
    assert "Deleted: owner@example.org." in shown
    assert not User.objects.filter(email__in=["member@example.org", "owner@example.org"]).exists()
    assert [(row, message) for _, row, message in traces()] == [
        ("member@example.org", "3"),
        ("owner@example.org", "3"),
    ]


def test_users_cannot_delete_themselves(staff: Client, second_admin: User, world: factories.World) -> None:
    refusal = "This is you, whom the log of this site names: ask another platform admin"
    shown = act(staff, "delete", world.platform_admin, confirmed=False)
    assert f"{refusal}: will be refused." in shown
    assert f"{refusal}." in act(staff, "delete", world.platform_admin)
    assert User.objects.filter(pk=world.platform_admin.pk).exists()


def test_a_domain_is_verified_by_hand_for_one_account(staff: Client, world: factories.World) -> None:
    mine, theirs = (
        Domain.objects.create(account=account, name="example.com", challenge="c")
        for account in (world.account, world.stranger_tenant.account)
    )
    page = reverse("admin:accounts_domain_change", args=[mine.pk])
    shown = staff.get(page).content.decode()
    check = reverse("admin:domain-check", args=[world.account.pk, "example.com"])
    assert f'<form method="post" action="{check}">' in shown
    assert "name <code>_tenant-admin-challenge.example.com</code><br>value <code>c</code>" in shown
    shown = act(staff, "verify", mine, confirmed=False)
    assert f"Goes to the account Acme ({world.account.pk})." in shown
    assert "Also registered by Elsewhere." in shown
    assert "Verified by hand: example.com." in act(staff, "verify", mine)
    mine.refresh_from_db()
    assert mine.verified_at is not None
    assert "Is verified for the account Acme: will be refused." in act(
        staff, "verify", theirs, confirmed=False
    )
    assert "Is verified for the account Acme." in act(staff, "verify", theirs)
    assert "Is verified already." in act(staff, "verify", mine)
    # Nothing is left to do, and what was done is still listed.
    shown = staff.get(page).content.decode()
    assert (check in shown, offered(shown)) == (False, [])
    assert f'href="{reverse("admin:accounts_domain_history", args=[mine.pk])}"' in shown
    assert traces() == [("admin@example.org", "example.com", "Verified by hand.")]


def test_a_revocation_is_recorded_once(staff: Client, world: factories.World) -> None:
    pat, text = create_pat(
        owner=world.member,
        name="ci",
        scopes=SCOPES,
        tenants=[str(world.tenant.pk)],
        accounts=[],
        endpoints=[],
    )
    caller = ApiClient(exchange_pat(text).access_token)
    refresh = make_row(RefreshToken, revoked_at=None)
    grant = PermissionGrant.objects.create(
        grantee=world.stranger, resource="tenant", resource_id=world.tenant.pk, permissions=["config:read"]
    )
    for row in (pat, refresh, grant):
        assert "It will be revoked for good." in act(staff, "revoke", row, confirmed=False)
        assert not is_revoked(row)
        assert f"Revoked: {row}." in act(staff, "revoke", row)
        assert is_revoked(row)
        assert "Was revoked before." in act(staff, "revoke", row)
    assert caller.get(f"/config/tenants/{world.tenant.pk}/config").status_code == 401
    assert [message for *_, message in traces()] == ["Revoked."] * 3


def test_a_revocation_names_the_grantee_and_the_refused_calls(staff: Client, world: factories.World) -> None:
    standing, ended = (
        PermissionGrant.objects.create(
            grantee=grantee,
            resource="tenant",
            resource_id=world.tenant.pk,
            permissions=["config:read"],
            revoked_at=revoked_at,
        )
        for grantee, revoked_at in ((world.stranger, None), (world.member, now()))
    )
    with CaptureQueriesContext(connection) as one:
        shown = act(staff, "revoke", standing, confirmed=False)
    assert f"<strong>config:read on tenant {world.tenant.pk} for stranger@example.org</strong></li>" in shown
    with CaptureQueriesContext(connection) as both:
        shown = act(staff, "revoke", standing, ended, confirmed=False)
    assert len(both) == len(one), "queries grow with the rows"
    refused = shown.partition(f"{world.tenant.pk} for member@example.org</strong>")[2]
    assert refused.startswith("<ul>\n<li>Was revoked before: will be refused.</li>")
    assert shown.count("will be refused") == 1


def offered(html: str) -> list[str]:
    """Return the actions that the page of a row offers."""
    return re.findall('<button class="act" name="action" value="(\\w+)">', html)


def test_a_page_offers_only_possible_actions(
    staff: Client, second_admin: User, world: factories.World
) -> None:
    def of(user: User) -> list[str]:
        return offered(staff.get(reverse("admin:accounts_user_change", args=[user.pk])).content.decode())

    assert of(world.platform_admin) == ["demote", "make_support", "deactivate", "end_sessions"]
    gone = factories.make_user("gone@example.org", is_active=False, is_support=True, identity_subject="s")
    assert of(gone) == ["end_support", "activate", "unlink", "delete"]
    second_admin.is_active = False
    second_admin.save()
    assert of(world.platform_admin) == ["make_support", "end_sessions"]


def test_an_action_on_a_page_returns_to_it(staff: Client, world: factories.World) -> None:
    page = reverse("admin:accounts_user_change", args=[world.member.pk])
    assert '<input type="hidden" name="from_record" value="yes">' in staff.get(page).content.decode()
    listed = reverse("admin:accounts_user_changelist")

    def post(name: str, **more: str) -> Any:
        form = {"action": name, "_selected_action": [str(world.member.pk)], "from_record": "yes"}
        return staff.post(listed, {**form, **more})

    assert '<input type="hidden" name="from_record" value="yes">' in post("make_support").content.decode()
    done = {"confirmed": "yes", "reason": "asked to"}
    for name in ("make_support", "make_support"):
        assert post(name, **done)["Location"] == page
    shown = staff.get(page).content.decode()
    assert "Made support: member@example.org." in shown
    assert "Refused for member@example.org: Is support already." in shown
    assert post("delete", **done)["Location"] == listed


def test_a_page_offers_the_actions_of_its_list_and_a_history(staff: Client, world: factories.World) -> None:
    address = reverse("admin:accounts_user_change", args=[world.member.pk])
    shown = staff.get(address).content.decode()
    assert offered(shown) == ["make_support", "deactivate", "end_sessions", "delete"]
    history = reverse("admin:accounts_user_history", args=[world.member.pk])
    assert f'href="{history}"' not in shown
    assert "Staff have done nothing to it" in staff.get(history).content.decode()
    act(staff, "deactivate", world.member)
    assert f'href="{history}" class="historylink">Staff history</a>' in staff.get(address).content.decode()
    assert "<td>Deactivated.</td>" in staff.get(history).content.decode()


def test_titles_keep_addresses_and_lead_to_the_list(staff: Client, world: factories.World) -> None:
    listed = f'<a href="{reverse("admin:accounts_user_changelist")}">Users</a>'
    for name, title in (("change", "User"), ("history", "Staff history")):
        shown = staff.get(reverse(f"admin:accounts_user_{name}", args=[world.member.pk])).content.decode()
        heading = shown.partition("<h1")[2].partition("</h1>")[0]
        assert text_of(f"<h1{heading}") == f"{title}: member@example.org"
        assert listed in shown.partition('class="trail"')[2].partition("</nav>")[0]


@pytest.mark.parametrize("model", [User, PermissionGrant], ids=lambda model: model.__name__)
@pytest.mark.parametrize("key", ["zz", "\0", "1\0", "", "1.5", "9" * 5000])
def test_an_invalid_key_refuses_the_whole_selection(staff: Client, model: type[Model], key: str) -> None:
    row = make_row(model)
    name = "delete" if model is User else "revoke"
    address = reverse(f"admin:accounts_{model._meta.model_name}_changelist")
    form = {"action": name, "_selected_action": [str(row.pk), key], "confirmed": "yes", "reason": "x"}
    for sent in (form, {**form, "index": "0"}):
        answer = staff.post(address, sent, follow=True)
        assert answer.status_code == 200
        assert "A selected row is not in this list. Nothing was done." in answer.content.decode()
    assert model._default_manager.filter(pk=row.pk).exists()
    assert traces() == []


def test_a_key_that_no_row_has_does_nothing(staff: Client, db: None) -> None:
    form = {"action": "delete", "_selected_action": "9" * 30, "confirmed": "yes", "reason": "x"}
    assert staff.post(reverse("admin:accounts_user_changelist"), form, follow=True).status_code == 200
    assert traces() == []


def test_more_rows_than_anybody_reads_are_refused(staff: Client, db: None) -> None:
    users = [factories.make_user(f"user-{number}@example.org") for number in range(101)]
    assert "Choose at most 100. Nothing was done." in act(staff, "deactivate", *users)
    assert not User.objects.filter(is_active=False).exists()


class BrokenCache:
    """Redis does not answer."""

    asked = False

    def set(self, *_: Any, **__: Any) -> None:
        raise RedisError

    def get_many(self, *_: Any) -> None:
        self.asked = True
        raise RedisError


class TestCancelling:
    def test_a_running_query_is_cancelled(
        self, staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The engine stands for another process: it looks for marks while the query runs."""

        class Engine:
            def execute(self, *, cancellation: Any, **_: Any) -> Any:
                assert not QueryRun.objects.exists()
                WATCH.look()
                run = QueryRun.objects.get()
                assert (run.outcome, run.duration_ms) == ("running", None)
                assert not cancellation.is_cancelled()
                assert "Cancelled: " in act(staff, "cancel", run, reason="too heavy")
                WATCH.look()
                assert cancellation.is_cancelled()
                raise QueryCancelled

        monkeypatch.setattr("logs.queries.get_engine", Engine)
        caller = ApiClient(factories.pat_token(world.member, "logs:query", tenants=[str(world.tenant.pk)]))
        answer = caller.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1"})
        assert (answer.status_code, answer.json()["error"]) == (400, "query_cancelled")
        run = QueryRun.objects.get()
        assert (run.outcome, run.message) == (
            "query_cancelled",
            "The query was cancelled on the admin site of this service.",
        )
        event = Event.objects.get(kind="staff.acted")
        assert (event.reason, event.tenant_id, event.after) == (
            "too heavy",
            world.tenant.pk,
            {"act": "query.cancelled", "queryRun": run.pk, "email": "member@example.org"},
        )

    def test_only_running_queries_are_cancelled(
        self, staff: Client, support: Client, world: factories.World
    ) -> None:
        common = {"tenant_id": world.tenant.pk, "email": "a@b.example", "statement": "SELECT 1"}
        ended = QueryRun.objects.create(outcome="ok", **common)
        killed = QueryRun.objects.create(at=now() - timedelta(minutes=6), **common)
        for run in (ended, killed):
            assert "Refused for" in act(staff, "cancel", run)
        running = QueryRun.objects.create(**common)
        assert "Cancelled" not in act(support, "cancel", running)
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_without_redis_nothing_is_cancelled(
        self, staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = BrokenCache()
        monkeypatch.setattr("logs.cancelling.cache", broken)
        audit = QueryAudit(Reader("a@b.example", "192.0.2.1"), tenant=world.tenant.pk, statement="SELECT 1")
        cancellation = Cancellation()
        with WATCH.watching(audit, cancellation):
            WATCH.look()
            assert "Refused for" in act(staff, "cancel", QueryRun.objects.get())
        assert not cancellation.is_cancelled()
        assert broken.asked
