"""End delegated grants, and record what happens to them. `accounts.billing.grants` decides who may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from accounts.events import record_event
from accounts.models import PermissionGrant
from accounts.models.billing import GrantResource
from accounts.models.events import EventKind
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID


def end_grant(grant: PermissionGrant, *, actor: str) -> bool:
    """Revoke a grant; return False if it was revoked before."""
    with transaction.atomic():
        live = PermissionGrant.objects.not_revoked().filter(pk=grant.pk)
        if not live.update(revoked_at=now()):
            return False
        record_grant(EventKind.GRANT_REVOKED, grant, actor=actor)
    return True


def delete_grants(*, resource: GrantResource, ids: Collection[UUID], actor: str) -> None:
    """Delete the grants on tenants or accounts. Call it in the transaction that deletes these."""
    grants = PermissionGrant.objects.filter(resource=resource, resource_id__in=ids)
    for grant in grants.in_force().select_related("grantee"):
        record_grant(EventKind.GRANT_REVOKED, grant, actor=actor)
    grants.delete()


def record_grant(kind: EventKind, grant: PermissionGrant, *, actor: str) -> None:
    """Record that a grant was created or ended."""
    is_created, is_on_tenant = kind is EventKind.GRANT_CREATED, grant.resource == GrantResource.TENANT
    content = {
        "grant": str(grant.pk),
        "permissions": sorted(grant.permissions),
        "expiresAt": format_timestamp(grant.expires_at) if grant.expires_at else None,
    }
    record_event(
        kind,
        actor=actor,
        subject=grant.grantee.email,
        tenant_id=grant.resource_id if is_on_tenant else None,
        account_id=None if is_on_tenant else grant.resource_id,
        before=None if is_created else content,
        after=content if is_created else None,
    )
