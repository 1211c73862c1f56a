"""Read and write the roles of users. At least one active platform admin always remains.

Contract: Users, roles, memberships.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction
from django.db.models import Q

from accounts.access.credentials import end_pat, lock_sign_in, sign_out_everywhere
from accounts.access.principal import WILDCARD
from accounts.access.scopes import Scope
from accounts.models import PersonalAccessToken, User
from accounts.models.users import PrimaryRole
from accounts.readers.rule import Author, change_readers
from accounts.readers.users import SetRole
from tenantadmin.lib.core.errors import Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: The advisory lock that serializes changes of who is a platform admin. Any constant will do.
_ADMINS_LOCK: Final = 4_202_301


class Roles(JsonStruct):
    """The primary role, and scopes beyond the scopes that role and memberships give.

    The contract describes it by the request, `RolesBody`.
    """

    primary: str
    scopes: list[str]


def make_roles(primary: str, scopes: Iterable[str]) -> Roles:
    """Return roles with sorted, unique scopes."""
    return Roles(primary=primary, scopes=sorted({Scope(name).value for name in scopes}))


def roles_of(user: User) -> Roles:
    """Return the stored roles of ``user``."""
    return make_roles(user.role, user.scopes)


def replace_roles(
    email: str,
    *,
    primary: str | None,
    scopes: Iterable[str] | None,
    author: Author,
    active: bool | None = None,
) -> Roles:
    """Set a user's roles and activity. Arguments that are None keep the stored value. For platform admins.

    Raises:
        NotFound: there is no such user.
        ValidationFailed, SecondFactorRequired, SecondAdminNeeded: as `apply_roles`.
    """
    with transaction.atomic():
        lock_admins()
        lock_sign_in(email)
        user = User.objects.select_for_update(no_key=True).filter(email=email).first()
        if user is None:
            raise NotFound("There is no such user.")
        stored = roles_of(user)
        roles = make_roles(
            stored.primary if primary is None else primary, stored.scopes if scopes is None else scopes
        )
        active = user.is_active if active is None else active
        apply_roles(user, roles=roles, active=active, author=author, path="")
        user.modified_at = now()
        user.save(update_fields=["epoch", "modified_at"])
    return roles


def apply_roles(user: User, *, roles: Roles, active: bool, author: Author, path: str) -> None:
    """Set roles and activity of the locked row ``user``.

    A user who is deactivated is signed out everywhere: the caller saves the new epoch. The caller has called
    `lock_admins` and `lock_sign_in` if either may change. ``path`` is the JSON Pointer of the roles in the
    request.

    Raises:
        ValidationFailed: no active platform admin would remain.
        SecondFactorRequired, SecondAdminNeeded: as `change_readers`.
    """
    if roles == roles_of(user) and active == user.is_active:
        return
    remains_admin = active and roles.primary == PrimaryRole.ADMIN
    if user.is_platform_admin and not remains_admin:
        if not has_other_active_admin(user):
            raise ValidationFailed(
                "The last active platform admin can be neither demoted nor deactivated.",
                details=[
                    Detail(
                        "/active" if roles.primary == PrimaryRole.ADMIN else f"{path}/primary",
                        "last-admin",
                        "Make another user a platform admin first.",
                    )
                ],
            )
        end_wildcard_tokens(user, actor=author.email)
    if user.is_active and not active:
        sign_out_everywhere(user, actor=author.email)
    change_readers(author, SetRole(user, roles.primary, roles.scopes, is_active=active))


def lock_admins() -> None:
    """Lock changes of who is a platform admin until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMINS_LOCK])


def has_other_active_admin(user: User) -> bool:
    """Return True if there is an active platform admin other than ``user``."""
    return User.objects.filter(role=PrimaryRole.ADMIN, is_active=True).exclude(pk=user.pk).exists()


def end_wildcard_tokens(user: User, *, actor: str) -> None:
    """Revoke the wildcard PATs of a user who will not be an active platform admin."""
    for pat in wildcard_tokens(user):
        end_pat(pat, actor=actor)


def wildcard_tokens(user: User) -> QuerySet[PersonalAccessToken]:
    """Return the PATs of a user that have a wildcard and are not revoked."""
    live = user.personal_access_tokens.not_revoked()
    return live.filter(Q(tenants__contains=[WILDCARD]) | Q(accounts__contains=[WILDCARD]))
