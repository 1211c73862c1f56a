"""Arguments that several commands take."""

from __future__ import annotations

import uuid
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from accounts.management.arguments import tenant_id
from accounts.models import Tenant
from accounts.tenants.lifecycle import remove_old_tombstones
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from typing import Any

    from tests.factories import World

UNKNOWN = uuid.UUID("11111111-2222-4333-8444-555555555555")


def test_a_tenant_is_known_as_long_as_its_history_stands(world: World, settings: Any) -> None:
    tenant = world.tenant.pk
    assert tenant_id(str(tenant)) == tenant

    Tenant.objects.filter(pk=tenant).update(deleted_at=now() - 2 * settings.TOMBSTONE_LIFETIME)
    assert tenant_id(str(tenant)) == tenant

    assert remove_old_tombstones() == 1
    assert tenant_id(str(tenant)) == tenant


@pytest.mark.django_db
def test_an_unknown_tenant_is_none() -> None:
    with pytest.raises(ArgumentTypeError, match=f"^There is no tenant {UNKNOWN}.$"):
        tenant_id(str(UNKNOWN))
    with pytest.raises(ArgumentTypeError, match=r"^'x\\x1b' is no tenant's id, which is a UUID.$"):
        tenant_id("x\x1b")


@pytest.mark.django_db
@pytest.mark.parametrize("command", [["import_logs", "."], ["sql", "SELECT 1"], ["rebuild"]])
def test_every_command_refuses_it(command: list[str]) -> None:
    with pytest.raises(CommandError, match=f"argument --tenant: There is no tenant {UNKNOWN}."):
        call_command(*command, f"--tenant={UNKNOWN}")
