"""Who may call an operation. Contract: Authentication.

`accounts.routes.route` declares it beside the operation, and docs/permissions.md is made from that.
tests/authz/expected.py has the same table once more, by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accounts.access.scopes import Scope


class Level(StrEnum):
    """What an operation checks the caller's rights on."""

    PUBLIC = "public"  # no credentials
    SERVICE = "service"  # any authenticated caller; the service function shows only what the caller may see
    PLATFORM = "platform"  # platform admins
    PLATFORM_PAT = "platform PAT"  # a PAT with wildcard tenants or accounts
    TENANT = "tenant"  # the scope on the tenant in the path
    ACCOUNT = "account"  # the account in the path: its owners, grants, platform admins
    USER = "user"  # the user in the path; the service function decides who else may
    SELF = "self"  # only the user in the path


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may call an operation.

    A token with ``tos_required`` may call only operations with ``before_terms``. ``notes`` describes the
    checks of the service function itself, for the documentation. ``also`` is a second scope that a caller
    must have. ``needs_fresh_proof`` asks a caller with the right for its second factor and a reason
    (`accounts.access.assurance`). ``members_only`` asks for the scope from a membership, and of a PAT that it
    names the tenant, as raw logs and SQL do. Staff in the dashboard give a reason with each write on a tenant
    or an account; ``needs_no_reason`` says that the operation changes nothing, although it is not a GET.
    """

    level: Level
    scope: Scope | None = None
    before_terms: bool = False
    notes: str = ""
    also: Scope | None = None
    needs_fresh_proof: bool = False
    members_only: bool = False
    needs_no_reason: bool = False

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that a caller must have. It needs all."""
        return tuple(scope for scope in (self.scope, self.also) if scope is not None)
