"""What replays are called in their list, and what came of them."""

from __future__ import annotations

from datetime import date, timedelta
from uuid import uuid4

import pytest

from accounts.access.scopes import Scope
from analytics.models import ReplayRun
from rules.drafts import create_draft, publish_draft
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_replay_has_a_name_and_an_outcome(world: factories.World) -> None:
    tenant, api = (
        world.tenant,
        ApiClient(factories.pat_token(world.owner, Scope.CONFIG_READ, tenants=[str(world.tenant.pk)])),
    )
    draft = create_draft(
        tenant_id=tenant.pk, document={"name": "Cache all", "rules": [], "baseSeq": 0}, actor="a@b.example"
    )
    result = {
        "total": {"savedMs": {"low": 5000, "likely": None, "high": 7000}},
        "against": {"total": {"savedMs": {"low": 0, "likely": 1000, "high": 2000}}},
        "billed": {
            "gain": {
                "billedMs": {"low": -2, "high": -1},
                "money": {"currency": "USD", "low": "-2.00", "high": "-1.00"},
            }
        },
    }
    recommended = factories.recommendation(tenant)
    runs = {
        "rules that a program sent": ({"digest": "0"}, {**result, "billed": None}),
        "revision 3": ({"seq": 3}, None),
        "a deleted draft": ({"draftId": str(uuid4())}, None),
        "Cache all": ({"draftId": str(draft.pk)}, result),
        "Cache everything": ({"digest": "1"}, None),
    }
    for number, (name, (subject, found)) in enumerate(runs.items()):
        run = ReplayRun.objects.create(
            tenant_id=tenant.pk,
            digest=str(number),
            subject=subject,
            rules=[],
            result=found,
            warmup_days=1,
            first_day=date(2026, 3, 1),
            last_day=date(2026, 3, 2),
            requested_by="a@b.example",
            # Those of one millisecond have no order.
            requested_at=now() - timedelta(minutes=len(runs) - number),
        )
        if name == recommended.title:
            recommended.replay = run
            recommended.save()
    listed = api.get(f"/tenants/{tenant.pk}/replays").json()["replays"]
    assert [one["name"] for one in listed] == [*reversed(runs)]
    outcomes = {one["name"]: one["outcome"] for one in listed if "outcome" in one}
    assert outcomes == {
        "rules that a program sent": "Warehouse time: 5 s less",
        "Cache all": "On the bill: 1.00 to 2.00 USD less",
    }
    publish_draft(tenant_id=tenant.pk, draft_id=draft.pk, actor="a@b.example")
    listed = api.get(f"/tenants/{tenant.pk}/replays").json()["replays"]
    assert listed[1]["name"] == "Cache all, published as revision 1"
