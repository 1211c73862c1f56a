"""Read, create, change and delete users. Contract: Users, roles, memberships."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.db.models import Exists, OuterRef, Q
from msgspec import Meta

from accounts.access.credentials import end_links, lock_sign_in
from accounts.access.scopes import Scope
from accounts.billing.accounts import remove_owner
from accounts.events import record_event
from accounts.memberships import (
    MembershipEntry,
    can_see_membership,
    live_memberships,
    require_known,
    set_memberships,
    update_memberships,
)
from accounts.models import Account, Invitation, Membership, Tenant, User
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.pending import withdraw
from accounts.readers.rule import Author, change_readers
from accounts.readers.users import DeleteUser
from accounts.roles import Roles, apply_roles, has_other_active_admin, lock_admins, replace_roles, roles_of
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.errors import Forbidden, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import Email, JsonStruct, sent_as
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.access.principal import Principal


_PRIVATE: Final = "Null for all but the user itself and platform admins."
_USER_COLUMNS: Final = [field.attname for field in User._meta.concrete_fields]

#: A user, and its memberships in live tenants as ``[{tenant, account, role}]``, oldest first. The dashboard
#: asks for a user on every page, and the ORM takes longer to build this query than PostgreSQL to answer it.
_READ_USER: Final = f"""
    SELECT {", ".join(f"u.{column}" for column in _USER_COLUMNS)},
           (SELECT coalesce(json_agg(json_build_object('tenant', m.tenant_id, 'account', t.account_id,
                                                       'role', m.role) ORDER BY m.id), '[]'::json)
              FROM accounts_membership m
              JOIN accounts_tenant t ON t.id = m.tenant_id AND t.deleted_at IS NULL
             WHERE m.user_id = u.id)
      FROM accounts_user u
     WHERE u.email = %s
"""  # noqa: S608 - the names of columns


@dataclass(frozen=True, slots=True)
class UserChange:
    """The changes of a PUT of a user. None means no change."""

    display_name: str | None = None
    active: bool | None = None
    roles: Roles | None = None
    memberships: tuple[MembershipEntry, ...] | None = None
    #: Read-only: must equal the stored time.
    created_at: dt.datetime | None = None


class IdentityData(JsonStruct):
    """The identity at the last sign-in."""

    provider: str | None
    subject: str | None
    email_verified: bool
    last_login_at: Timestamp | None


class WrittenUserDocument(JsonStruct):
    """A user as it was written. A caller who may not read it gets back what it sent."""

    email: Email
    type: Literal["user"]
    display_name: str | None = None
    roles: Annotated[Roles | None, sent_as("accounts.serializers.users.RolesBody")] = None
    tenants: list[Annotated[MembershipEntry, sent_as("accounts.serializers.users.MembershipBody")]]
    identity: Annotated[IdentityData | None, Meta(description=_PRIVATE)]
    tos: Annotated[str | None, Meta(description=f"MD5 of the terms last acknowledged. {_PRIVATE}")]
    active: bool | None = None
    created_at: Timestamp | None = None
    modified_at: Timestamp | None = None


class UserDocument(WrittenUserDocument):
    """A user. ``tenants`` lists the memberships that the caller may see."""

    display_name: str
    roles: Annotated[Roles, sent_as("accounts.serializers.users.RolesBody")]
    active: bool
    created_at: Timestamp
    modified_at: Timestamp


def list_users(principal: Principal, *, containing: str) -> list[str]:
    """Return the emails of the users that ``principal`` may read, sorted.

    ``containing`` selects users whose email contains it, in any case; empty means all.
    """
    users = _readable_users(principal)
    if containing:
        users = users.filter(email__contains=containing.lower())
    return list(users.values_list("email", flat=True))


def read_user(principal: Principal, email: str) -> UserDocument:
    """Return a user's document.

    Raises:
        NotFound: there is no such user; only platform admins get this.
        Forbidden: the caller may not read the user.
    """
    require_readable(principal, email)
    user, memberships = _with_memberships(principal, email)
    return describe_user(
        user,
        memberships=_visible(principal, email, memberships),
        is_private=email != principal.email and not principal.is_platform_admin,
    )


def read_roles(principal: Principal, email: str) -> Roles:
    """Return a user's roles.

    Raises:
        NotFound, Forbidden: as `read_user`.
    """
    return roles_of(readable_user(principal, email))


def write_user(principal: Principal, *, email: str, change: UserChange) -> WrittenUserDocument:
    """Create or change a user and return its document, or what was sent if the caller may not read it.

    A user may change its own ``display_name``, an owner of a tenant the memberships in it, and a platform
    admin everything. Stored values that are sent back unchanged do not count as changes.

    Raises:
        Forbidden: the caller may not make this change.
        ValidationFailed: the address is invalid, ``created_at`` is not the stored one, a tenant is unknown,
            or the last active platform admin or the last owner of a tenant would be lost.
    """
    with transaction.atomic():
        if change.roles is not None or change.active is not None:
            lock_admins()
            lock_sign_in(email)
        user = User.objects.select_for_update(no_key=True).filter(email=email).first()
        if email != principal.email:
            require_known(principal, user)
        if user is None:
            user = _create_user(principal, email)
        elif change.created_at not in {None, user.created_at}:
            raise ValidationFailed.at("/createdAt", "read-only", "The time of creation cannot be changed.")
        _require_writable(principal, user, change)
        _apply(user, change, author=Author.of(principal))
        if change.memberships is not None:
            set_memberships(principal, user=user, entries=change.memberships, path="/tenants")
        user.modified_at = now()
        user.save(update_fields=["display_name", "epoch", "modified_at"])
        # In the same transaction, so that a deletion at the same time cannot turn the answer into an error.
        return read_user(principal, email) if may_read(principal, email) else _sent(email, change)


def _sent(email: str, change: UserChange) -> WrittenUserDocument:
    return WrittenUserDocument(
        email=email,
        type="user",
        display_name=change.display_name,
        roles=change.roles,
        tenants=list(change.memberships or ()),
        identity=None,
        tos=None,
        active=change.active,
    )


def write_roles(principal: Principal, *, email: str, sent: Mapping[str, Any]) -> Roles | Mapping[str, Any]:
    """Set the ``primary`` role and ``scopes`` that were sent. Return the user's roles.

    A caller who may not read the user gets back what it sent.

    Raises:
        NotFound, ValidationFailed: as `replace_roles`.
    """
    with transaction.atomic():
        author = Author.of(principal)
        roles = replace_roles(email, primary=sent.get("primary"), scopes=sent.get("scopes"), author=author)
        return roles if may_read(principal, email) else sent


def write_memberships(
    principal: Principal, *, email: str, entries: Sequence[MembershipEntry], append: bool
) -> Sequence[MembershipEntry]:
    """Replace or append to a user's memberships. Return the memberships that the caller may see.

    A caller who may see none gets back what it sent.

    Raises:
        Forbidden, NotFound, ValidationFailed: as `update_memberships`.
    """
    with transaction.atomic():
        update_memberships(principal, email=email, entries=entries, append=append)
        return read_memberships(principal, email) or entries


def readable_user(principal: Principal, email: str) -> User:
    """Return a user that ``principal`` may read.

    Raises:
        NotFound, Forbidden: as `read_user`.
    """
    require_readable(principal, email)
    user = User.objects.filter(email=email).first()
    if user is None:
        raise unreadable(principal)
    return user


def require_self_or_admin(principal: Principal, email: str) -> User:
    """Return the user if it is the caller, or if the caller is a platform admin.

    Raises:
        NotFound, Forbidden: as `read_user`.
    """
    is_allowed = email == principal.email or principal.is_platform_admin
    user = User.objects.filter(email=email).first() if is_allowed else None
    if user is None:
        raise unreadable(principal)
    return user


def require_readable(principal: Principal, email: str) -> None:
    """Refuse a caller who may not read the user with this ``email``. Every user may read itself.

    Raises:
        NotFound, Forbidden: as `read_user`.
    """
    if email != principal.email and not _readable_users(principal).filter(email=email).exists():
        raise unreadable(principal)


def may_read(principal: Principal, email: str) -> bool:
    """Return True if the caller may read the user with this ``email``: a PAT only with ``users:read``."""
    if email == principal.email:
        return principal.claims.is_sign_in or Scope.USERS_READ in principal.claims.scopes
    return _readable_users(principal).filter(email=email).exists()


def unreadable(principal: Principal) -> NotFound | Forbidden:
    """Return the error for a user that the caller cannot read. Only admins learn that it does not exist."""
    if principal.is_platform_admin:
        return NotFound("There is no such user.")
    return Forbidden("You may not read or change this user.")


def describe_user(user: User, *, memberships: list[MembershipEntry], is_private: bool) -> UserDocument:
    """Return the document of a user. ``is_private`` leaves out what only itself and platform admins see."""
    identity = IdentityData(
        provider=user.identity_provider or None,
        subject=user.identity_subject or None,
        email_verified=user.email_verified,
        last_login_at=format_timestamp(user.last_login) if user.last_login else None,
    )
    return UserDocument.of(
        user,
        type="user",
        roles=Roles(primary=user.role, scopes=user.scopes),
        tenants=memberships,
        identity=None if is_private else identity,
        tos=None if is_private else user.tos or None,
        active=user.is_active,
    )


def read_memberships(principal: Principal, email: str) -> list[MembershipEntry]:
    """Return the memberships of a user that ``principal`` may see. Check the right to read the user before.

    Raises:
        NotFound, Forbidden: the user has just been deleted.
    """
    _, memberships = _with_memberships(principal, email)
    return _visible(principal, email, memberships)


def _with_memberships(principal: Principal, email: str) -> tuple[User, list[dict[str, str]]]:
    """Return a user and its memberships in live tenants, ``{tenant, account, role}``, in one query.

    Raises:
        NotFound, Forbidden: there is no such user.
    """
    with connection.cursor() as cursor:
        cursor.execute(_READ_USER, [email])
        row = cursor.fetchone()
    if row is None:
        raise unreadable(principal)
    *values, memberships = row
    return User.from_db(DEFAULT_DB_ALIAS, _USER_COLUMNS, values), memberships


def _visible(
    principal: Principal, email: str, memberships: Iterable[dict[str, str]]
) -> list[MembershipEntry]:
    visible = []
    for entry in memberships:
        tenant_id, account_id = UUID(entry["tenant"]), UUID(entry["account"])
        scopes = principal.on_tenants.scopes_on(tenant_id=tenant_id, account_id=account_id)
        if can_see_membership(principal, email=email, scopes=scopes):
            visible.append(MembershipEntry(tenant_id=tenant_id, role=entry["role"]))
    return visible


def _readable_users(principal: Principal) -> QuerySet[User]:
    """Return the users that ``principal`` may read, always including itself."""
    if Scope.USERS_READ in principal.on_tenants.everywhere:
        return User.objects.all()
    of_tenants = live_memberships(principal, Scope.USERS_READ)
    return User.objects.filter(Q(pk=principal.rights.user_id) | Q(pk__in=of_tenants.values("user")))


def _create_user(principal: Principal, email: str) -> User:
    """Create the user with default values, or return the existing one. Lock its row. For platform admins."""
    try:
        check_email(email)
    except ValueError as error:
        raise ValidationFailed.at("/email", "invalid-email", str(error)) from error
    user, is_new = User.objects.lock_or_create(email)
    if is_new:
        record_event(EventKind.USER_CREATED, actor=principal.email, subject=email)
    return user


def _require_writable(principal: Principal, user: User, change: UserChange) -> None:
    changes_roles = change.roles is not None and change.roles != roles_of(user)
    changes_active = change.active not in {None, user.is_active}
    if principal.is_platform_admin:
        return
    itself = user.pk == principal.rights.user_id
    if not itself and change.memberships is None:
        raise Forbidden("You may not change this user.")
    if changes_active:
        raise Forbidden("Only a platform admin activates or deactivates users.")
    if changes_roles:
        raise Forbidden("Only a platform admin changes roles.")
    if not itself and change.display_name not in {None, user.display_name}:
        raise Forbidden("Only the user or a platform admin changes the display name.")


def _apply(user: User, change: UserChange, *, author: Author) -> None:
    if change.display_name not in {None, user.display_name}:
        before, after = {"displayName": user.display_name}, {"displayName": change.display_name}
        record_event(
            EventKind.USER_CHANGED, actor=author.email, subject=user.email, before=before, after=after
        )
    if change.display_name is not None:
        user.display_name = change.display_name
    roles = change.roles if change.roles is not None else roles_of(user)
    active = user.is_active if change.active is None else change.active
    apply_roles(user, roles=roles, active=active, author=author, path="/roles")


def delete_user(email: str, *, author: Author) -> list[str]:
    """Delete a user with memberships, ownerships, grants and credentials. For platform admins.

    The user's magic links are used up, so that they do not sign in a new user with this address. Returns the
    accounts and tenants that are left without an owner, as `sole_ownerships`.

    Raises:
        NotFound: there is no such user.
        Forbidden: it is the last active platform admin.
        SecondFactorRequired, SecondAdminNeeded: as `change_readers`.
    """
    with transaction.atomic():
        lock_admins()
        lock_sign_in(email)
        # Lock accounts before users: a write of an account uses the same order.
        owned = Account.objects.live().filter(owners__email=email).values("pk")
        accounts = list(Account.objects.select_for_update(no_key=True).filter(pk__in=owned).order_by("pk"))
        user = User.objects.select_for_update().filter(email=email).first()
        if user is None:
            raise NotFound("There is no such user.")
        if user.is_platform_admin and not has_other_active_admin(user):
            raise Forbidden("The last active platform admin cannot be deleted.")
        # A write of memberships locks users before tenants too.
        tenants = Tenant.objects.select_for_update(no_key=True, of=("self",))
        list(tenants.filter(memberships__user=user).order_by("pk"))
        ownerless = sole_ownerships(user)
        for account in accounts:
            remove_owner(account, user=user, author=author)
        change_readers(author, DeleteUser(user))
        end_links(email)
        withdraw(Invitation.objects.filter(email=email), actor=author.email)
    return ownerless


def sole_ownerships(user: User) -> list[str]:
    """Return the live accounts and tenants that only ``user`` owns: ``account 'Acme' (<id>)``."""
    accounts, tenants = owned_alone(user)
    return [
        *(f"account '{account.name}' ({account.pk})" for account in accounts.order_by("name", "pk")),
        *(f"tenant '{tenant.name}' ({tenant.pk})" for tenant in tenants.order_by("name", "pk")),
    ]


def owned_alone(user: User) -> tuple[QuerySet[Account], QuerySet[Tenant]]:
    """Return the live accounts and tenants of which ``user`` is the only owner who may act as one."""
    active = Account.owners.through.objects.filter(user__is_active=True).exclude(user__role=PrimaryRole.GUEST)
    account_owners = active.filter(account=OuterRef("pk")).exclude(user=user)
    owners = Membership.objects.owning().filter(tenant=OuterRef("pk")).exclude(user=user)
    accounts = Account.objects.live().filter(~Exists(account_owners), owners=user)
    owned = user.memberships.filter(role=MembershipRole.OWNER).values("tenant")
    return accounts, Tenant.objects.live().filter(~Exists(owners), pk__in=owned)
