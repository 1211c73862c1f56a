"""Tests of the content of lists and pages of the admin site: names, times, JSON, recorded changes."""

from __future__ import annotations

import datetime as dt
import gzip
import re
import uuid
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from accounts.events import record_event
from accounts.models import Account, Fqdn, PermissionGrant, PersonalAccessToken, Revision, Tenant
from accounts.models.events import EventKind
from analytics.models import Build
from logs.models import QueryRun
from rules.models import Ruleset
from tests import factories
from tests.admin.staff import cells, text_of
from tosapp.models import Acknowledgement

if TYPE_CHECKING:
    from django.test import Client


def page(staff: Client, address: str, *arguments: object, **query: str) -> str:
    return staff.get(reverse(f"admin:{address}", args=arguments), query).content.decode()


def run_query(tenant_id: uuid.UUID, statement: str = "SELECT 1") -> QueryRun:
    return QueryRun.objects.create(
        tenant_id=tenant_id,
        email="ada@example.org",
        statement=statement,
        request_id="r1",
        at=dt.datetime(2026, 11, 21, 2, 45, 7, tzinfo=dt.UTC),
    )


@pytest.fixture
def tenant(world: factories.World) -> Tenant:
    return world.tenant


def test_a_list_shows_the_name_of_a_tenant_and_its_short_id(staff: Client, tenant: Tenant) -> None:
    gone = uuid.uuid4()
    run_query(tenant.pk)
    run_query(gone)
    listed = page(staff, "logs_queryrun_changelist")
    short = f'<code title="{tenant.pk}">{str(tenant.pk)[:8]}…</code>'
    href = reverse("admin:tenant", args=[tenant.pk])
    assert f'<a href="{href}">Warehouse</a> {short}' in listed
    assert f'<code title="{gone}">{str(gone)[:8]}…</code>' in listed


def test_a_page_shows_the_name_of_a_tenant_and_its_whole_id(staff: Client, tenant: Tenant) -> None:
    shown = page(staff, "logs_queryrun_change", run_query(tenant.pk).pk)
    assert f'>Warehouse</a> <code title="{tenant.pk}">{tenant.pk}</code>' in shown


def test_a_list_is_filtered_by_time(staff: Client, tenant: Tenant) -> None:
    run_query(tenant.pk, "SELECT 'mine'")
    for day, is_found in (("2026-11-21", True), ("2026-11-22", False)):
        listed = page(staff, "logs_queryrun_changelist", at__gte=f"{day} 00:00+00:00")
        assert ("mine" in listed) == is_found


@pytest.mark.parametrize("moment", ["x", "9999-99-99"])
def test_an_invalid_time_is_not_a_filter(staff: Client, tenant: Tenant, moment: str) -> None:
    address = reverse("admin:logs_queryrun_changelist")
    answer = staff.get(address, {"at__gte": moment})
    assert (answer.status_code, answer["Location"]) == (302, f"{address}?e=1")


def test_rows_are_found_by_the_name_of_their_tenant(staff: Client, tenant: Tenant) -> None:
    Fqdn.objects.create(name="db.acme.example", tenant_id=tenant.pk)
    run_query(tenant.pk, "SELECT 'mine'")
    run_query(uuid.uuid4(), "SELECT 'another'")
    for words in ("wareh", " WAREHOUSE ", "db.acme.example", str(tenant.pk)):
        listed = page(staff, "logs_queryrun_changelist", q=words)
        assert "mine" in listed.partition('id="result_list"')[2]
        assert "another" not in listed
    for words in ("house", "acme.example", "%", "owner@example.org"):
        assert "result_list" not in page(staff, "logs_queryrun_changelist", q=words)


@pytest.mark.parametrize(
    ("ended", "found"),
    [("ok", ["ok"]), ("not", ["timeout"]), ("running", ["running"]), (None, ["timeout", "running", "ok"])],
)
def test_queries_are_filtered_by_how_they_ended(
    staff: Client, tenant: Tenant, ended: str | None, found: list[str]
) -> None:
    for number, outcome in enumerate(("ok", "running", "timeout")):
        run = run_query(tenant.pk)
        QueryRun.objects.filter(pk=run.pk).update(outcome=outcome, duration_ms=number)
    query = {} if ended is None else {"ended": ended}
    listed = page(staff, "logs_queryrun_changelist", **query)
    assert [text for _, text in cells(listed, "outcome")] == found


def test_tokens_and_grants_show_the_names_of_their_resources(staff: Client, world: factories.World) -> None:
    factories.pat_token(
        world.owner, "config:read", tenants=[str(world.tenant.pk)], accounts=[str(world.account.pk)]
    )
    factories.pat_token(world.platform_admin, "config:read", tenants=["*"])
    PermissionGrant.objects.create(
        grantee=world.stranger, resource="account", resource_id=world.account.pk, permissions=["config:read"]
    )
    tokens = page(staff, "accounts_personalaccesstoken_changelist")
    assert ">Warehouse</a>" in tokens
    assert ">Acme</a>" in tokens
    assert ("resources", "*") in cells(tokens, "resources")
    wildcard = PersonalAccessToken.objects.get(owner=world.platform_admin)
    shown = page(staff, "accounts_personalaccesstoken_change", wildcard.pk)
    assert re.search(r'<div class="readonly[^"]*">\*</div>', shown)
    assert ">Acme</a>" in page(staff, "accounts_permissiongrant_changelist", q="acme")


def test_an_account_shows_its_deletion_and_counts_only_existing_tenants(
    staff: Client, world: factories.World
) -> None:
    deleted_at = dt.datetime(2026, 11, 21, 2, 45, 7, tzinfo=dt.UTC)
    gone = factories.make_account("Gone")
    factories.make_tenant(gone, "Old")
    gone.tenants.update(deleted_at=deleted_at)
    Account.objects.filter(pk=gone.pk).update(deleted_at=deleted_at)
    tombstone = factories.make_tenant(world.account, "Tombstone")
    Tenant.objects.filter(pk=tombstone.pk).update(deleted_at=deleted_at)
    listed = page(staff, "accounts_account_changelist", deleted_at__isempty="0")
    assert cells(listed, "tenant_count", "deleted_at") == [
        ("tenant_count", "0"),
        ("deleted_at", "2026-11-21 02:45:07 UTC"),
    ]
    assert ">Gone</a>" in listed
    listed = page(staff, "accounts_account_changelist", deleted_at__isempty="1", q=str(world.account.pk))
    assert cells(listed, "tenant_count", "deleted_at") == [
        ("tenant_count", "1"),
        ("deleted_at", "–"),
    ]
    assert ">Gone</a>" not in listed


def test_an_acknowledgement_is_titled_by_the_address_of_its_user(
    staff: Client, world: factories.World
) -> None:
    row = Acknowledgement.objects.create(user=world.member, hash="57d8f2e7" * 4)
    shown = page(staff, "tosapp_acknowledgement_change", row.pk)
    [title] = re.findall(r"<h1[^>]*>(.*?)</h1>", shown, re.DOTALL)
    assert text_of(title).endswith(f"{row.hash} by member@example.org")


def test_times_have_seconds_and_a_time_zone(staff: Client, tenant: Tenant) -> None:
    row = run_query(tenant.pk)
    assert "2026-11-21 02:45:07 UTC" in page(staff, "logs_queryrun_changelist")
    assert "2026-11-21 02:45:07 UTC" in page(staff, "logs_queryrun_change", row.pk)


def test_json_documents_are_indented(staff: Client, tenant: Tenant) -> None:
    Ruleset.objects.filter(pk=tenant.pk).update(rules=[{"id": "a", "name": "<b>ä</b>"}])
    shown = page(staff, "rules_ruleset_change", tenant.pk)
    pretty = '[\n  {\n    "id": "a",\n    "name": "<b>ä</b>"\n  }\n]'
    assert f'<pre class="json">{escape(pretty)}</pre>' in shown


def test_long_texts_are_shortened_only_in_lists(staff: Client, tenant: Tenant) -> None:
    statement = "SELECT " + "1 + " * 200 + "1"
    row = run_query(tenant.pk, statement)
    failed = Build.objects.create(tenant_id=tenant.pk, period="2026", error=statement)
    for model, field, key in (("logs_queryrun", "opening", row.pk), ("analytics_build", "error", failed.pk)):
        listed = page(staff, f"{model}_changelist")
        assert cells(listed, field) == [(field, f"{statement[:79]}…")]
        assert statement in page(staff, f"{model}_change", key)


@pytest.mark.parametrize(
    ("address", "kinds"),
    [
        ("accounts_tenant_change", {"config", "rules"}),
        ("accounts_tenantconfig_change", {"config"}),
        ("rules_ruleset_change", {"rules"}),
        ("accounts_account_change", {"account"}),
    ],
)
def test_a_document_links_to_its_revisions(
    staff: Client, world: factories.World, address: str, kinds: set[str]
) -> None:
    account = address == "accounts_account_change"
    if account:
        Revision.objects.create(kind="account", account_id=world.account.pk, seq=0, action="create", user="x")
    shown = page(staff, address, world.account.pk if account else world.tenant.pk)
    assert "historylink" not in shown
    (href,) = re.findall('<li><a class="act" href="([^"]+)">Revisions</a></li>', shown)
    listed = staff.get(unescape(href)).context["cl"].result_list
    assert {row.kind for row in listed} == kinds
    assert {row.account_id if account else row.tenant_id for row in listed} == {
        world.account.pk if account else world.tenant.pk
    }


def test_a_page_without_actions_has_no_history_link(staff: Client, tenant: Tenant) -> None:
    shown = page(staff, "logs_queryrun_change", run_query(tenant.pk).pk)
    assert "historylink" not in shown
    assert "Revisions</a></li>" not in shown


def test_events_are_found_by_whole_addresses_and_by_the_name_of_a_tenant(
    staff: Client, tenant: Tenant, world: factories.World
) -> None:
    for subject, tenant_id in (("ada@example.org", None), ("bob@example.org", tenant.pk)):
        record_event(EventKind.MEMBERSHIP_ADDED, actor="x@example.org", subject=subject, tenant_id=tenant_id)
    for words, found in {
        "ada@example.org": {"ada@example.org"},
        "x@example.org": {"ada@example.org", "bob@example.org"},
        "ada@example": set(),
        "warehouse": {"bob@example.org"},
    }.items():
        listed = page(staff, "accounts_event_changelist", q=words)
        assert {text for _, text in cells(listed, "subject")} == found


@pytest.mark.parametrize("name", ["accounts_tenant_changelist", "accounts_tenant_change", "tenant"])
def test_no_large_script_holds_the_page_back(staff: Client, tenant: Tenant, name: str) -> None:
    html = page(staff, name, *([] if name.endswith("list") else [tenant.pk]))
    waiting = re.findall(r'<script src="([^"]+)">', html)
    # They choose the colors, and name Django's own texts.
    assert {Path(name).name for name in waiting} <= {"app.js", "simplebar.js", "jsi18n"}


def test_pages_are_compressed(staff: Client) -> None:
    answer = staff.get(reverse("admin:index"), headers={"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    assert b"Live tenants" in gzip.decompress(answer.content)
