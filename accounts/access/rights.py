"""Read the rights of callers, and cache them for a few seconds.

Each process caches the rights behind a verified token for `PRINCIPAL_CACHE_SECONDS`. Changes of roles,
memberships and grants, deactivation, deletion, the end of a session and the revocation of a PAT apply to
existing tokens after that time.

Reading them also notes the use of the session or PAT, at most once a minute.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from cachetools import TTLCache
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils.timezone import now

from accounts.access.assurance import UNPROVEN
from accounts.access.principal import NO_SCOPES, Claims, Principal, Reach, Rights
from accounts.access.scopes import GRANTABLE, Scope, with_included
from accounts.access.tokens import verify_access_token
from accounts.models import PersonalAccessToken, RefreshToken, User
from accounts.models.billing import GrantResource
from accounts.models.users import PrimaryRole
from tenantadmin.lib.core.errors import InvalidToken

_principal_cache: TTLCache[str, Principal] = TTLCache(maxsize=4096, ttl=settings.PRINCIPAL_CACHE_SECONDS)
_cache_lock = threading.Lock()

#: The use of a session or a PAT is noted at most this often.
LAST_USE_STEP: Final = dt.timedelta(minutes=1)

#: `RevocableQuerySet.in_force` in SQL, for grants, PATs and sessions.
_IN_FORCE: Final = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > asked.at)"
#: A user, and all that decides what it may do. Most Gateways poll less often than every
#: `PRINCIPAL_CACHE_SECONDS`, so most polls run this. The ORM would take longer to build the query than
#: PostgreSQL takes to answer it.
_RIGHTS: Final = f"""
    SELECT u.id, u.email, u.role, u.scopes,
           u.is_support AND EXISTS (
              SELECT FROM accounts_refreshtoken r
               WHERE r.is_staff AND {_IN_FORCE}
                     AND r.id = coalesce(asked.session, (SELECT p.session_id
                                                           FROM accounts_personalaccesstoken p
                                                          WHERE p.id = asked.pat))),
           (SELECT coalesce(json_object_agg(m.tenant_id, m.role), '{{}}'::json)
              FROM accounts_membership m
             WHERE m.user_id = u.id AND (m.ends_at IS NULL OR m.ends_at > asked.at)),
           ARRAY(SELECT o.account_id FROM accounts_account_owners o WHERE o.user_id = u.id),
           (SELECT coalesce(json_agg(json_build_array(g.resource, g.resource_id, g.permissions)), '[]'::json)
              FROM accounts_permissiongrant g
             WHERE g.grantee_id = u.id AND {_IN_FORCE}
                   AND (g.made_with_id IS NULL
                        OR EXISTS (SELECT FROM accounts_personalaccesstoken
                                    WHERE id = g.made_with_id AND {_IN_FORCE}))),
           (SELECT r.second_factor_id FROM accounts_refreshtoken r WHERE r.id = asked.session),
           coalesce((SELECT coalesce(r.last_used_at, r.created_at)
                       FROM accounts_refreshtoken r WHERE r.id = asked.session),
                    (SELECT coalesce(p.last_used_at, p.created_at)
                       FROM accounts_personalaccesstoken p WHERE p.id = asked.pat)),
           (SELECT json_build_object('endpoints', p.endpoints, 'staff', p.session_id IS NOT NULL)
              FROM accounts_personalaccesstoken p
             WHERE p.id = asked.pat AND p.owner_id = u.id AND {_IN_FORCE}
                   AND (p.session_id IS NULL
                        OR EXISTS (SELECT FROM accounts_refreshtoken
                                    WHERE id = p.session_id AND {_IN_FORCE}))
                   AND (p.secret_number = asked.secret
                        OR p.secret_number = asked.secret + 1 AND p.previous_ends_at > asked.at))
      FROM accounts_user u,
           (SELECT %s::timestamptz AS at, %s::bigint AS session, %s::bigint AS pat, %s::int AS secret)
           AS asked
"""  # noqa: S608 - all parts are constants
#: Places in a row: the last use, and what limits the PAT, which is None if the PAT has ended.
_LAST_USE: Final = -2
_PAT: Final = -1
_RIGHTS_OF_USER: Final = f"{_RIGHTS} WHERE u.id = %s::bigint"
_RIGHTS_OF_TOKEN: Final = f"""
    {_RIGHTS}
     WHERE u.epoch = %s AND u.email = %s AND u.is_active
           AND (asked.session IS NULL
                OR EXISTS (SELECT FROM accounts_refreshtoken r
                            WHERE r.id = asked.session AND r.user_id = u.id AND {_IN_FORCE}))
"""


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
    principal = Principal(claims=claims, rights=read_rights(claims, is_use=True))
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


def read_rights(claims: Claims, *, is_use: bool = False) -> Rights:
    """Read what the database allows the subject of ``claims`` now; note that its token is used, if it is.

    Raises:
        InvalidToken: the user is deleted or inactive, or has a new epoch; the session or PAT is deleted,
            revoked or expired; or the owner of a wildcard PAT is no longer a platform admin.
    """
    pat = claims.personal_access_token
    asked = (claims.session, pat, claims.secret_number)
    moment = now()
    row = _fetch_one(_RIGHTS_OF_TOKEN, moment, *asked, claims.epoch, claims.subject)
    if row is None:
        raise InvalidToken("The session of this token has ended, or its user is deleted or not active.")
    rights = _read(row, is_session=pat is None)
    if pat is None and claims.role != PrimaryRole.ADMIN and rights.is_platform_admin:
        # The token is from before the user became an admin, or before the session proved a second factor.
        rights = replace(rights, role=PrimaryRole.USER)
    if pat is not None and (row[_PAT] is None or (claims.has_wildcard and rights.role != PrimaryRole.ADMIN)):
        raise InvalidToken("The personal access token behind this token has ended.")
    if is_use and row[_LAST_USE] is not None and moment - row[_LAST_USE] >= LAST_USE_STEP:
        _note_use(claims, moment)
    return rights


def _note_use(claims: Claims, moment: dt.datetime) -> None:
    """Note that a token is used. Requests are answered also by a database that only reads."""
    with suppress(DatabaseError), transaction.atomic():
        if claims.personal_access_token is not None:
            PersonalAccessToken.objects.filter(pk=claims.personal_access_token).update(last_used_at=moment)
        elif claims.session is not None:
            RefreshToken.objects.filter(pk=claims.session).update(last_used_at=moment)


def rights_of(user: User) -> Rights:
    """Return the rights of ``user`` as the database holds them now (one query)."""
    row = _fetch_one(_RIGHTS_OF_USER, now(), None, None, None, user.pk)
    if row is None:
        raise User.DoesNotExist
    return _read(row)


def rights_on_session(session: RefreshToken) -> Rights:
    """Return the rights of the user of ``session`` on it: without a second factor an admin may be a user."""
    row = _fetch_one(_RIGHTS_OF_USER, now(), session.pk, None, None, session.user_id)
    if row is None:
        raise User.DoesNotExist
    return _read(row, is_session=True)


def _fetch_one(sql: str, *parameters: Any) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row


def _read(row: tuple[Any, ...], *, is_session: bool = False) -> Rights:
    """Return the rights in a row. A session that is not proven enough holds the role of an admin back."""
    user_id, email, role, extra_scopes, is_support, memberships, account_ids, grants, *rest = row
    second_factor, _, pat = rest
    granted: dict[str, dict[UUID, frozenset[Scope]]] = {kind.value: {} for kind in GrantResource}
    for resource, text, permissions in grants:
        by_id, resource_id = granted[resource], UUID(text)
        # A grant from before may hold scopes that cannot be granted any more.
        scopes = with_included(GRANTABLE & {Scope(name) for name in permissions})
        by_id[resource_id] = by_id.get(resource_id, NO_SCOPES) | scopes
    opens_admin = not is_session or replace(UNPROVEN, second_factor=second_factor).opens_admin
    is_held_back = role == PrimaryRole.ADMIN and not opens_admin
    return Rights(
        user_id=user_id,
        email=email,
        role=PrimaryRole.USER if is_held_back else role,
        is_held_back=is_held_back,
        is_support=is_support and opens_admin,
        memberships={UUID(tenant): its_role for tenant, its_role in memberships.items()},
        owned_accounts=frozenset(account_ids),
        granted=Reach(tenants=granted[GrantResource.TENANT], accounts=granted[GrantResource.ACCOUNT]),
        extra_scopes=frozenset(Scope(name) for name in extra_scopes),
        endpoints=tuple((pat or {}).get("endpoints", ())),
        is_of_staff_session=bool((pat or {}).get("staff")),
    )
