"""What earlier releases sent to a language model stays readable as long as audits are kept."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from analytics.models import ModelExchange
from analytics.watch.digests import delete_old_exchanges
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.analytics.digest.support import DAY
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db


def keep_exchange(world: factories.World) -> ModelExchange:
    return ModelExchange.objects.create(
        tenant_id=world.tenant.pk,
        period=str(DAY),
        address="https://llm.example.com/v1",
        request={"model": "small"},
        answer="{}",
        outcome=ModelExchange.Outcome.REFUSED,
        reason="The answer has not one index for each sentence.",
    )


def test_owners_and_platform_admins_read_them() -> None:
    world = factories.make_world()
    kept = keep_exchange(world)

    def read(user: Any) -> Any:
        return ApiClient(factories.sign_in(user)).get(f"/tenants/{world.tenant.pk}/model-exchanges")

    for user in (world.owner, world.platform_admin):
        (shown,) = read(user).json()["exchanges"]
        assert (shown["period"], shown["address"]) == (str(DAY), kept.address)
        assert (shown["request"], shown["answer"]) == (kept.request, "{}")
        assert (shown["outcome"], shown["reason"]) == ("refused", kept.reason)
    for user in (world.tenant_admin, world.member, world.stranger):
        assert read(user).status_code == 403


def test_they_end_with_the_audits_of_their_time(settings: Any) -> None:
    keep_exchange(factories.make_world())
    delete_old_exchanges()
    assert ModelExchange.objects.count() == 1

    ModelExchange.objects.update(sent_at=now() - settings.AUDIT_RETENTION - dt.timedelta(seconds=1))
    delete_old_exchanges()
    assert ModelExchange.objects.count() == 0
