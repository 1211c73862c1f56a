"""The permission table as text, from the rows that the service itself asks.

``python -m scripts.permissions > docs/permissions.md``; a test holds the file current.
"""

from __future__ import annotations

import sys
from typing import Final

from accounts.access.policy import POLICIES, On, Policy
from accounts.access.scopes import (
    ALL_SCOPES,
    GRANTABLE,
    MEMBERS_ONLY,
    MEMBERSHIP_SCOPES,
    NOT_IN_MEMBERS_PATS,
    PAT_ONLY,
    PLATFORM_ADMIN_SCOPES,
    READ_SCOPES,
)

_INTRODUCTION: Final = """\
# Permissions

Written from `accounts/access/policy.py` and `accounts/access/scopes.py` by
`python -m scripts.permissions > docs/permissions.md`; do not edit it.

A request may do what both its token's claims (scope, tenants, accounts, endpoints) and the database allow.
Rights are read at most a few seconds before they are used: changes of roles, memberships and grants,
deactivation, deletion and revocation act on tokens already minted. Columns add up. Failing any of it is 403;
without a good token it is 401. A user that the caller may not read is 403 whether it exists or not; 404 is
told to platform admins, and by `appendMemberships`, which is for any user, to owners of a tenant.

- **Signed in** says who may call an operation with a token from signing in or refreshing. `member`, `admin`
  and `owner` are memberships of the tenant in the path; a guest's memberships bring the scopes marked as
  read-only below and no others. A delegated grant on the tenant or its account counts like a membership with
  the granted scopes.
- **PAT** is the scope that a personal access token must hold, besides reaching the tenant or account: by id,
  by account, or by a wildcard. Raw logs and SQL want the tenant's id itself. A PAT never exceeds its owner's
  present rights, and acts as a platform admin only with a wildcard.
- **Bridge** operations stay open to a token that carries `tos_required`.
"""


def permissions_markdown() -> str:
    """Return the whole page."""
    return "\n".join([_INTRODUCTION, *_operation_rows(), "", *_scope_rows(), ""])


def _operation_rows() -> list[str]:
    rows = [
        "## Operations",
        "",
        "| Operation | Signed in | PAT | Bridge | Also |",
        "|---|---|---|---|---|",
    ]
    for name, policy in POLICIES.items():
        cells = (f"`{name}`", signed_in(policy), _pat(policy), "yes" if policy.bridge else "", policy.also)
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def signed_in(policy: Policy) -> str:
    """Return in words who may call an operation signed in."""
    if policy.on is On.TENANT and policy.scope is not None:
        held = [role for role, scopes in MEMBERSHIP_SCOPES.items() if policy.scope in scopes - PAT_ONLY]
        if policy.scope in PLATFORM_ADMIN_SCOPES - PAT_ONLY:
            held.append("platform admin")
        return ", ".join(held) or "nobody"
    return {
        On.NOTHING: "everyone, without a token",
        On.SERVICE: "everyone",
        On.PLATFORM: "platform admin",
        On.PLATFORM_PAT: "nobody",
        On.ACCOUNT: "account owner, platform admin",
        On.USER: "see the last column",
        On.SELF: "the user itself",
    }.get(policy.on, "nobody")


def _pat(policy: Policy) -> str:
    if policy.on is On.NOTHING:
        return "not needed"
    scope = f"`{policy.scope}`" if policy.scope else "any"
    return f"{scope}, wildcard" if policy.on in {On.PLATFORM, On.PLATFORM_PAT} else scope


def _scope_rows() -> list[str]:
    roles = list(MEMBERSHIP_SCOPES)
    columns = [*roles, "platform admin", "read-only", "signed in", "in a member's PAT", "grantable"]
    rows = [
        "## Scopes",
        "",
        "What each role brings on a tenant, and where a scope may stand.",
        "Raw logs and SQL are for members, whatever else one is.",
        "",
        "| Scope | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for scope in sorted(ALL_SCOPES):
        brought = any(scope in MEMBERSHIP_SCOPES[role] for role in roles)
        marks = [scope in MEMBERSHIP_SCOPES[role] for role in roles] + [
            scope in ALL_SCOPES - MEMBERS_ONLY,
            scope in READ_SCOPES,
            scope not in PAT_ONLY,
            brought and scope not in NOT_IN_MEMBERS_PATS,
            scope in GRANTABLE,
        ]
        rows.append(f"| `{scope}` | " + " | ".join("yes" if mark else "" for mark in marks) + " |")
    return rows


if __name__ == "__main__":
    sys.stdout.write(permissions_markdown())
