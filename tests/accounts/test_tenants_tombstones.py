"""Tombstones are removed when their time has come. Contract: States and transitions (Tenant)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from accounts.models import Fqdn, Membership, PermissionGrant, Revision, Tenant
from accounts.tasks import remove_tombstones
from accounts.tenants.lifecycle import delete_tenant
from tests.accounts.support import age, configure

if TYPE_CHECKING:
    from tests import factories

pytestmark = pytest.mark.django_db


def test_a_tombstone_lives_30_days(world: factories.World) -> None:
    tenant = world.tenant
    configure(tenant.pk, fqdns=["w.gateway.localhost"])
    PermissionGrant.objects.create(
        grantee=world.stranger, resource="tenant", resource_id=tenant.pk, permissions=["config:read"]
    )
    delete_tenant(tenant_id=tenant.pk, actor="owner@example.org")
    age(tenant, 29.99)
    remove_tombstones()
    assert Tenant.objects.filter(pk=tenant.pk).exists()
    assert Fqdn.objects.filter(tenant_id=tenant.pk).exists()
    assert Membership.objects.filter(tenant_id=tenant.pk).count() == 3
    age(tenant, 30)
    remove_tombstones()
    assert not Tenant.objects.filter(pk=tenant.pk).exists()
    assert not Fqdn.objects.filter(tenant_id=tenant.pk).exists()
    assert not PermissionGrant.objects.filter(resource_id=tenant.pk).exists()
    assert Revision.objects.filter(tenant_id=tenant.pk).count() == 5
    assert Tenant.objects.filter(pk=world.stranger_tenant.pk).exists()
    remove_tombstones()
