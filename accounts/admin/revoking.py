"""Revoke many rights at once, transfer ownerships, and offboard a user, with the functions of the API.

Each function is one transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q

from accounts.access.credentials import end_pat, end_refresh_token, lock_sign_in
from accounts.access_requests import withdraw_requests_of
from accounts.admin.rights import RightKind, left_alone, rights_of
from accounts.billing.accounts import SentAccount, read_account, write_account
from accounts.deletion import owned_alone
from accounts.ended_invitations import withdraw_invitations
from accounts.models import Account, Invitation, Tenant, User
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.readers import Author, SetMembership, change_readers, end_grant, set_support
from accounts.roles import has_other_active_admin, lock_admins, replace_roles
from accounts.tenants.errors import TenantNotFound
from tenantadmin.lib.core.errors import Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.admin_actions import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.admin.rights import Right


def revoke_rights(rights: Sequence[Right], *, author: Author) -> list[Right]:
    """Revoke rights. Return those that ended now; a right that had already ended is not among them.

    Raises:
        Refused: an account would have no owner.
        Forbidden: as `change_readers`.
    """
    with transaction.atomic():
        # In this order other writers lock: accounts, users, tenants.
        order = list(RightKind)
        ordered = sorted(rights, key=lambda it: (order.index(it.kind), it.person.pk, str(it.key)))
        accounts = {right.row.account_id for right in ordered if right.kind is RightKind.OWNERSHIP}
        list(Account.objects.select_for_update(no_key=True).filter(pk__in=accounts).order_by("pk"))
        if alone := left_alone(ordered).accounts:
            raise Refused(
                f"The account {alone[0].name} would have no owner. Name another owner on its page first."
            )
        people = {right.person.pk for right in ordered if right.kind is RightKind.MEMBERSHIP}
        list(User.objects.select_for_update(no_key=True).filter(pk__in=people).order_by("pk"))
        return [right for right in ordered if _end(right, author=author)]


def _end(right: Right, *, author: Author) -> bool:
    row: Any = right.row
    if right.kind is RightKind.OWNERSHIP:
        return _change_owners(row.account_id, leaving=right.person.email, author=author)
    if right.kind is RightKind.MEMBERSHIP:
        [is_ended] = change_readers(author, SetMembership(right.person, row.tenant_id, None))
        return bool(is_ended)
    if right.kind is RightKind.GRANT:
        return end_grant(row, author=author)
    end = end_pat if right.kind is RightKind.TOKEN else end_refresh_token
    return end(row, actor=author.email)


def _change_owners(
    account_id: UUID, *, leaving: str, author: Author, heir: str = "", gives_billing: bool = False
) -> bool:
    """Replace the owner ``leaving`` of an account by ``heir``. Return False if nothing changes.

    ``gives_billing``: the heir, else another owner, also gets the mails about billing.
    """
    state = read_account(account_id)
    owners = {*state.owners, *([heir] if heir else [])} - {leaving}
    payer = state.billing_email
    if gives_billing and payer == leaving:
        payer = heir or min(owners, default=leaving)
    if leaving not in state.owners and payer == state.billing_email:
        return False
    write_account(
        account_id=account_id,
        document=sorted(owners),
        parse=lambda owners: SentAccount(name=state.name, owners=owners, billing_email=payer, seq=state.seq),
        author=author,
    )
    return True


def set_member(*, tenant_id: UUID, email: str, role: MembershipRole, author: Author) -> None:
    """Make a user a member of a live tenant, or change the role.

    Raises:
        NotFound: there is no such user.
        TenantNotFound: there is no such live tenant.
        Forbidden: as `change_readers`.
    """
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(email=email).first()
        if user is None:
            raise NotFound(f"There is no user '{email}'. A user exists after the first sign-in.")
        live = Tenant.objects.live().select_for_update(no_key=True).filter(pk=tenant_id)
        if not live.exists():
            raise TenantNotFound
        change_readers(author, SetMembership(user, tenant_id, role))


class Offboarding(JsonStruct):
    """Numbers of revoked rights, and the transferred accounts and tenants, as the event records them."""

    handed_over: int
    memberships: int
    accounts: int
    grants: int
    tokens: int


def why_not_offboard(person: User, *, actor: str) -> str:
    """Return why the user cannot be offboarded, or an empty text."""
    if person.email == actor:
        return "This is you. Ask another platform admin."
    if person.is_platform_admin and not has_other_active_admin(person):
        return "This is the last active platform admin. Make another user a platform admin first."
    if not person.is_active and not rights_of(person, limit=1).rows:
        return "The person is inactive and has no right any more."
    return ""


def accounts_billed_to(person: User) -> QuerySet[Account]:
    """Return the live accounts whose mails about billing go to the user."""
    return Account.objects.live().filter(billing_email=person.email)


def offboard(
    person_id: int, *, heirs: Mapping[UUID, str], author: Author, gives_billing: bool = False
) -> Offboarding:
    """Transfer sole ownerships, then end all rights, tokens and sessions, and deactivate the user.

    ``heirs`` has the email of the new owner by the id of each such account and tenant. ``gives_billing``:
    mails about billing go to the new owners, or to other owners, from now on.

    Raises:
        NotFound: there is no such user.
        Refused: it is the caller, or the last active platform admin.
        ValidationFailed: an account or a tenant has no heir, or no active user has an heir's email.
        Forbidden, SecondAdminNeeded: as `change_readers`.
    """
    with transaction.atomic():
        email = User.objects.filter(pk=person_id).values_list("email", flat=True).first() or ""
        lock_admins()
        lock_sign_in(email)
        # In this order other writers lock: accounts, users, tenants.
        owned = Account.objects.live().filter(Q(owners=person_id) | Q(billing_email=email)).values("pk")
        accounts = list(Account.objects.select_for_update(no_key=True).filter(pk__in=owned).order_by("pk"))
        locked = User.objects.select_for_update(no_key=True)
        people = {it.email: it for it in locked.filter(email__in={email, *heirs.values()}).order_by("pk")}
        person = people.pop(email, None)
        if person is None:
            raise NotFound("There is no such user.")
        if refusal := why_not_offboard(person, actor=author.email):
            raise Refused(refusal)
        alone_accounts, alone_tenants = owned_alone(person)
        alone = {*alone_accounts.values_list("pk", flat=True), *alone_tenants.values_list("pk", flat=True)}
        _require_heirs(alone, heirs, people)
        # In a fixed order, like other writers of memberships.
        held = list(person.memberships.order_by("tenant_id").values_list("tenant_id", flat=True))
        given = [
            SetMembership(people[heirs[tenant_id]], tenant_id, MembershipRole.OWNER)
            for tenant_id in alone_tenants.values_list("pk", flat=True)
        ]
        taken = [SetMembership(person, tenant_id, None) for tenant_id in held]
        change_readers(author, *given, *taken)
        ownerships = person.owned_accounts.live().count()
        for account in accounts:
            heir = heirs[account.pk] if account.pk in alone else ""
            _change_owners(account.pk, leaving=email, heir=heir, author=author, gives_billing=gives_billing)
        pats = person.personal_access_tokens.not_revoked()
        offboarding = Offboarding(
            handed_over=len(alone),
            memberships=len(held),
            accounts=ownerships,
            grants=sum(end_grant(grant, author=author) for grant in person.grants.in_force()),
            tokens=sum(end_pat(pat, actor=author.email) for pat in pats),
        )
        withdraw_invitations(Invitation.objects.filter(email=email), actor=author.email)
        withdraw_requests_of(person, actor=author.email)
        set_support(person, is_support=False, author=author)
        # Deactivation ends the sessions.
        primary = PrimaryRole.USER if person.role == PrimaryRole.ADMIN else None
        replace_roles(email, primary=primary, scopes=(), active=False, author=author)
    return offboarding


def _require_heirs(alone: set[UUID], heirs: Mapping[UUID, str], people: Mapping[str, User]) -> None:
    details = []
    for resource in sorted(alone):
        heir = heirs.get(resource, "")
        if not heir:
            message = "There is no other owner. Name a new one."
            details.append(Detail(f"/{resource}", "no-heir", message))
        elif heir not in people or not people[heir].is_active:
            message = f"There is no other active user '{heir}'."
            details.append(Detail(f"/{resource}", "unknown-user", message))
    if details:
        raise ValidationFailed(details=details)
