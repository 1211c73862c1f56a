"""Staff pages name rules as the rules in force do, with their ids in tooltips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rules.write import write_ruleset
from tests.admin.logs import DAY, RULE, START, put_log, to

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant

DAYS = {"first": DAY.isoformat(), "last": DAY.isoformat()}


@pytest.fixture
def named(tenant: Tenant) -> Tenant:
    """A tenant whose rule has a hit that is older than a change of its table."""
    rules = [{**RULE, "name": "All <orders>"}]
    write_ruleset(tenant_id=tenant.pk, document={"rules": rules}, actor="owner@example.org")
    read = {"standardizedSql": "SELECT 1", "isReadOnly": True, "tables": '["sales.orders"]'}
    read |= {"matchedRule": "orders", "matchedRuleName": "Orders", "userName": "ana"}
    change = {"standardizedSql": "UPDATE sales.orders", "isDataChange": True, "tables": '["sales.orders"]'}
    put_log(
        tenant,
        {**read, "cacheStatus": "MISS", "warehouseExecutionTimeMs": 60_000},
        {**change, "timestamp": START + 100_000},
        {**read, "cacheStatus": "HIT", "timestamp": START + 200_000, "cacheAgeSeconds": 200},
    )
    return tenant


def test_a_rule_has_its_name_and_leads_to_the_dashboard(access: Client, named: Tenant) -> None:
    shown = access.get(to("tenant-reports", named), DAYS).content.decode()
    address = f"{to('tenant-open', named)}?to=rules%3Frule%3Dorders"
    assert f'<a href="{address}" title="orders">All &lt;orders&gt;</a>' in shown
    assert "<code>orders</code>" not in shown


def test_a_rule_that_is_gone_has_its_id(access: Client, named: Tenant) -> None:
    write_ruleset(
        tenant_id=named.pk, document={"rules": []}, actor="owner@example.org", confirm_deletes=["orders"]
    )
    shown = access.get(to("tenant-reports", named), DAYS).content.decode()
    assert '<th><span title="orders">orders</span></th>' in shown
