"""The configuration document through the API. Contract: Tenants and configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from accounts.models import Domain, Event, Fqdn, Revision, Tenant
from accounts.tenants.lifecycle import delete_tenant
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/config/tenants/{world.tenant.pk}/config"


@pytest.fixture
def stored(client: ApiClient, address: str) -> dict[str, Any]:
    body: dict[str, Any] = client.get(address).json()
    return body


def test_a_write_answers_the_whole_document_with_its_defaults(
    client: ApiClient, address: str, stored: dict[str, Any], world: factories.World
) -> None:
    warehouse = {
        "adapterType": "databricks",
        "serverHostname": "dbc-a1b2c3d4-e5f6.cloud.databricks.com",
        "port": 443,
        "httpPath": "/sql/1.0/warehouses/abcdef1234567890",
        "credentialRef": "vault:warehouses/acme/production",
    }
    answer = client.put(
        address,
        {
            "tenantName": "Lager",
            "fqdns": ["Lager.Gateway.localhost"],
            "warehouse": warehouse,
            "defaults": {"ttlSeconds": 60},
        },
    )
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body == {
        **stored,
        "tenantName": "Lager",
        "fqdns": ["lager.gateway.localhost"],
        "warehouse": warehouse,
        "defaults": {"cacheEnabled": True, "ttlSeconds": 60},
        "modifiedAt": body["modifiedAt"],
        "seq": 1,
    }
    assert body["modifiedAt"] > stored["modifiedAt"]
    assert client.get(address).json() == body
    tenant = Tenant.objects.get(pk=world.tenant.pk)
    assert (tenant.name, tenant.name_key) == ("Lager", "lager")
    revision = Revision.objects.get(tenant_id=tenant.pk, kind="config", seq=1)
    assert (revision.action, revision.user, revision.changed_at) == (
        "update",
        "owner@example.org",
        tenant.modified_at,
    )
    assert revision.summary == {
        "changedFields": 4,
        "fields": ["/defaults/ttlSeconds", "/fqdns", "/tenantName", "/warehouse"],
    }
    assert revision.document is not None
    assert revision.document["tenantName"] == "Lager"


def test_a_config_may_be_sent_back_as_it_was_read(
    client: ApiClient, address: str, stored: dict[str, Any]
) -> None:
    answer = client.put(address, {**stored, "plan": "enterprise", "modifiedAt": "whenever"})
    assert answer.status_code == 200, answer.content
    assert answer.json() == {**stored, "seq": 1, "modifiedAt": answer.json()["modifiedAt"]}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"tenantId": "00000000-0000-4000-8000-000000000000"}, "/tenantId"),
        ({"accountId": "00000000-0000-4000-8000-000000000000"}, "/accountId"),
        ({"createdAt": "2020-01-01T00:00:00.000Z"}, "/createdAt"),
        ({"createdAt": "2020-01-01T00:00:00"}, "/createdAt"),
        ({"seq": -1}, "/seq"),
        ({"seq": "0"}, "/seq"),
        ({"seq": True}, "/seq"),
        ({"warehouse": None}, "/warehouse"),
        ({"warehouse": {"adapterType": "snowflake"}}, "/warehouse/serverHostname"),
        ({"fqdns": ["a.gateway.localhost", "nowhere"]}, "/fqdns/1"),
        ({"nested": {}}, "/nested"),
    ],
)
def test_an_invalid_body_is_a_400_that_names_the_place(
    client: ApiClient, address: str, stored: dict[str, Any], change: dict[str, Any], path: str
) -> None:
    answer = client.put(address, {**stored, **change})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert [detail["path"] for detail in answer.json()["details"]] == [path]
    assert client.get(address).json() == stored


def test_an_invalid_fqdn_is_refused_at_its_place(
    client: ApiClient, address: str, stored: dict[str, Any], world: factories.World
) -> None:
    bad = [
        "a.gateway.localhost.",
        "*.gateway.localhost",
        "10.0.0.1",
        "ｅ.gateway.localhost",
        "xn--a.gateway.localhost",
        "a\n.gateway.localhost",
        "",
        "x" * 64 + ".gateway.localhost",
        7,
    ]
    fqdns = ["a.gateway.localhost", *bad]
    create = {"accountId": str(world.account.pk), "tenantName": "New", "fqdns": fqdns}
    for answer in (
        client.put(address, {**stored, "fqdns": fqdns}),
        client.post("/config/tenants", create),
    ):
        assert answer.status_code == 400
        paths = [detail["path"] for detail in answer.json()["details"]]
        assert paths == [f"/fqdns/{index}" for index in range(1, len(fqdns))]
    assert client.get(address).json() == stored


def test_all_findings_come_at_once(client: ApiClient, address: str, stored: dict[str, Any]) -> None:
    answer = client.put(address, {**stored, "tenantName": "", "lables": {}, "fqdns": ["*"]})
    assert sorted(detail["path"] for detail in answer.json()["details"]) == [
        "/fqdns/0",
        "/lables",
        "/tenantName",
    ]
    assert "Did you mean 'labels'?" in answer.content.decode()


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"7", b'"x"', b"{"])
def test_a_body_that_is_no_object_is_a_400(client: ApiClient, address: str, body: bytes) -> None:
    assert client.put(address, body).status_code == 400


def test_a_stale_seq_or_etag_is_a_409(client: ApiClient, address: str, stored: dict[str, Any]) -> None:
    old = client.get(address)["ETag"]
    assert client.put(address, stored).status_code == 200
    assert client.put(address, stored).json()["error"] == "concurrent_change"
    del stored["seq"]
    assert client.put(address, stored, **{"If-Match": old}).status_code == 409
    new = client.get(address)["ETag"]
    assert client.put(address, stored, **{"If-Match": new}).json()["seq"] == 2


def test_a_304_costs_one_light_query(
    client: ApiClient,
    address: str,
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
    world: factories.World,
) -> None:
    held = client.get(address)["ETag"]
    with django_assert_num_queries(2) as captured:  # the caller's rights and the tag
        assert client.get(address, **{"If-None-Match": held}).status_code == 304
    assert '"document"' not in captured.captured_queries[-1]["sql"]
    with django_assert_num_queries(2):
        client.get(address)
    type(world.account).objects.filter(pk=world.account.pk).update(plan="enterprise")
    again = client.get(address, **{"If-None-Match": held})
    assert (again.status_code, again.json()["plan"]) == (200, "enterprise")


def test_a_name_of_another_tenant_is_a_409_and_nothing_is_written(
    client: ApiClient, address: str, stored: dict[str, Any], world: factories.World
) -> None:
    factories.make_tenant(world.account, "Sales")
    answer = client.put(address, {**stored, "tenantName": "SALES"})
    assert (answer.status_code, answer.json()["error"]) == (409, "tenant_name_conflict")
    assert client.get(address).json() == stored


def test_a_released_name_is_held_for_its_last_owner(
    client: ApiClient, address: str, stored: dict[str, Any], world: factories.World, settings: Any
) -> None:
    other = ApiClient(factories.sign_in(world.stranger))
    their_address = f"/config/tenants/{world.stranger_tenant.pk}/config"
    name = "mine.gateway.localhost"
    assert client.put(address, {"tenantName": "W", "fqdns": [name]}).status_code == 200
    taken = other.put(their_address, {"tenantName": "O", "fqdns": [name]})
    assert (taken.status_code, taken.json()["error"]) == (409, "fqdn_conflict")
    assert [detail["path"] for detail in taken.json()["details"]] == ["/fqdns/0"]
    assert client.put(address, {"tenantName": "W"}).status_code == 200
    assert other.put(their_address, {"tenantName": "O", "fqdns": [name]}).status_code == 409
    assert client.put(address, {"tenantName": "W", "fqdns": [name]}).status_code == 200
    assert client.put(address, {"tenantName": "W"}).status_code == 200
    Fqdn.objects.filter(name=name).update(released_at=now() - settings.TOMBSTONE_LIFETIME)
    assert other.put(their_address, {"tenantName": "O", "fqdns": [name]}).status_code == 200
    assert client.put(address, {"tenantName": "W", "fqdns": [name]}).status_code == 409


def test_released_names_count_until_they_are_free(
    client: ApiClient, address: str, stored: dict[str, Any], world: factories.World, settings: Any
) -> None:
    settings.PLAN_LIMITS = {"team": {"tenants": 1, "fqdns": 2, "rules": None}}

    def claim(*labels: str) -> Any:
        names = [f"{label}.gateway.localhost" for label in labels]
        return client.put(address, {"tenantName": "W", "fqdns": names})

    for labels in (("a", "b"), ("c", "d"), ("e", "f"), ("a", "f"), ()):
        assert claim(*labels).status_code == 200
    refused = claim("g")
    assert (refused.status_code, refused.json()["error"]) == (400, "plan_limit_exceeded")
    assert "7" in refused.json()["message"]
    assert not Fqdn.objects.filter(name="g.gateway.localhost").exists()
    # Another tenant of the account does not help.
    assert client.delete(f"/config/tenants/{world.tenant.pk}").status_code == 200
    body = {"accountId": str(world.account.pk), "tenantName": "Next"}
    assert client.post("/config/tenants", {**body, "fqdns": ["g.gateway.localhost"]}).status_code == 400
    Fqdn.objects.filter(name="a.gateway.localhost").update(released_at=now() - settings.TOMBSTONE_LIFETIME)
    assert client.post("/config/tenants", {**body, "fqdns": ["g.gateway.localhost"]}).status_code == 201


def test_a_deleted_tenants_names_are_held_for_30_days(client: ApiClient, world: factories.World) -> None:
    body = {"accountId": str(world.account.pk), "tenantName": "Brief", "fqdns": ["b.gateway.localhost"]}
    made = client.post("/config/tenants", body).json()
    delete_tenant(tenant_id=made["tenantId"], actor="owner@example.org")
    answer = client.post("/config/tenants", body)
    assert (answer.status_code, answer.json()["error"]) == (409, "fqdn_conflict")
    assert client.post("/config/tenants", {**body, "fqdns": []}).status_code == 201


def test_names_in_a_verified_domain_of_the_account_may_be_assigned(
    client: ApiClient, address: str, world: factories.World
) -> None:
    domain = Domain.objects.create(account=world.account, name="example.org", challenge="x")
    body = {"tenantName": "W", "fqdns": ["sql.example.org", "example.org", "bücher.example.org"]}
    assert client.put(address, body).status_code == 400
    Domain.objects.filter(pk=domain.pk).update(verified_at=now())
    answer = client.put(address, body)
    assert answer.status_code == 200, answer.content
    assert answer.json()["fqdns"] == ["sql.example.org", "example.org", "xn--bcher-kva.example.org"]
    outside = client.put(address, {"tenantName": "W", "fqdns": ["notexample.org"]})
    assert outside.json()["details"][0]["code"] == "fqdn-outside-domains"


@pytest.mark.parametrize(
    "secret",
    [
        "dapi0123456789abcdef0123456789abcdef",
        "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln",
        "postgres://user:hunter2@db.example.org/x",
        "-----BEGIN PRIVATE KEY-----",
        "AKIAIOSFODNN7EXAMPLE",
        "password = hunter2",
        "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
        "0123456789abcdef0123456789abcdef",
    ],
)
def test_a_credential_is_refused_wherever_it_stands(client: ApiClient, address: str, secret: str) -> None:
    for name in ("credentialRef", "database"):
        warehouse = {"adapterType": "postgresql", "serverHostname": "db.example.org", name: secret}
        answer = client.put(address, {"tenantName": "W", "warehouse": warehouse})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["code"] == "looks-like-secret"
        assert secret not in answer.content.decode()


@pytest.mark.parametrize(
    "reference",
    [
        "vault:secret/warehouses/acme",
        "arn:aws:secretsmanager:eu-central-1:123456789012:secret:acme-prod-AbCdEf",
        "env:ACME_WAREHOUSE_PASSWORD",
        "3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c",
        "projects/acme/secrets/warehouse/versions/latest",
    ],
)
def test_the_name_of_a_credential_is_accepted(client: ApiClient, address: str, reference: str) -> None:
    warehouse = {"adapterType": "snowflake", "serverHostname": "h", "credentialRef": reference}
    assert client.put(address, {"tenantName": "W", "warehouse": warehouse}).status_code == 200


def test_an_equal_configuration_writes_nothing_if_changed(client: ApiClient, address: str) -> None:
    stored = client.get(address)
    again = client.put(f"{address}?ifChanged=true", stored.json())
    assert (again.status_code, again.json(), again["ETag"]) == (200, stored.json(), stored["ETag"])
    changed = client.put(f"{address}?ifChanged=true", {**stored.json(), "labels": {"team": "data"}})
    assert changed.json()["seq"] == stored.json()["seq"] + 1
    # Without it, an equal document is a write.
    assert client.put(address, changed.json()).json()["seq"] == stored.json()["seq"] + 2


class TestPerUserTables:
    """``warehouse.perUserTables``. Rules that share results of these tables are refused, either way round."""

    WAREHOUSE: ClassVar = {"adapterType": "snowflake", "serverHostname": "meridian.example"}
    SHARED: ClassVar = {"rules": [{"id": "reports", "conditions": {"isReadOnly": True}, "varyBy": []}]}

    def configure(self, client: ApiClient, address: str, *tables: str) -> Any:
        warehouse = self.WAREHOUSE | ({"perUserTables": list(tables)} if tables else {})
        return client.put(address, {"tenantName": "Lager", "warehouse": warehouse})

    def test_they_are_read_back(self, client: ApiClient, address: str) -> None:
        for tables in ([], ["hr.*", "Sales.Targets"]):
            warehouse = self.WAREHOUSE | {"perUserTables": tables}
            answer = client.put(address, {"tenantName": "Lager", "warehouse": warehouse})
            assert answer.status_code == 200, answer.content
            assert answer.json()["warehouse"] == warehouse

    @pytest.mark.parametrize("tables", ["hr.*", [1], [""], ["x" * 501], ["hr"] * 101, ["x" * 401] * 50])
    def test_other_values_are_refused(self, client: ApiClient, address: str, tables: Any) -> None:
        warehouse = self.WAREHOUSE | {"perUserTables": tables}
        answer = client.put(address, {"tenantName": "Lager", "warehouse": warehouse})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"].startswith("/warehouse/perUserTables")

    def test_rules_that_share_a_table_are_refused(self, client: ApiClient, address: str) -> None:
        rules = address.removesuffix("config") + "rules"
        assert self.configure(client, address, "HR.*").status_code == 200
        answer = client.put(rules, self.SHARED)
        assert answer.status_code == 400
        assert [(error["code"], error["ruleId"]) for error in answer.json()["errors"]] == [
            ("per-user-table-shared", "reports")
        ]
        # Validate knows no tenant.
        assert client.post("/config/rules/validate", self.SHARED).status_code == 200

    def test_a_restore_of_old_rules_is_checked_against_the_tables_of_today(
        self, client: ApiClient, address: str
    ) -> None:
        rules = address.removesuffix("config") + "rules"
        assert client.put(rules, self.SHARED).json()["seq"] == 1
        assert client.put(rules, {"rules": []}).json()["seq"] == 2
        assert self.configure(client, address, "hr.*").status_code == 200
        history = f"{rules}/history/1/restore"
        answer = client.post(history)
        assert (answer.status_code, answer.json()["errors"][0]["ruleId"]) == (400, "reports")

    def test_a_configuration_that_adds_a_table_which_rules_share_is_refused(
        self, client: ApiClient, address: str, world: factories.World
    ) -> None:
        rules = address.removesuffix("config") + "rules"
        assert client.put(rules, self.SHARED).status_code == 200
        answer = self.configure(client, address, "hr.*")
        assert answer.status_code == 400
        (detail,) = answer.json()["details"]
        assert (detail["path"], detail["code"]) == ("/warehouse/perUserTables", "per-user-table-shared")
        assert "reports" in detail["message"]
        assert Revision.objects.filter(tenant_id=world.tenant.pk, kind="config").count() == 1
        varying = [rule | {"varyBy": ["userName"]} for rule in self.SHARED["rules"]]
        assert client.put(rules, {"rules": varying}).status_code == 200
        assert self.configure(client, address, "hr.*").status_code == 200
        assert client.put(rules, self.SHARED).status_code == 400

    def test_another_spelling_of_a_table_is_the_table(self, client: ApiClient, address: str) -> None:
        assert self.configure(client, address, "hr.people").status_code == 200
        rules = address.removesuffix("config") + "rules"
        for spelled in ("hr.people", '"HR"."People"', "prod.hr.people", "people"):
            rule = {"id": "r", "conditions": {"tables": {"in": [spelled]}}, "varyBy": []}
            assert client.put(rules, {"rules": [rule]}).status_code == 400, spelled
        other = {"id": "r", "conditions": {"tables": {"in": ["pay.people"]}}, "varyBy": []}
        assert client.put(rules, {"rules": [other]}).status_code == 200

    def test_a_view_over_such_a_table_is_protected_with_it(self, client: ApiClient, address: str) -> None:
        rules = address.removesuffix("config") + "rules"
        rule = {"id": "r", "conditions": {"tables": {"in": ["v.staff"]}}, "varyBy": []}
        warehouse: dict[str, Any] = self.WAREHOUSE | {"perUserTables": ["hr.*"]}
        assert client.put(address, {"tenantName": "Lager", "warehouse": warehouse}).status_code == 200
        assert client.put(rules, {"rules": [rule]}).status_code == 200
        warehouse["views"] = {"V.Staff": ['"HR".people']}
        answer = client.put(address, {"tenantName": "Lager", "warehouse": warehouse})
        assert (answer.status_code, answer.json()["details"][0]["code"]) == (400, "per-user-table-shared")
        assert client.put(rules, {"rules": []}).status_code == 200
        answer = client.put(address, {"tenantName": "Lager", "warehouse": warehouse})
        assert (answer.status_code, answer.json()["warehouse"]) == (200, warehouse)
        assert client.put(rules, {"rules": [rule]}).status_code == 400

    @pytest.mark.parametrize(
        "views",
        [
            "v",
            ["v"],
            {"v": "t"},
            {"v": [1]},
            {"v": [""]},
            {"": ["t"]},
            {"v" * 501: ["t"]},
            {"v": ["t"] * 101},
            {f"v{number}": [] for number in range(1_001)},
            {"v": ["x" * 400] * 80},
        ],
    )
    def test_other_values_of_views_are_refused(self, client: ApiClient, address: str, views: Any) -> None:
        warehouse = self.WAREHOUSE | {"views": views}
        answer = client.put(address, {"tenantName": "Lager", "warehouse": warehouse})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"].startswith("/warehouse/views")

    def test_a_view_may_name_itself(self, client: ApiClient, address: str) -> None:
        warehouse = self.WAREHOUSE | {"perUserTables": ["a"], "views": {"a": ["a", "b"], "b": ["a"], "c": []}}
        answer = client.put(address, {"tenantName": "Lager", "warehouse": warehouse})
        assert (answer.status_code, answer.json()["warehouse"]["views"]) == (200, warehouse["views"])

    def test_a_removed_table_leaves_an_event(
        self, client: ApiClient, address: str, world: factories.World
    ) -> None:
        rules = address.removesuffix("config") + "rules"
        self.configure(client, address, "hr.*", "pay.*")
        self.configure(client, address, "pay.*", "hr.*")
        events = Event.objects.filter(kind="per-user-tables.removed")
        assert not events.exists()
        assert self.configure(client, address, "pay.*").status_code == 200
        event = events.get()
        assert (event.actor, event.tenant_id) == (world.owner.email, world.tenant.pk)
        assert (event.before, event.after) == (
            {"perUserTables": ["pay.*", "hr.*"]},
            {"perUserTables": ["pay.*"]},
        )
        assert self.configure(client, address).status_code == 200
        assert events.count() == 2
        assert client.put(rules, self.SHARED).status_code == 200
