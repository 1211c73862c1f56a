"""What the tests of this area share."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connection

from accounts.models import Fqdn, Tenant
from accounts.serializers.tenants import parse_config
from accounts.tenants.config import write_config
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from accounts.models import User
    from accounts.tenants.config import ConfigState

Result = TypeVar("Result")


def signed_in(user: User) -> ApiClient:
    """Return a client that carries the token of a sign-in."""
    return ApiClient(factories.sign_in(user))


def configure(tenant_id: UUID, *, name: str = "W", **more: Any) -> ConfigState:
    """Write a tenant's configuration as a request does; ``more`` are members beside its name."""
    document = {"tenantName": name, **more}
    return write_config(tenant_id=tenant_id, document=document, parse=parse_config, actor="owner@example.org")


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call all of ``calls`` at the same moment, each in a thread and connection of its own."""
    ready = Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        ready.wait(timeout=30)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def age(tenant: Tenant, days: float) -> None:
    """Let a tombstone and its names be ``days`` old."""
    delta = dt.timedelta(days=days)
    deleted_at = Tenant.objects.get(pk=tenant.pk).deleted_at
    assert deleted_at is not None
    Tenant.objects.filter(pk=tenant.pk).update(deleted_at=deleted_at - delta)
    Fqdn.objects.filter(tenant_id=tenant.pk).update(released_at=deleted_at - delta)
