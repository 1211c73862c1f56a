"""Metadata that Gateways store about cached results. Contract: Cache metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from accounts.tenants.listing import require_live_tenant
from rules.models import CacheMetadata
from tenantadmin.core.errors import Detail, NotFound, ValidationFailed
from tenantadmin.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

#: Members that are kept in the JSON column, in the order of the contract: before the times, and after them.
_FIRST_MEMBERS: Final = ("queryHash", "statement", "sizeBytes", "rowCount")
_LAST_MEMBERS: Final = ("hitCount", "tables", "tags")


class CacheMetadataNotFound(NotFound):
    message = "There is no metadata for this cache key."


def metadata_as_json(row: CacheMetadata) -> dict[str, Any]:
    """Return the contract's CacheMetadata; absent members stay absent."""
    times = {"expiresAt": row.expires_at, "lastAccessedAt": row.last_accessed_at}
    document = row.document
    return {
        "tenantId": str(row.tenant_id),
        "cacheKey": row.cache_key,
        "ruleId": row.rule_id,
        **{name: document[name] for name in _FIRST_MEMBERS if name in document},
        "createdAt": format_timestamp(row.created_at),
        **{name: format_timestamp(time) for name, time in times.items() if time is not None},
        **{name: document[name] for name in _LAST_MEMBERS if name in document},
    }


def read_metadata(tenant_id: UUID, cache_key: str) -> dict[str, Any]:
    """Return the metadata of a cache key as JSON.

    Raises:
        TenantNotFound, CacheMetadataNotFound: there is no such live tenant or no metadata.
    """
    row = CacheMetadata.objects.filter(
        tenant=tenant_id, tenant__deleted_at__isnull=True, cache_key=cache_key
    ).first()
    if row is None:
        require_live_tenant(tenant_id)
        raise CacheMetadataNotFound
    return metadata_as_json(row)


def write_metadata(tenant_id: UUID, cache_key: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Create or replace the metadata of a cache key and return it as JSON.

    Raises:
        TenantNotFound: there is no such live tenant.
        ValidationFailed: ``tenantId`` or ``cacheKey`` differs from the path.
    """
    given = {"tenantId": tenant_id, "cacheKey": cache_key}
    details = [
        Detail(
            f"/{name}",
            "read-only",
            f"'{name}' differs from the path. Leave it out or send the value of the path.",
        )
        for name, value in given.items()
        if document.get(name, value) != value
    ]
    if details:
        raise ValidationFailed(details=details)
    require_live_tenant(tenant_id)
    row = CacheMetadata(
        tenant_id=tenant_id,
        cache_key=cache_key,
        rule_id=document["ruleId"],
        created_at=document.get("createdAt") or now(),
        expires_at=document.get("expiresAt"),
        last_accessed_at=document.get("lastAccessedAt"),
        document={name: document[name] for name in (*_FIRST_MEMBERS, *_LAST_MEMBERS) if name in document},
    )
    CacheMetadata.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["tenant", "cache_key"],
        update_fields=["rule_id", "created_at", "expires_at", "last_accessed_at", "document"],
    )
    return metadata_as_json(row)
