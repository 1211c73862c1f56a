"""The assessments of a caller, and how one becomes a customer's tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from accounts.assessments import ensure_assessment
from accounts.models import Event, Membership, Revision, Tenant, User
from analytics.models import Assessment
from rules.models import RuleDraft
from rules.write import write_ruleset
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.history.assessing import assess
from tests.analytics.history.stream import as_snowflake, make_stream
from tests.conftest import ApiClient
from tests.objects import save_object
from tests.streams import body_of

pytestmark = pytest.mark.django_db(transaction=True)

PRICE = {"from": "2000-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}
RULE = {"id": "mine", "action": "cache", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}
FOUND = {"id": "found", "action": "cache", "conditions": {"statementType": "SELECT"}, "ttlSeconds": 600}


def make_assessment(owner: User | None, name: str = "History", **fields: Any) -> UUID:
    """Make an assessment of Snowflake's history without running the command."""
    document = {
        "tenantName": name,
        "warehouse": {"adapterType": "snowflake", "serverHostname": "snowflake", "pricing": [PRICE]},
    }
    tenant = ensure_assessment(document, owner=owner.email if owner else None, actor="manage.py assess")
    Assessment.objects.create(
        tenant_id=tenant, source="snowflake", name=name, owner=owner.email if owner else "", **fields
    )
    return tenant


def test_the_report_is_read_and_listed_by_whom_the_assessment_is(
    tmp_path: Path, world: factories.World
) -> None:
    path = tmp_path / "history.csv"
    path.write_bytes(as_snowflake(make_stream(300)))
    report = assess(path, "--from", "snowflake", "--price", "3.00", "--owner", world.owner.email)
    make_assessment(None, "Without an owner")
    tenant = report["tenantId"]
    owner = ApiClient(factories.sign_in(world.owner))
    answer = owner.get(f"/tenants/{tenant}/assessment").json()
    assert (answer["name"], answer["source"]) == ("snowflake: history.csv", "snowflake")
    assert answer["report"] == report
    listed = owner.get("/tenants/assessments").json()
    assert [one["tenantId"] for one in listed["assessments"]] == [tenant]
    assert listed["_links"]["items"][0]["href"] == f"/tenants/{tenant}/assessment"
    assert owner.get(f"/tenants/{world.tenant.pk}/assessment").status_code == 404
    stranger = ApiClient(factories.sign_in(world.stranger))
    assert stranger.get(f"/tenants/{tenant}/assessment").status_code in {403, 404}
    assert stranger.get("/tenants/assessments").json()["assessments"] == []


def test_an_assessment_without_a_report_says_so(world: factories.World) -> None:
    tenant = make_assessment(world.owner)
    answer = ApiClient(factories.sign_in(world.owner)).get(f"/tenants/{tenant}/assessment")
    assert answer.json()["report"] is None


def test_a_customers_tenant_has_rules_and_prices_and_not_the_log(world: factories.World) -> None:
    tenant = make_assessment(world.owner, report={"rules": [RULE, FOUND]})
    write_ruleset(tenant_id=tenant, document={"rules": [RULE]}, actor="x")
    save_object(default_store(), f"{tenant}/logs/2026/03/01/00/a.json", b"{}")
    client = ApiClient(factories.sign_in(world.owner))
    body = {"accountId": str(world.account.pk), "tenantName": "Sales"}
    answer = client.post(f"/config/tenants/{tenant}/adopt", body)
    assert answer.status_code == 201, answer.content
    config = answer.json()
    made = UUID(config["tenantId"])
    assert answer["Location"] == f"/config/tenants/{made}"
    assert (config["accountId"], config["tenantName"], "kind" in config) == (
        str(world.account.pk), "Sales", False
    )  # fmt: skip
    assert config["warehouse"]["pricing"] == [PRICE]
    assert Membership.objects.get(tenant_id=made).role == "owner"
    rules = client.get(f"/config/tenants/{made}/rules").json()["rules"]
    assert [rule["id"] for rule in rules] == ["mine"]
    (draft,) = RuleDraft.objects.filter(tenant_id=made)
    assert [rule["id"] for rule in draft.rules] == ["mine", "found"]
    # It says of which warehouse the prices are, and not where that is.
    steps = {step["id"]: step["done"] for step in client.get(f"/tenants/{made}/setup").json()["steps"]}
    assert not steps["warehouse"]

    assert not Tenant.objects.filter(pk=tenant).exists()
    assert list(default_store().list(f"{tenant}/")) == []
    assert not Assessment.objects.exists()
    event = Event.objects.get(kind="tenant.adopted")
    assert (event.actor, event.tenant_id, event.before) == (
        world.owner.email, made, {"assessment": str(tenant)}
    )  # fmt: skip
    assert Revision.objects.filter(tenant_id=tenant, action="delete").exists()
    assert str(made) in str(body_of(client.get("/config/tenants/manifest")))


def test_by_default_it_keeps_its_name_and_account(world: factories.World) -> None:
    tenant = make_assessment(world.owner, report={"rules": []})
    account = Tenant.objects.get(pk=tenant).account_id
    answer = ApiClient(factories.sign_in(world.owner)).post(f"/config/tenants/{tenant}/adopt", {})
    assert (answer.json()["accountId"], answer.json()["tenantName"]) == (str(account), "History")
    assert not RuleDraft.objects.exists()


@pytest.mark.parametrize("who", ["stranger", "tenant_admin"])
def test_only_owners_of_both_adopt(world: factories.World, who: str) -> None:
    user: User = getattr(world, who)
    tenant = make_assessment(world.owner)
    Membership.objects.create(user=user, tenant_id=tenant, role="admin")
    body = {"accountId": str(world.account.pk)}
    client = ApiClient(factories.sign_in(user))
    assert client.post(f"/config/tenants/{tenant}/adopt", body).status_code == 403
    # An owner of the assessment who does not own the account.
    Membership.objects.filter(user=user, tenant_id=tenant).update(role="owner")
    assert client.post(f"/config/tenants/{tenant}/adopt", body).status_code == 403
    assert Tenant.objects.assessments().filter(pk=tenant).exists()


def test_a_refused_adoption_leaves_the_assessment(world: factories.World) -> None:
    tenant = make_assessment(world.owner)
    client = ApiClient(factories.sign_in(world.owner))
    body = {"accountId": str(world.account.pk), "tenantName": world.tenant.name}
    assert client.post(f"/config/tenants/{tenant}/adopt", body).status_code == 409
    assert Assessment.objects.filter(pk=tenant).exists()
    assert client.get(f"/tenants/{tenant}/assessment").status_code == 200
    # A customer's tenant is none.
    assert client.post(f"/config/tenants/{world.tenant.pk}/adopt", {}).status_code == 404
