"""Write the permission table as Markdown, from the rows that the service itself uses.

``make contract`` writes docs/permissions.md with it. A test fails if the file is out of date.
"""

from __future__ import annotations

import sys
from typing import Final

import django

from accounts.access.scopes import (
    ALL_SCOPES,
    GRANTABLE,
    MEMBERS_ONLY,
    MEMBERSHIP_SCOPES,
    NOT_IN_MEMBERS_PATS,
    PAT_ONLY,
    PLATFORM_ADMIN_SCOPES,
    READ_SCOPES,
    Level,
)
from accounts.routes import Route, declared_routes

_INTRODUCTION: Final = """\
# Permissions

`make contract` writes this page; do not edit it.

A request is allowed only if both its token (scope, tenants, accounts, endpoints) and the database allow it.
The service reads rights from the database every few seconds, so every change also applies to existing
tokens. Only the role of a platform admin must be in a sign-in token too. Without a valid token the answer is
401, without the right 403. A caller that may not read a user gets 403 whether the user exists or not;
platform admins get 404 for an unknown one.

- **Signed in** says who may call the operations with a token from signing in or refreshing. `member`, `admin`
  and `owner` are memberships of the tenant in the path. A guest's memberships give only the scopes that are
  read-only below. A grant on the tenant or its account counts like a membership with the granted scopes.
- **PAT** is the scope that a personal access token must have. It must also name the tenant or account: by its
  id, by the tenant's account, or by a wildcard; for raw logs and SQL by the tenant's id. A PAT never has more
  rights than its owner, and a platform admin's rights only with a wildcard.
- *With a proof*: where staff must have a second factor (`STAFF_SECOND_FACTOR`), a platform admin proves it in
  the 15 minutes before, on the session of the token, and gives a reason (`X-Reason`); else 403
  `second_factor_required`. A PAT cannot. Without a second factor, a platform admin has only the rights of its
  memberships.
"""


def permissions_markdown() -> str:
    """Return the whole page."""
    return "\n".join([_INTRODUCTION, *_operation_rows(), "", *_scope_rows(), ""])


def _operation_rows() -> list[str]:
    """Return the table of operations: a row has all for which the same holds."""
    operations: dict[tuple[str, ...], list[str]] = {}
    for name, route in declared_routes().items():
        cells = (
            signed_in(route),
            _pat(route),
            "; ".join(filter(None, [route.notes, "with a proof" if route.needs_fresh_proof else ""])),
        )
        operations.setdefault(cells, []).append(f"`{name}`")
    before_terms = [
        f"`{name}`"
        for name, route in declared_routes().items()
        if route.before_terms and route.level is not Level.PUBLIC
    ]
    return [
        "## Operations",
        "",
        f"A token with `tos_required` may call only what needs no token, and {', '.join(before_terms)}.",
        "",
        "| Operations | Signed in | PAT | Notes |",
        "|---|---|---|---|",
        *(f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in operations.items()),
    ]


def signed_in(route: Route) -> str:
    """Return who may call an operation with a sign-in token, in words."""
    if route.level is Level.TENANT:
        needed = {route.scope, route.also} - {None}
        allowed = [role for role, scopes in MEMBERSHIP_SCOPES.items() if needed <= scopes - PAT_ONLY]
        if needed <= PLATFORM_ADMIN_SCOPES - PAT_ONLY:
            allowed.append("platform admin")
        return ", ".join(allowed) or "no"
    return {
        Level.PUBLIC: "everyone, without a token",
        Level.SERVICE: "everyone",
        Level.PLATFORM: "platform admin",
        Level.PLATFORM_PAT: "no",
        Level.ACCOUNT: "account owner, platform admin",
        Level.USER: "see notes",
        Level.SELF: "the user itself",
    }[route.level]


def _pat(route: Route) -> str:
    if route.level is Level.PUBLIC:
        return "not needed"
    scope = " and ".join(f"`{scope}`" for scope in (route.scope, route.also) if scope) or "any"
    return f"{scope}, wildcard" if route.level in {Level.PLATFORM, Level.PLATFORM_PAT} else scope


def _scope_rows() -> list[str]:
    roles = list(MEMBERSHIP_SCOPES)
    columns = [*roles, "platform admin", "read-only", "signed in", "in a member's PAT", "grantable"]
    rows = [
        "## Scopes",
        "",
        "The scopes of each role on a tenant, and where a scope may be used.",
        "Only members may read raw logs and use SQL; platform admins may not unless they are members.",
        "",
        "| Scope | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for scope in sorted(ALL_SCOPES):
        is_member_scope = any(scope in MEMBERSHIP_SCOPES[role] for role in roles)
        marks = [scope in MEMBERSHIP_SCOPES[role] for role in roles] + [
            scope in ALL_SCOPES - MEMBERS_ONLY,
            scope in READ_SCOPES,
            scope not in PAT_ONLY,
            is_member_scope and scope not in NOT_IN_MEMBERS_PATS,
            scope in GRANTABLE,
        ]
        rows.append(f"| `{scope}` | " + " | ".join("yes" if mark else "" for mark in marks) + " |")
    return rows


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(permissions_markdown())
