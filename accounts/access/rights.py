"""Read the rights of callers, and cache them for a few seconds.

Each process caches the rights behind a verified token for `PRINCIPAL_CACHE_SECONDS`. Changes of roles,
memberships and grants, deactivation, deletion, the end of a session and the revocation of a PAT apply to
existing tokens after that time.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cachetools import TTLCache
from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import JSONObject

from accounts.access.principal import Claims, Principal, Rights
from accounts.access.reach import NO_SCOPES, Reach
from accounts.access.scopes import GRANTABLE, Scope
from accounts.access.tokens import verify_access_token
from accounts.models import Account, Membership, PermissionGrant, PersonalAccessToken, RefreshToken, User
from accounts.models.billing import GrantResource
from accounts.models.users import PrimaryRole
from tenantadmin.core.errors import InvalidToken
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

_principal_cache: TTLCache[str, Principal] = TTLCache(
    maxsize=4096, ttl=settings.PRINCIPAL_CACHE_SECONDS, timer=time.monotonic
)
_cache_lock = threading.Lock()


def authenticate_token(text: str, *, is_write: bool = False) -> Principal:
    """Return the caller behind an access token.

    The rights of a signed-in user are read anew for a write. Otherwise they may come from the cache.

    Raises:
        TokenExpired: the token has expired.
        InvalidToken: the token is invalid, its user is deleted, inactive or signed out everywhere, or the
            session or PAT behind it has ended.
    """
    with _cache_lock:
        cached = _principal_cache.get(text)
    is_usable = cached is not None and not (is_write and cached.claims.is_sign_in)
    if cached is not None and is_usable and cached.claims.expires_at > time.time():
        return cached
    claims = verify_access_token(text)
    principal = Principal(claims=claims, rights=read_rights(claims))
    with _cache_lock:
        _principal_cache[text] = principal
    return principal


def latest_rights(principal: Principal) -> Principal:
    """Return a signed-in user with the rights that it has now, not seconds ago. A PAT stays as it is.

    Raises:
        InvalidToken: as `authenticate_token`.
    """
    if not principal.claims.is_sign_in:
        return principal
    return Principal(claims=principal.claims, rights=read_rights(principal.claims))


def clear_principal_cache() -> None:
    """Clear the cache of callers and their rights, in this process only."""
    with _cache_lock:
        _principal_cache.clear()


def not_ended() -> Q:
    """Return the filter for memberships that last, or whose end is to come."""
    return Q(ends_at__isnull=True) | Q(ends_at__gt=now())


def in_force() -> Q:
    """Return the filter for grants and credentials that are neither revoked nor expired."""
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=now()))


def read_rights(claims: Claims) -> Rights:
    """Read what the database allows the subject of ``claims`` now.

    Raises:
        InvalidToken: the user is deleted or inactive, or has a new epoch; the session or PAT is deleted,
            revoked or expired; or the owner of a wildcard PAT is no longer a platform admin.
    """
    users = User.objects.filter(email=claims.subject, epoch=claims.epoch, is_active=True)
    if claims.session is not None:
        sessions = RefreshToken.objects.filter(in_force(), pk=claims.session, user=OuterRef("pk"))
        users = users.filter(Exists(sessions))
    user = _with_rights(users).first()
    if user is None:
        raise InvalidToken("The session of this token has ended, or its user is deleted or not active.")
    endpoints: tuple[Mapping[str, Any], ...] = ()
    if claims.personal_access_token is not None:
        pat = (
            PersonalAccessToken.objects.filter(in_force(), id=claims.personal_access_token, owner=user)
            .only("endpoints")
            .first()
        )
        if pat is None or (claims.has_wildcard and user.role != PrimaryRole.ADMIN):
            raise InvalidToken("The personal access token behind this token has ended.")
        endpoints = tuple(pat.endpoints)
    return _read(user, endpoints=endpoints)


def rights_of(user: User) -> Rights:
    """Return the rights of ``user`` as the database holds them now (one query)."""
    return _read(_with_rights(User.objects.filter(pk=user.pk)).get(), endpoints=())


def _with_rights(users: QuerySet[User]) -> QuerySet[User]:
    """Add memberships, grants and owned accounts to a query of users, so that one query reads all."""
    of_user = {"user": OuterRef("pk")}
    return users.annotate(
        membership_rows=ArraySubquery(
            Membership.objects.filter(not_ended(), **of_user)
            .order_by()
            .values(row=JSONObject(tenant="tenant_id", role="role"))
        ),
        grant_rows=ArraySubquery(
            PermissionGrant.objects.filter(in_force(), grantee=OuterRef("pk"))
            .order_by()
            .values(row=JSONObject(resource="resource", id="resource_id", permissions="permissions"))
        ),
        account_ids=ArraySubquery(Account.owners.through.objects.filter(**of_user).values("account_id")),
    )


def _read(row: Any, *, endpoints: tuple[Mapping[str, Any], ...]) -> Rights:
    granted: dict[str, dict[UUID, frozenset[Scope]]] = {kind.value: {} for kind in GrantResource}
    for grant in row.grant_rows:
        by_id, resource_id = granted[grant["resource"]], UUID(grant["id"])
        # A grant from before may hold scopes that cannot be granted any more.
        scopes = GRANTABLE & {Scope(name) for name in grant["permissions"]}
        by_id[resource_id] = by_id.get(resource_id, NO_SCOPES) | scopes
    return Rights(
        user_id=row.pk,
        email=row.email,
        role=row.role,
        memberships={UUID(entry["tenant"]): entry["role"] for entry in row.membership_rows},
        owned_accounts=frozenset(row.account_ids),
        granted=Reach(tenants=granted[GrantResource.TENANT], accounts=granted[GrantResource.ACCOUNT]),
        extra_scopes=frozenset(Scope(name) for name in row.scopes),
        endpoints=endpoints,
    )
