"""What the spellings in a tenant's log change: warnings, refusals, and invalidation by table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from logs.models import Partition
from rules.language import complete_rule
from rules.lint import lint_ruleset
from rules.table_invalidation import find_rules
from rules.tables.warehouse import WarehouseTables
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

QUOTED = '"hr"."people"'
BYPASS: dict[str, Any] = {
    "id": "personal",
    "action": "bypass",
    "conditions": {"tables": {"containsAny": ["hr.people"], "ignoreCase": True}},
}
BOTH: dict[str, Any] = {
    **BYPASS,
    "conditions": {"tables": {"containsAny": ["hr.people", QUOTED], "ignoreCase": True}},
}
READS: dict[str, Any] = {"id": "reads", "conditions": {"isReadOnly": True}, "varyBy": []}
CODE = "table-spelled-otherwise"


def log(world: World, *names: str) -> None:
    Partition.objects.create(
        tenant_id=world.tenant.pk,
        day=now().date(),
        rows=1,
        bytes=1,
        objects_read=1,
        duplicates=0,
        quarantined=0,
        table_names={"counts": dict.fromkeys(names, 1), "complete": True},
    )


def test_a_bypass_does_not_hide_rules_that_cached_another_spelling() -> None:
    def found(first: dict[str, Any], *logged: str) -> list[str]:
        rules = [complete_rule(rule) for rule in (first, READS)]
        return [rule["id"] for rule in find_rules(rules, ["hr.people"], WarehouseTables(logged=logged))]

    assert found(BYPASS) == []
    assert found(BYPASS, "hr.people", "sales.orders") == []
    assert found(BYPASS, QUOTED) == ["reads"]
    assert found(BYPASS, "people") == ["reads"]
    assert found(BOTH, QUOTED) == []


def test_a_bypass_does_not_make_another_spelling_safe_to_share() -> None:
    def errors(first: dict[str, Any], *logged: str) -> list[str]:
        tables = WarehouseTables(per_user=("hr.people",), logged=logged)
        return [error.message for error in lint_ruleset({"rules": [first, READS]}, tables=tables).errors]

    assert errors(BYPASS) == errors(BYPASS, "hr.people", "x.y") == errors(BOTH, QUOTED) == []
    [message] = errors(BYPASS, QUOTED)
    assert '"containsAny": ["\\"hr\\".\\"people\\""], "ignoreCase": true' in message
    # A doubt about a doubt is none: a rule for one table alone stays exact.
    tables = WarehouseTables(per_user=("hr.*",), logged=("orders",))
    exact = {**READS, "conditions": {"tables": "sales.orders"}}
    assert lint_ruleset({"rules": [exact]}, tables=tables).valid


@pytest.mark.django_db
def test_a_tenant_whose_log_has_another_spelling(world: World) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    rules, drafts = (f"/config/tenants/{world.tenant.pk}/{name}" for name in ("rules", "rules/drafts"))
    log(world, QUOTED, "hr.people")
    document = {"rules": [BYPASS, {**READS, "varyBy": ["userName"]}]}
    assert client.put(rules, document).status_code == 200
    draft = client.post(drafts, document)
    assert draft.status_code == 201, draft.content
    assert [warning["code"] for warning in draft.json()["lint"]["warnings"]] == [CODE]
    # Validate knows no tenant, so no log.
    assert client.post("/config/rules/validate", document).json()["warnings"] == []

    config = f"/config/tenants/{world.tenant.pk}/config"
    warehouse = {
        "adapterType": "postgresql",
        "serverHostname": "db.example.org",
        "perUserTables": ["hr.people"],
    }
    answer = client.put(config, {**client.get(config).json(), "warehouse": warehouse})
    assert answer.status_code == 200, answer.content
    refused = client.put(rules, {"rules": [BYPASS, READS]})
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, "per-user-table-shared")
    assert client.put(rules, {"rules": [BOTH, READS]}).status_code == 200

    path = f"/tenants/{world.tenant.pk}/invalidations"
    tables = {"tables": ["hr.people"]}
    gateway = ApiClient(factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)]))
    assert gateway.post(f"{path}/preview", tables).json()["ruleIds"] == []
    Partition.objects.update(table_names={"counts": {"people": 1}, "complete": True})
    assert gateway.post(f"{path}/preview", tables).json()["ruleIds"] == ["reads"]
    markers = gateway.post(path, tables).json()["markers"]
    assert [marker["targetRuleId"] for marker in markers] == ["reads"]
