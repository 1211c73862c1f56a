"""Fixtures of the tests of staff pages: browsers in which staff are signed in, and a tenant."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from django.test import Client

from accounts.models import Membership, User
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.logs import RULE

if TYPE_CHECKING:
    from accounts.models import Tenant


@pytest.fixture
def staff(client: Client, world: factories.World) -> Client:
    client.force_login(world.platform_admin)
    return client


@pytest.fixture
def support(world: factories.World) -> Client:
    client = Client()
    client.force_login(factories.make_user("support@example.org", is_support=True))
    return client


@pytest.fixture
def tenant(world: factories.World) -> Tenant:
    """A tenant with one rule."""
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": [RULE]}, actor="owner@example.org")
    return world.tenant


@pytest.fixture
def access(support: Client, world: factories.World) -> Client:
    """A member of support with limited access to the tenant's log."""
    Membership.objects.create(
        user=User.objects.get(email="support@example.org"),
        tenant=world.tenant,
        role="member",
        ends_at=now() + dt.timedelta(hours=1),
    )
    return support
