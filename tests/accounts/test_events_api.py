"""``GET /config/events``: who sees what, filters, pages, cost. Contract: Events."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
import uuid
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from accounts.access.rights import authenticate_token
from accounts.access.scopes import Scope
from accounts.events import record_event
from accounts.limited_access import take_access
from accounts.models import Event, Membership, Tenant, User
from accounts.models.events import EventKind
from accounts.revisions import read_events
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import signed_in
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db
EVENTS = "/config/events"


def record(subject: str = "", **more: Any) -> Event:
    kind = more.pop("kind", EventKind.MEMBERSHIP_ADDED)
    record_event(kind, **{"actor": "else@example.org", "subject": subject, **more})
    return Event.objects.latest("pk")


def seen(client: ApiClient, query: str = "") -> list[str]:
    """Return the subjects of the events that a caller is shown, newest first."""
    answer = client.get(f"{EVENTS}?{query}")
    assert answer.status_code == 200, answer.content
    return [event["subject"] for event in answer.json()["events"]]


@pytest.fixture
def admin(world: factories.World) -> ApiClient:
    return signed_in(world.platform_admin)


def test_an_event_has_actor_kind_and_subject(admin: ApiClient, world: factories.World) -> None:
    address = f"/users/{world.stranger.email}/tenants"
    headers = {"X-Request-Id": "r-1"}
    body = [{"tenantId": str(world.tenant.pk), "role": "member"}]
    assert admin.request("PATCH", address, body, headers=headers).status_code == 200
    answer = admin.get(EVENTS)
    (event,) = answer.json()["events"]
    stored = Event.objects.get()
    assert event == {
        "id": stored.pk,
        "at": format_timestamp(stored.at),
        "kind": "membership.added",
        "actor": "admin@example.org",
        "subject": "stranger@example.org",
        "tenantId": str(world.tenant.pk),
        "after": {"role": "member"},
        "text": "made stranger@example.org member",
        "changes": "",
        "requestId": "r-1",
        "address": "127.0.0.1",
    }
    assert answer.json()["_links"] == {"self": {"href": EVENTS}, "parent": {"href": "/"}}


def test_events_are_a_file_too(world: factories.World) -> None:
    for subject in ("=1+1", "b@example.org"):
        record(subject, tenant_id=world.tenant.pk, after={"role": "admin"}, reason="joins, helps")
    record("foreign", tenant_id=world.stranger_tenant.pk)
    client = signed_in(world.owner)
    answer = client.get(f"{EVENTS}?tenant={world.tenant.pk}&limit=1", Accept="text/csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="events.csv"'
    rows = list(csv.DictReader(io.StringIO(b"".join(answer).decode())))
    # All that match, whatever the limit of a page.
    assert [row["subject"] for row in rows] == ["b@example.org", "=1+1"]
    assert rows[0]["done"] == "made b@example.org admin"
    assert (rows[0]["actor"], rows[0]["reason"]) == ("else@example.org", "joins, helps")
    assert rows[0]["tenantId"] == str(world.tenant.pk)
    # A spreadsheet runs nothing of it.
    answer = client.get(EVENTS, Accept="text/csv; for=people")
    assert "'=1+1" in b"".join(answer).decode()
    for accept in ("text/html", "*/*", "application/json, text/csv;q=0.5"):
        assert client.get(EVENTS, Accept=accept)["Content-Type"] == "application/json"


def test_a_file_says_that_it_is_cut_and_leads_on(
    world: factories.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.api.history._MAX_IN_FILE", 2)
    for number in range(3):
        record(str(number), tenant_id=world.tenant.pk)
    client, address = signed_in(world.owner), f"{EVENTS}?tenant={world.tenant.pk}"
    parts = []
    while address:
        answer = client.get(address, Accept="text/csv")
        rows = csv.DictReader(io.StringIO(b"".join(answer).decode()))
        parts.append(([row["subject"] for row in rows], answer["X-Truncated"]))
        address = next(iter(re.findall(r'^<(.*)>; rel="next"$', answer.headers.get("Link", ""))), "")
    assert parts == [(["2", "1"], "true"), (["0"], "false")]


def test_changes_keep_ids_without_a_name(world: factories.World) -> None:
    own = str(world.tenant.pk)
    record(
        world.owner.email, kind=EventKind.PAT_CREATED, tenant_id=own, after={"name": "ci", "tenants": [own]}
    )
    client = signed_in(world.owner)
    answer = client.get(EVENTS, Accept="text/csv")
    (row,) = csv.DictReader(io.StringIO(b"".join(answer).decode()))
    assert row["changes"] == f"name: ci; tenants: {own}"
    assert client.get(EVENTS).json()["events"][0]["changes"] == row["changes"]


class TestWhoSeesWhat:
    @pytest.fixture(autouse=True)
    def _events(self, world: factories.World) -> None:
        record("here", tenant_id=world.tenant.pk)
        record("there", tenant_id=world.stranger_tenant.pk)
        record("account", account_id=world.account.pk)
        record("nowhere")
        record(world.member.email, kind=EventKind.ROLES_CHANGED)
        record("by-member", actor=world.member.email)

    def test_platform_admins_see_all(self, admin: ApiClient) -> None:
        assert seen(admin) == ["by-member", "member@example.org", "nowhere", "account", "there", "here"]

    def test_owners_see_events_of_their_tenants_and_accounts(self, world: factories.World) -> None:
        assert seen(signed_in(world.owner)) == ["account", "here"]

    def test_members_and_admins_of_a_tenant_see_their_own(self, world: factories.World) -> None:
        assert seen(signed_in(world.member)) == ["by-member", "member@example.org"]
        assert seen(signed_in(world.tenant_admin)) == []

    def test_a_guest_owner_sees_its_tenant(self, world: factories.World) -> None:
        User.objects.filter(pk=world.owner.pk).update(role="guest")
        world.owner.refresh_from_db()
        assert seen(signed_in(world.owner)) == ["account", "here"]

    def test_a_new_user_does_not_see_events_of_an_earlier_user_of_its_address(
        self, world: factories.World
    ) -> None:
        email = world.member.email
        world.member.delete()
        again = factories.make_user(email, created_at=now() + dt.timedelta(milliseconds=1))
        assert seen(signed_in(again)) == []
        Event.objects.create(
            kind="user.changed", actor=email, subject="later", request_id="-", at=again.created_at
        )
        assert seen(signed_in(again)) == ["later"]

    def test_an_owner_no_more_sees_nothing_more(self, world: factories.World) -> None:
        client = signed_in(world.owner)
        Membership.objects.filter(user=world.owner).update(role="admin")
        assert seen(client) == ["account"]
        world.account.owners.clear()
        assert seen(client) == []

    def test_a_grant_shows_no_events(self, world: factories.World) -> None:
        scopes = [Scope.USERS_READ, Scope.USERS_WRITE]
        world.stranger.grants.create(
            resource="tenant", resource_id=world.tenant.pk, permissions=[*map(str, scopes)]
        )
        assert seen(signed_in(world.stranger)) == ["there"]

    def test_a_pat_shows_the_tenants_that_it_names(self, world: factories.World) -> None:
        admin, tenant = world.platform_admin, str(world.tenant.pk)
        Membership.objects.create(user=admin, tenant=world.tenant, role="owner")
        Membership.objects.create(user=admin, tenant=world.stranger_tenant, role="owner")

        def shown(*scopes: str, **options: Any) -> list[str]:
            client = ApiClient(factories.pat_token(admin, *scopes, **options))
            own = Event.objects.filter(subject=admin.email).count()
            found = seen(client)
            assert found.count(admin.email) == own
            return [subject for subject in found if subject != admin.email]

        assert shown("users:read", tenants=[tenant]) == ["here"]
        assert shown("users:read", accounts=[str(world.account.pk)]) == []
        assert len(shown("users:read", tenants=["*"])) == 6
        denied = ApiClient(factories.pat_token(admin, "config:read", tenants=["*"]))
        assert denied.get(EVENTS).status_code == 403

    def test_a_tenant_of_others_is_an_empty_list(self, world: factories.World) -> None:
        assert seen(signed_in(world.stranger), f"tenant={world.tenant.pk}") == []


def test_owners_see_a_platform_admin_join_their_tenant(world: factories.World) -> None:
    take_access(world.platform_admin, tenant_id=world.tenant.pk, hours=1)
    (event,) = signed_in(world.owner).get(EVENTS).json()["events"]
    assert (event["kind"], event["actor"], event["subject"], event["tenantId"]) == (
        "membership.added",
        "admin@example.org",
        "admin@example.org",
        str(world.tenant.pk),
    )


def test_filters_narrow_the_list(admin: ApiClient, world: factories.World) -> None:
    at = now() + dt.timedelta(days=1)
    base: dict[str, Any] = {"actor": "ada@example.org", "kind": "pat.created", "request_id": "-", "at": at}
    differences: list[dict[str, Any]] = [
        {},
        {"actor": "bob@example.org"},
        {"kind": "pat.revoked"},
        {"tenant_id": world.tenant.pk},
        {"at": at + dt.timedelta(milliseconds=1)},
        {"at": at - dt.timedelta(milliseconds=1)},
    ]
    for number, changed in enumerate(differences):
        Event.objects.create(**{**base, "subject": f"s{number}", **changed})
    assert seen(admin) == ["s4", "s3", "s2", "s1", "s0", "s5"]
    assert seen(admin, "actor=Bob@Example.org") == ["s1"]
    assert seen(admin, "subject=S2") == ["s2"]
    assert seen(admin, "kind=pat.revoked") == ["s2"]
    assert seen(admin, f"tenant={world.tenant.pk}") == ["s3"]
    moment = format_timestamp(at)
    assert seen(admin, f"from={moment}") == ["s4", "s3", "s2", "s1", "s0"]
    assert seen(admin, f"to={moment}") == ["s3", "s2", "s1", "s0", "s5"]
    assert seen(admin, f"from={moment}&to={moment}&kind=pat.created&actor=ada@example.org") == ["s3", "s0"]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "/limit"),
        ("limit=201", "/limit"),
        ("cursor=x", "/cursor"),
        ("cursor=WzFd", "/cursor"),
        ("kind=rules", "/kind"),
        ("tenant=x", "/tenant"),
        ("from=2026-11-21T00:00:00", "/from"),
        ("from=2026-11-22T00:00:00Z&to=2026-11-21T00:00:00Z", "/from"),
        ("user=x", "/user"),
    ],
)
def test_a_bad_parameter_is_a_400_that_names_it(admin: ApiClient, query: str, path: str) -> None:
    answer = admin.get(f"{EVENTS}?{query}")
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert [detail["path"] for detail in answer.json()["details"]] == [path]


def test_pages_follow_each_other_without_gap_or_repetition(admin: ApiClient) -> None:
    at = now()
    for number in range(7):  # three of them at the same moment
        moment = at if number in {2, 3, 4} else at + dt.timedelta(milliseconds=number - 3)
        Event.objects.create(kind="user.created", actor="a", subject=f"s{number}", request_id="-", at=moment)
    found, address = [], f"{EVENTS}?limit=2&actor=a"
    while address:
        page = admin.get(address).json()
        assert len(page["events"]) <= 2
        found += [event["subject"] for event in page["events"]]
        address = page["_links"].get("next", {}).get("href", "")
    assert found == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]


def test_a_page_costs_two_queries_however_long_it_is(world: factories.World) -> None:
    client = signed_in(world.owner)
    for count in (1, 30):
        for _ in range(count):
            record(tenant_id=world.tenant.pk)
        with CaptureQueriesContext(connection) as captured:
            assert len(client.get(EVENTS).json()["events"]) == Event.objects.count()
        assert len(captured) - 1 == 2  # the caller's rights and the rows; one is the count of this test


class TestPlans:
    """On many rows every way of asking reads a few rows by an index, in each partition."""

    ROWS = 40_000
    ACTOR, TENANT = "person-7@example.org", uuid.UUID(int=7)

    @pytest.fixture
    def _many(self) -> None:
        """Rows of this month and the next three; each person, tenant, account and kind has one in 200."""
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO accounts_event
                       (at, kind, actor, subject, tenant_id, account_id, reason, request_id, address)
                SELECT date_trunc('month', now()) + n * interval '110 days' / %(rows)s,
                       CASE n %% 200 WHEN 7 THEN 'grant.created' ELSE 'token.minted' END,
                       format('person-%%s@example.org', n %% 200),
                       format('person-%%s@example.org', n / 4 %% 200),
                       lpad(to_hex(n %% 200), 32, '0')::uuid,
                       lpad(to_hex(n %% 200), 32, '0')::uuid, '', '-', ''
                  FROM generate_series(1, %(rows)s) n
                """,
                {"rows": self.ROWS},
            )
            cursor.execute("ANALYZE accounts_event")

    @pytest.mark.usefixtures("_many")
    def test_of_a_platform_admin(self) -> None:
        """By nothing, actor, subject, kind, tenant, a period, and an actor in a period."""
        root = factories.make_user("root@example.org", role="admin")
        in_a_month = now() + dt.timedelta(days=40)
        for asked, index in (
            (Q(), "at_id"),
            (Q(actor=self.ACTOR), "actor_at_id"),
            (Q(subject=self.ACTOR), "subject_at_id"),
            (Q(kind="grant.created"), "kind_at_id"),
            (Q(tenant_id=self.TENANT), "tenant_id_at_id"),
            (Q(at__lte=in_a_month), "at_id"),
            (Q(actor=self.ACTOR, at__lte=in_a_month), "actor_at_id"),
        ):
            scans = scans_of(root, asked)
            assert {scan["Node Type"] for scan in scans} == {"Index Scan"}, asked
            assert all(index in scan["Index Name"] for scan in scans if scan["Actual Rows"]), asked
            assert read_rows(scans) <= 51 + len(scans), asked

    @pytest.mark.usefixtures("_many")
    def test_of_owners(self, world: factories.World) -> None:
        """Of a tenant with one old event, and of 20 tenants; neither reads more than a page of each."""
        silent = factories.make_tenant(world.account, "Silent", owner=world.member)
        at = now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        Event.objects.create(kind="x", actor="x", subject="x", request_id="-", at=at, tenant_id=silent.pk)
        account = factories.make_account(plan="enterprise")
        for number in range(20):
            tenant = Tenant.objects.create(
                id=uuid.UUID(int=number), account=account, name=str(number), name_key=str(number)
            )
            Membership.objects.create(user=world.stranger, tenant=tenant, role="owner")
        for owner, most in ((world.member, 1), (world.stranger, 20 * 51)):
            scans = scans_of(owner, Q())
            assert {scan["Node Type"] for scan in scans} == {"Index Scan"}
            assert {re.sub(r".*20\d\d_\d\d_", "", scan["Index Name"]) for scan in scans} <= {
                *("actor_at_id_idx", "subject_at_id_idx", "tenant_id_at_id_idx", "account_id_at_id_idx")
            }
            assert most <= read_rows(scans) <= most + 20 * len(scans)


def scans_of(user: User, asked: Q) -> list[dict[str, Any]]:
    """Read a page of events; return the nodes of its plan that read a table or an index of it."""
    principal = authenticate_token(factories.sign_in(user))
    with CaptureQueriesContext(connection) as captured:
        read_events(principal, asked, limit=50, cursor=None)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {captured[-1]['sql']}")
        ((plan,),) = cursor.fetchall()
    found, nodes = [], [plan[0]["Plan"]]
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if node.get("Relation Name", "").startswith("accounts_event") and node["Actual Loops"]:
            found.append(node)
    return found


def read_rows(scans: list[dict[str, Any]]) -> int:
    """Return how many rows the scans read, those that a filter removed included."""
    return sum(
        round((scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"])
        for scan in scans
    )
