"""Metadata that Gateways store about cached results. Contract: Cache metadata."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID

import msgspec
from cachetools import TTLCache
from django.conf import settings
from django.db.models import F, Func, JSONField, TextField
from django.db.models.functions import Cast, Length
from msgspec import Meta

from accounts.cursors import read_cursor, write_cursor
from accounts.limits import Quota, limits_of, require_within, use_quota
from accounts.models import Tenant
from accounts.tenants.listing import require_live_tenant
from rules.models import CacheMetadata
from tenantadmin.lib.core.errors import Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

_CACHE_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,256}")


def require_cache_key(text: str) -> str:
    """Return a cache key from a path.

    Raises:
        NotFound: it is not a valid cache key, so nothing is stored under it.
    """
    if not _CACHE_KEY.fullmatch(text):
        raise NotFound("A cache key is 1 to 256 letters, digits, '.', '_' and '-'.")
    return text


#: Characters of a statement in a list. The document itself has the whole.
_LISTED: Final = 1000


class _Cut(Func):
    template = (
        "coalesce(jsonb_set(%(expressions)s, '{statement}',"
        f" to_jsonb(left(%(expressions)s ->> 'statement', {_LISTED}))), %(expressions)s)"
    )


def with_short_statement(field: str) -> Func:
    """Return an expression: a JSON object whose member ``statement`` is cut for a list."""
    return _Cut(F(field), output_field=JSONField())


def cut_statement(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object whose member ``statement`` is cut for a list."""
    return {name: value[:_LISTED] if name == "statement" else value for name, value in document.items()}


#: A page of metadata ends before the entry with which it would have more characters of JSON.
_PAGE_CHARACTERS: Final = 4_000_000

_CHUNK: Final = 20


class CacheMetadataNotFound(NotFound):
    message = "There is no metadata for this cache key."


_LargeCount: TypeAlias = Annotated[int, Meta(ge=0, le=2**53, extra_json_schema={"format": "int64"})]


class CacheMetadataDocument(JsonStruct):
    """Cache metadata as stored."""

    tenant_id: UUID
    cache_key: str
    rule_id: str
    query_hash: str | None = None
    statement: str | None = None
    size_bytes: _LargeCount | None = None
    row_count: _LargeCount | None = None
    created_at: Timestamp
    expires_at: Timestamp | None = None
    last_accessed_at: Timestamp | None = None
    hit_count: _LargeCount | None = None
    tables: list[str] | None = None
    tags: dict[str, Any] | None = None


#: Members that have a column of their own. The other members are kept in a JSON column.
_COLUMNS: Final = frozenset({"tenantId", "cacheKey", "ruleId", "createdAt", "expiresAt", "lastAccessedAt"})


def describe_metadata(row: CacheMetadata) -> CacheMetadataDocument:
    times = {"expiresAt": row.expires_at, "lastAccessedAt": row.last_accessed_at}
    return msgspec.convert(
        {
            **row.document,
            "tenantId": row.tenant_id,
            "cacheKey": row.cache_key,
            "ruleId": row.rule_id,
            "createdAt": format_timestamp(row.created_at),
            **{name: format_timestamp(time) for name, time in times.items() if time is not None},
        },
        CacheMetadataDocument,
    )


def read_metadata(tenant_id: UUID, cache_key: str) -> CacheMetadataDocument:
    """Return the metadata of a cache key.

    Raises:
        TenantNotFound, CacheMetadataNotFound: there is no such live tenant or no metadata.
    """
    row = CacheMetadata.objects.of_live_tenant(tenant_id).filter(cache_key=cache_key).first()
    if row is None:
        require_live_tenant(tenant_id)
        raise CacheMetadataNotFound
    return describe_metadata(row)


@dataclass(frozen=True, slots=True)
class MetadataPage:
    """A page of metadata by cache key. Long statements are cut. ``cursor`` is None on the last page."""

    documents: Sequence[CacheMetadataDocument]
    cursor: str | None


def list_metadata(tenant_id: UUID, *, rule_id: str | None, limit: int, cursor: str | None) -> MetadataPage:
    """Return a page of a tenant's metadata, in the order of the cache keys.

    It has fewer than ``limit`` entries if these are large.

    Raises:
        TenantNotFound: there is no such live tenant.
        BadRequest: the cursor is not from this list.
    """
    require_live_tenant(tenant_id)
    rows: Any = CacheMetadata.objects.filter(tenant=tenant_id).order_by("cache_key").defer("document")
    rows = rows.annotate(shortened=with_short_statement("document")).annotate(
        size=Length(Cast("shortened", TextField()))
    )
    if rule_id is not None:
        rows = rows.filter(rule_id=rule_id)
    if cursor is not None:
        (after,) = read_cursor(cursor, (str,))
        rows = rows.filter(cache_key__gt=after)
    page: list[CacheMetadata] = []
    size = 0
    for row in rows[: limit + 1].iterator(chunk_size=_CHUNK):
        size += row.size
        if page and (len(page) == limit or size > _PAGE_CHARACTERS):
            return MetadataPage(list(map(describe_metadata, page)), write_cursor([page[-1].cache_key]))
        row.document = row.shortened
        page.append(row)
    return MetadataPage(list(map(describe_metadata, page)), None)


def write_metadata(tenant_id: UUID, cache_key: str, document: Mapping[str, Any]) -> CacheMetadataDocument:
    """Create or replace the metadata of a cache key and return it.

    Raises:
        TenantNotFound: there is no such live tenant.
        ValidationFailed: ``tenantId`` or ``cacheKey`` differs from the path.
        PlanLimitExceeded, RateLimited: the tenant has too many entries, or stores too many bytes in a day.
    """
    in_path = {"tenantId": tenant_id, "cacheKey": cache_key}
    if details := _read_only(document, in_path, path=""):
        raise ValidationFailed(details=details)
    require_live_tenant(tenant_id)
    row = _make_row(tenant_id, cache_key, document)
    _save(tenant_id, [row])
    return describe_metadata(row)


def write_many(tenant_id: UUID, documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Create or replace the metadata of many cache keys, all or none. Return the keys in order.

    Raises:
        TenantNotFound: there is no such live tenant.
        ValidationFailed: a ``tenantId`` differs from the path, or a key is given more than once.
        PlanLimitExceeded, RateLimited: the tenant has too many entries, or stores too many bytes in a day.
    """
    details: list[Detail] = []
    first: dict[str, int] = {}
    for index, document in enumerate(documents):
        details += _read_only(document, {"tenantId": tenant_id}, path=f"/{index}")
        earlier = first.setdefault(document["cacheKey"], index)
        if earlier != index:
            message = f"The entry {earlier} has this cache key too. Send each key once."
            details.append(Detail(f"/{index}/cacheKey", "duplicate-cache-key", message))
    if details:
        raise ValidationFailed(details=details)
    require_live_tenant(tenant_id)
    # Sorted, so that two writers of the same keys do not deadlock.
    _save(tenant_id, [_make_row(tenant_id, key, documents[first[key]]) for key in sorted(first)])
    return list(first)


def delete_metadata(tenant_id: UUID, cache_key: str) -> bool:
    """Remove the metadata of a cache key and return whether it existed.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    require_live_tenant(tenant_id)
    deleted, _ = CacheMetadata.objects.filter(tenant=tenant_id, cache_key=cache_key).delete()
    return bool(deleted)


def _read_only(document: Mapping[str, Any], in_path: Mapping[str, Any], *, path: str) -> list[Detail]:
    """Return a finding for each member of ``document`` that differs from the request's path."""
    return [
        Detail(
            f"{path}/{name}",
            "read-only",
            f"'{name}' differs from the path. Leave it out or send the value of the path.",
        )
        for name, value in in_path.items()
        if document.get(name, value) != value
    ]


def _make_row(tenant_id: UUID, cache_key: str, document: Mapping[str, Any]) -> CacheMetadata:
    return CacheMetadata(
        tenant_id=tenant_id,
        cache_key=cache_key,
        rule_id=document["ruleId"],
        created_at=document.get("createdAt") or now(),
        expires_at=document.get("expiresAt"),
        last_accessed_at=document.get("lastAccessedAt"),
        document={name: value for name, value in document.items() if name not in _COLUMNS},
    )


def _save(tenant_id: UUID, rows: Sequence[CacheMetadata]) -> None:
    _require_space(tenant_id, [row.cache_key for row in rows])
    use_quota(Quota.DOCUMENTS, tenant_id, *(row.document for row in rows))
    CacheMetadata.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["tenant", "cache_key"],
        update_fields=["rule_id", "created_at", "expires_at", "last_accessed_at", "document"],
    )


#: How many entries each tenant has at most. Counting takes long where there are many, so this process does
#: that once a minute, and else only near the limit. Other processes may write in the meantime.
_at_most: Final[TTLCache[UUID, int]] = TTLCache(maxsize=10_000, ttl=60)

_lock: Final = Lock()


def _require_space(tenant_id: UUID, keys: Sequence[str]) -> None:
    """Raises `PlanLimitExceeded` if new keys would exceed the limit of the tenant's plan."""
    smallest = min((limits_of(plan).cache_entries or sys.maxsize for plan in settings.PLAN_LIMITS), default=0)
    with _lock:
        at_most = _at_most.get(tenant_id, sys.maxsize) + len(keys)
        if at_most <= smallest:
            _at_most[tenant_id] = at_most
            return
    rows = CacheMetadata.objects.filter(tenant=tenant_id)
    stored, known = rows.count(), rows.filter(cache_key__in=keys).count()
    count = stored + len(keys) - known
    if known < len(keys) and count > smallest:
        plan = Tenant.objects.values_list("account__plan", flat=True).get(pk=tenant_id)
        require_within(
            limits_of(plan).cache_entries,
            count=count,
            what="entries of cache metadata per tenant",
            plan=plan,
            path="",
        )
    with _lock:
        _at_most[tenant_id] = count
