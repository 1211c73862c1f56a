"""Claims and rights of callers, made without a database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from accounts.access.principal import Claims, Reach, Rights
from accounts.access.scopes import Scope

#: Two tenants of one account, and one of another.
HERE, SIBLING, FOREIGN = (UUID(int=number) for number in (1, 2, 3))
ACCOUNT, ELSEWHERE = (UUID(int=number) for number in (11, 12))
ACCOUNT_OF: Final = {HERE: ACCOUNT, SIBLING: ACCOUNT, FOREIGN: ELSEWHERE}


def claims(*scopes: Scope, **changes: Any) -> Claims:
    """Return the claims of a token from signing in, but for the ``changes``."""
    plain = Claims(
        subject="ada@example.org",
        token_id="x",
        expires_at=0,
        role="user",
        scopes=frozenset(scopes),
        tenants=frozenset(),
        accounts=frozenset(),
        epoch=UUID(int=9),
        has_wildcard=False,
        session=1,
        personal_access_token=None,
        tos_required=False,
    )
    return replace(plain, **changes)


def pat(*scopes: Scope, **changes: Any) -> Claims:
    """Return the claims of a token minted from a PAT with these scopes, all if none is given."""
    return claims(*(scopes or Scope), session=None, personal_access_token=1, **changes)


def rights(role: str = "user", **changes: Any) -> Rights:
    """Return the rights of a user who has none, but for the ``changes``."""
    none = Rights(
        user_id=1,
        email="ada@example.org",
        role=role,
        memberships={},
        owned_accounts=frozenset(),
        granted=Reach(),
        extra_scopes=frozenset(),
        endpoints=(),
    )
    return replace(none, **changes)
