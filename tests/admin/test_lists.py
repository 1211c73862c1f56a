"""Lists of the admin site page by page: no count, no offset, and addresses that are not from a list."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.events import record_event
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
from accounts.models.events import EventKind
from accounts.models.tokens import OF_DASHBOARD
from analytics.models import Build, TenantHealth
from logs.models import QueryRun
from rules.models import Marker
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.http.admin_lists import name_of
from tests import factories
from tests.admin.filling import make_row
from tests.admin.staff import cells
from tosapp.models import Acknowledgement

if TYPE_CHECKING:
    from django.db.models import Model
    from django.test import Client


def address_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def walk(staff: Client, model: type[Model], **query: str) -> list[Any]:
    """Follow the links to the next page; return the keys of all rows."""
    keys, address = [], f"{address_of(model)}?" + "&".join(f"{name}={value}" for name, value in query.items())
    while address:
        answer = staff.get(address)
        assert answer.status_code == 200
        listed = answer.context["cl"]
        keys += [row.pk for row in listed.result_list]
        address = listed.paginator.next and address_of(model) + listed.paginator.next
        assert ('rel="next"' in answer.content.decode()) == bool(address)
    return keys


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenantadmin.lib.http.admin.ReadOnlyAdmin.list_per_page", 2)


@pytest.mark.usefixtures("short_pages")
class TestPages:
    @pytest.mark.slow
    def test_every_row_is_on_one_page(self, staff: Client, world: factories.World) -> None:
        for number in range(5):
            factories.make_tenant(factories.make_account(f"A{number}"), f"Same name ä {number % 2}")
            record_event(EventKind.USER_CREATED, actor="x", subject=f"s{number}")
            make_row(Marker)
        for model, ordering in (
            (Tenant, ("name", "pk")),
            (Event, ("-at", "-pk")),
            (Marker, ("-invalidated_at", "-pk")),
        ):
            expected = list(model._default_manager.order_by(*ordering).values_list("pk", flat=True))
            assert len(expected) >= 5
            assert walk(staff, model) == expected, model

    def test_filters_and_search_stay(self, staff: Client, world: factories.World) -> None:
        for number in range(5):
            factories.make_user(f"a{number}@example.org")
            factories.make_user(f"b{number}@example.org", is_active=False)
        found = walk(staff, User, q="a", is_active__exact="1")
        emails = [User.objects.get(pk=key).email for key in found]
        own = [f"a{number}@example.org" for number in range(5)]
        assert emails == [*own, "admin@example.org", "tenant-admin@example.org"]

    def test_whole_numbers_are_written_as_on_pages(self, staff: Client, world: factories.World) -> None:
        run = make_row(QueryRun, duration_ms=12345)
        assert "12,345" in staff.get(address_of(QueryRun)).content.decode()
        address = reverse("admin:logs_queryrun_change", args=[run.pk])
        assert "12,345" in staff.get(address).content.decode()

    def test_the_slowest_queries(self, staff: Client, world: factories.World) -> None:
        for duration in (3, None, 1, 5, 3):
            make_row(QueryRun, duration_ms=duration)
        columns = staff.get(address_of(QueryRun)).context["cl"].list_display
        column = [name_of(column) for column in columns].index("duration_ms")
        durations = dict(QueryRun.objects.values_list("pk", "duration_ms"))
        assert [durations[key] for key in walk(staff, QueryRun, o=f"-{column}")] == [5, 3, 3, 1]
        assert [durations[key] for key in walk(staff, QueryRun, o=str(column))] == [1, 3, 3, 5]

    @pytest.mark.parametrize("order", ["1", "-2", "99", "1.2", "x", "²", "9" * 5000])
    def test_no_other_column_sorts(self, staff: Client, world: factories.World, order: str) -> None:
        for number in range(3):
            make_row(QueryRun, duration_ms=number)
        expected = list(QueryRun.objects.order_by("-at", "-pk").values_list("pk", flat=True))
        assert walk(staff, QueryRun, o=order) == expected

    def test_there_is_no_count_and_no_offset(self, staff: Client, world: factories.World) -> None:
        for number in range(5):
            record_event(EventKind.USER_CREATED, actor="x", subject=f"s{number}")
        with CaptureQueriesContext(connection) as captured:
            walk(staff, Event)
        read = [query["sql"] for query in captured if "accounts_event" in query["sql"]]
        assert len(read) == 3
        assert not any("COUNT" in sql or "OFFSET" in sql for sql in read)

    def test_the_first_page_is_one_click_away(self, staff: Client, world: factories.World) -> None:
        first = staff.get(address_of(User))
        assert "First page" not in first.content.decode()
        second = staff.get(address_of(User) + first.context["cl"].paginator.next)
        assert 'href="?">First page</a>' in second.content.decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "2",
        "!",
        "é",
        base64.urlsafe_b64encode(b"{}").decode(),
        *(
            base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
            for values in (["x"], ["x", "y", "z"], ["a", "not an id"], [1, 2], ["a\0", "b"], ["\ud800", "b"])
        ),
    ],
)
def test_a_page_that_no_list_has(staff: Client, world: factories.World, cursor: str) -> None:
    answer = staff.get(address_of(Account), {"p": cursor})
    assert (answer.status_code, answer["Location"]) == (302, f"{address_of(Account)}?e=1")


def test_people_tokens_and_accounts_are_found_by_words(staff: Client, world: factories.World) -> None:
    ada = factories.make_user("ada@example.org", display_name="Ada Lovelace")
    factories.pat_token(ada, "config:read", tenants=[str(world.tenant.pk)])
    token = ada.personal_access_tokens.get()
    membership = Membership.objects.create(user=ada, tenant=world.tenant, role="member")
    grant = make_row(PermissionGrant, grantee=ada)
    acknowledged = make_row(Acknowledgement, user=ada)
    for model, words, found in (
        (Membership, "ADA LOVE", [membership.pk]),
        (Membership, "lovelace", [membership.pk]),
        (Membership, "ada@example.org", [membership.pk]),
        (PermissionGrant, "ada", [grant.pk]),
        (Acknowledgement, "ada", [acknowledged.pk]),
        (RefreshToken, "ada", []),
        (type(token), "love", [token.pk]),
        (User, "ADA LOVE", [ada.pk]),
        (User, "ada@", [ada.pk]),
        (User, "Ada@Example.org", [ada.pk]),
        (User, "lovelace", [ada.pk]),
        (type(token), token.prefix[:12], [token.pk]),
        (type(token), "ada@example.org", [token.pk]),
        (Account, "acm", [world.account.pk]),
        (Account, str(world.account.pk), [world.account.pk]),
        (Account, "owner@example.org", [world.account.pk]),
        (Account, "me", []),
    ):
        listed = staff.get(address_of(model), {"q": words}).context["cl"].result_list
        assert [row.pk for row in listed] == found, words


def test_tokens_of_sign_ins_to_the_dashboard_are_left_out_of_the_list(
    staff: Client, world: factories.World
) -> None:
    own, sign_in = (make_row(PersonalAccessToken, name=name) for name in ("Nightly", OF_DASHBOARD))
    PersonalAccessToken.objects.filter(pk=sign_in.pk).update(prefix="tas_pat_abcdef")
    for query, expected in (
        ({}, {own.pk}),
        ({"sign_ins": "all"}, {own.pk, sign_in.pk}),
        ({"q": sign_in.owner.email}, set()),
        ({"q": "tas_pat_abc"}, {sign_in.pk}),
    ):
        answer = staff.get(address_of(PersonalAccessToken), query)
        assert {row.pk for row in answer.context["cl"].result_list} == expected, query
        assert "Without tokens of sign-ins" in answer.content.decode()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        newest = PersonalAccessToken.objects.exclude(name=OF_DASHBOARD).order_by("-created_at", "-pk")
        assert "pat_newest_of_people" in newest[:100].explain()


def test_accounts_show_how_many_tenants_they_have(staff: Client, world: factories.World) -> None:
    factories.make_tenant(world.account, "Second")
    factories.make_account("Without")
    listed = staff.get(address_of(Account)).content.decode()
    assert [text for _, text in cells(listed, "tenant_count")] == ["2", "1", "0"]


def test_tenants_show_their_health(staff: Client, world: factories.World) -> None:
    TenantHealth.objects.create(
        tenant_id=world.tenant.pk, last_day="2026-03-01", rate_7=0.42, requests_7=1200, warehouse_ms_7=90_000
    )
    other = factories.make_tenant(world.account, "Without")
    for hours, period, state in (
        (3, "2026-03-01", "failed"),
        (2, "2026-03-02", "failed"),
        (1, "2026-03-02", "done"),
    ):
        started_at = now() - timedelta(hours=hours)
        make_row(Build, tenant_id=other.pk, period=period, state=state, started_at=started_at)
    listed = staff.get(address_of(Tenant), {"account": str(world.account.pk)}).content.decode()
    # The newest revision, and not the time that pollers see, which differs if a change has another date.
    at = now() + timedelta(days=2)
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": [{"id": "r"}]}, actor="x", changed_at=at)
    changed = staff.get(address_of(Tenant), {"account": str(world.account.pk)}).context["cl"].result_list
    revisions = Revision.objects.filter(tenant_id__in=[row.pk for row in changed]).order_by("changed_at")
    assert {row.pk: row.changed_at for row in changed} == dict(
        revisions.values_list("tenant_id", "changed_at")
    )
    assert at in {row.changed_at for row in changed}
    names = ("state", "account_and_plan", "owner", "hit_rate", "requests", "warehouse_time", "last_day")
    texts = [text for _, text in cells(listed, *names)]
    assert texts[:7] == ["live", "Acme, Team", "owner@example.org", "42.0%", "1,200", "1.5 min", "2026-03-01"]
    assert texts[7:] == ["live 1 failed build", "Acme, Team", "–", "–", "0", "0 ms", "–"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"findings": "yes"}, [0]),
        ({"log": "current"}, [0]),
        ({"log": "late"}, [1, 2, 3]),
        ({"log": "none"}, [4]),
        ({"rate": "0"}, [0]),
        ({"rate": "25"}, [1]),
        ({"rate": "50"}, []),
        ({"rate": "75"}, [2]),
        ({"plan": "enterprise"}, [2, 3, 4]),
        ({"plan": "team", "log": "late"}, [1]),
        ({"plan": "x", "rate": "x", "findings": "no"}, [0, 1, 2, 3, 4]),
    ],
)
def test_tenants_are_filtered_by_their_health(
    filters: dict[str, str], expected: list[int], staff: Client, world: factories.World
) -> None:
    made = [world.tenant, factories.make_tenant(world.account, "B")]
    other = factories.make_account("Other", plan="enterprise")
    made += [factories.make_tenant(other, name) for name in "CDE"]
    today = now().date()
    rows: list[tuple[int, float | None, bool]] = [
        (1, 0.2, True), (2, 0.25, False), (60, 0.75, False), (61, None, False),
    ]  # fmt: skip
    for tenant, (age, rate, has_findings) in zip(made, rows, strict=False):
        TenantHealth.objects.create(
            tenant_id=tenant.pk, last_day=today - timedelta(days=age), rate_7=rate, has_findings=has_findings
        )
    listed = walk(staff, Tenant, **filters)
    assert [number for number, tenant in enumerate(made) if tenant.pk in listed] == expected


@pytest.mark.usefixtures("short_pages")
def test_tenants_are_sorted_by_their_health(staff: Client, world: factories.World) -> None:
    made = [world.tenant, *(factories.make_tenant(world.account, f"T{number}") for number in range(4))]
    Tenant.objects.filter(pk=made[4].pk).update(deleted_at=now())
    for tenant, rate in zip(made, (0.5, 0.1, None, 0.5, 0.9), strict=True):
        TenantHealth.objects.create(tenant_id=tenant.pk, rate_7=rate, requests_7=7)
    names = list(staff.get(address_of(Tenant)).context["cl"].list_display)
    rates = dict(TenantHealth.objects.values_list("pk", "rate_7"))
    column = names.index("hit_rate")
    assert [rates[key] for key in walk(staff, Tenant, o=str(column))] == [0.1, 0.5, 0.5, 0.9]
    assert [rates[key] for key in walk(staff, Tenant, o=f"-{column}")] == [0.9, 0.5, 0.5, 0.1]
    live = walk(staff, Tenant, o=f"-{column}", deleted_at__isempty="1")
    assert [rates[key] for key in live] == [0.5, 0.5, 0.1]
    by_requests = walk(staff, Tenant, o=str(names.index("requests")))
    assert by_requests == sorted(tenant.pk for tenant in made)
    assert walk(staff, Tenant, q="T0", o=str(column)) == [made[1].pk]
    by_change = walk(staff, Tenant, o=str(names.index("last_change")))
    assert by_change == [*Tenant.objects.order_by("modified_at").values_list("pk", flat=True)]
    # A page that begins behind a row of another order.
    wrong = staff.get(address_of(Tenant), {"o": str(column), "p": "WyJ4IiwgInkiXQ=="})
    assert wrong.status_code == 302


def test_an_empty_list_says_whether_a_search_made_it_so(staff: Client) -> None:
    empty = staff.get(address_of(Event)).content.decode()
    assert "No record yet" in empty
    assert "Show all" not in empty
    assert "What to type: Name, member, FQDN or start of the id." in (
        staff.get(address_of(Tenant), {"q": "nothing"}).content.decode()
    )
    for query in ({"q": "nothing"}, {"kind__exact": EventKind.USER_CREATED}):
        searched = staff.get(address_of(Event), query).content.decode()
        assert "No record matches" in searched
        assert "Show all" in searched
        assert "Create a new" not in empty + searched
