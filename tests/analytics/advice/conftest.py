"""A tenant with a log that asks for a rule, and a client that may decide."""

from __future__ import annotations

from uuid import UUID

import pytest

from accounts.access.scopes import Scope
from tests import factories
from tests.analytics.advice.searching import ADS, RARE, put_log
from tests.conftest import ApiClient


@pytest.fixture
def tenant(world: factories.World) -> UUID:
    """A tenant without rules and a log that asks for one."""
    put_log(world.tenant.pk, [*ADS, *RARE])
    return world.tenant.pk


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    scopes = (Scope.ANALYTICS_READ, Scope.CONFIG_WRITE)
    return ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))
