"""Offboard a person: transfer sole ownerships, then end all access."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

import msgspec
from django import forms
from django.db import transaction
from django.db.models import Q

from accounts.access.credentials import end_pat, lock_sign_in
from accounts.admin.base import ActPage, ReasonForm
from accounts.admin.finding import CompletedInput, email_meant
from accounts.admin.names import names_of
from accounts.admin.people import PersonScope
from accounts.admin.rights import MAX_ROWS, change_owners, last_seen, why_not_offboard
from accounts.limited_access import withdraw_requests_of
from accounts.models import Account, Invitation, Membership, User
from accounts.models.users import MembershipRole, PrimaryRole, StaffRole
from accounts.pending import withdraw
from accounts.readers.grants import end_grant
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers
from accounts.readers.users import set_support
from accounts.roles import lock_admins, replace_roles
from accounts.users import owned_alone
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.http.admin_actions import Refused

if TYPE_CHECKING:
    from django.http import HttpResponse

    from accounts.models import Tenant
    from tenantadmin.lib.core.errors import ApiError


@dataclass(frozen=True, slots=True)
class Heir:
    """A suggested owner, and the right for which they are suggested."""

    email: str
    right: str
    seen_at: dt.datetime | None

    @property
    def text(self) -> str:
        seen = f"last seen {formats.ago(self.seen_at, now=now())}" if self.seen_at else "never seen"
        return f"Suggested: {self.email}, {self.right}, {seen}."


@dataclass(frozen=True, slots=True)
class _Candidate:
    #: The tenant or account.
    place: UUID
    user: User
    right: str
    #: The lowest comes first.
    rank: int = 0


def suggest_heirs(
    person: User, *, accounts: Iterable[Account], tenants: Iterable[Tenant]
) -> dict[UUID, Heir]:
    """Suggest a new owner for each account and tenant that only ``person`` owns.

    Of a tenant: an admin, else as of its account. Of an account: another owner, else an owner, else an admin
    of one of its tenants. Of several, who was seen last. Only active users are suggested; there may be none.
    """
    account_of = {
        **{tenant.pk: tenant.account_id for tenant in tenants},
        **{account.pk: account.pk for account in accounts},
    }
    ids = set(account_of.values())
    owners = Account.owners.through.objects.filter(account__in=ids, user__is_active=True)
    members = Membership.objects.filter(
        tenant__account__in=ids, tenant__deleted_at__isnull=True, user__is_active=True, ends_at__isnull=True
    ).exclude(role=MembershipRole.MEMBER)
    candidates = [
        _Candidate(owner.account_id, owner.user, f"owner of the account {owner.account.name}")
        for owner in owners.exclude(user=person).select_related("user", "account")
    ]
    for member in members.exclude(user=person).select_related("user", "tenant"):
        right = f"{member.role} of {member.tenant.name}"
        rank = 1 if member.role == MembershipRole.OWNER else 2
        candidates += [
            _Candidate(member.tenant_id, member.user, right),
            _Candidate(member.tenant.account_id, member.user, right, rank),
        ]
    seen = last_seen({candidate.user.pk: candidate.user for candidate in candidates})

    def order(one: _Candidate) -> tuple[int, float, str]:
        at = seen[one.user.pk]
        return one.rank, -at.timestamp() if at else 0, one.user.email

    best: dict[UUID, Heir] = {}
    for one in sorted(candidates, key=order):
        best.setdefault(one.place, Heir(one.user.email, one.right, seen[one.user.pk]))
    found = {place: best.get(place) or best.get(account) for place, account in account_of.items()}
    return {place: heir for place, heir in found.items() if heir is not None}


class Offboarding(JsonStruct):
    """Numbers of revoked rights, and the transferred accounts and tenants, as the event records them."""

    handed_over: int
    memberships: int
    accounts: int
    grants: int
    tokens: int


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
        people = {
            user.email: user for user in locked.filter(email__in={email, *heirs.values()}).order_by("pk")
        }
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
            change_owners(account.pk, leaving=email, heir=heir, author=author, gives_billing=gives_billing)
        pats = person.personal_access_tokens.not_revoked()
        offboarding = Offboarding(
            handed_over=len(alone),
            memberships=len(held),
            accounts=ownerships,
            grants=sum(end_grant(grant, author=author) for grant in person.grants.in_force()),
            tokens=sum(end_pat(pat, actor=author.email) for pat in pats),
        )
        withdraw(Invitation.objects.filter(email=email), actor=author.email)
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


#: Names of fields of `OffboardPage`. The field of an account or a tenant has its id as name.
_EVERYTHING: Final = "everything"
_BILLING: Final = "billing"


class OffboardPage(PersonScope, ActPage):
    """Offboard a user: transfer sole ownerships, then revoke all access."""

    title = "Offboard"
    name = "person.offboarded"
    button = "Offboard"
    is_dangerous = True
    is_destructive = True
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    template_name = "backoffice/people/offboard.html"
    effect = (
        "First, new owners will get what only this person owns. Then memberships, ownerships, grants, "
        "personal access tokens, staff roles and sessions will end, and the user will be deactivated. Either "
        "all of this happens or nothing. The user's row and history are kept."
    )

    def form(self, data: Any = None) -> ReasonForm:
        alone = owned_alone(self.person)
        accounts, tenants = list(alone[0].order_by("name", "pk")), list(alone[1].order_by("name", "pk"))
        heirs = suggest_heirs(self.person, accounts=accounts, tenants=tenants)
        owned = {
            **{account.pk: f"the account {account.name}" for account in accounts},
            **{tenant.pk: f"the tenant {tenant.name}" for tenant in tenants},
        }
        fields: dict[str, forms.Field] = {}
        # One new owner for everything, if there are several things; each may get another one.
        common = None
        if has_several := len(owned) > 1:
            emails = Counter(heirs[key].email for key in owned if key in heirs).most_common(1)
            common = next((heir for heir in heirs.values() if emails and heir.email == emails[0][0]), None)
            fields[_EVERYTHING] = _heir_field("New owner of everything below", common)
        for key, name in owned.items():
            label = f"New owner of {name}, if not the one above" if has_several else f"New owner of {name}"
            heir = heirs.get(key)
            is_common = heir is not None and common is not None and heir.email == common.email
            fields[str(key)] = _heir_field(label, None if is_common else heir, required=not has_several)
        if billing := _billing_field(self.person, owned):
            fields[_BILLING] = billing
        form_class = type("OffboardForm", (ReasonForm,), {**fields, "field_order": [*fields, "reason"]})
        made: ReasonForm = form_class(data)
        return made

    def read(self) -> Mapping[str, Any]:
        return {
            "person": self.person,
            "refusal": why_not_offboard(self.person, actor=self.actor),
            "rights": self.rights(limit=MAX_ROWS),
        }

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        other = {_EVERYTHING, _BILLING, "reason"}
        heirs = {
            UUID(key): email_meant(heir or values.get(_EVERYTHING, ""))
            for key, heir in values.items()
            if key not in other
        }
        ended = self.rights(limit=None)
        done = offboard(
            self.person.pk, heirs=heirs, author=self.author, gives_billing=values.get(_BILLING, False)
        )
        names = names_of(heirs)
        owns: defaultdict[str, list[str]] = defaultdict(list)
        for key, heir in heirs.items():
            owns[heir].append(names[key][1] if key in names else str(key))
        message = f"{self.person.email} is offboarded."
        if ended.rows:
            message += f" {len(ended.rows)} ended: {ended.counted}."
        for heir in sorted(owns):
            message += f" {heir} now owns {', '.join(owns[heir])}."
        return message, msgspec.to_builtins(done)

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        """Show a problem at the field that was filled in: of one thing, or of everything."""
        if _EVERYTHING in form.cleaned_data:
            of_all = [detail for detail in error.details if not form.cleaned_data.get(detail.path.strip("/"))]
            for message in dict.fromkeys(detail.message for detail in of_all):
                form.add_error(_EVERYTHING, message)
            error.details = tuple(detail for detail in error.details if detail not in of_all)
            if not error.details:
                return self.show(self.template_name, {"form": form, **self.read()}, status=error.status)
        return super().refused(form, error)


def _heir_field(label: str, heir: Heir | None, *, required: bool = True) -> forms.CharField:
    none = "No other active user owns or administers it, so there is no suggestion." if required else ""
    return forms.CharField(
        label=label,
        error_messages={"required": "There is no other owner. Name a new one."},
        max_length=400,
        initial=heir.email if heir else "",
        help_text=heir.text if heir else none,
        required=required,
        widget=CompletedInput("people", placeholder="Name or email of an active user"),
    )


def _billing_field(person: User, owned: Collection[UUID]) -> forms.BooleanField | None:
    """Return the field that says who gets the person's mails about billing, if there are any.

    ``owned`` are the ids of what only this person owns.
    """
    billed = list(Account.objects.live().filter(billing_email=person.email).order_by("name", "pk"))
    to_new = ", ".join(account.name for account in billed if account.pk in owned)
    to_other = ", ".join(account.name for account in billed if account.pk not in owned)
    receivers = [
        *([f"to the new owner of {to_new}"] if to_new else []),
        *([f"to another owner of {to_other}"] if to_other else []),
    ]
    if not receivers:
        return None
    return forms.BooleanField(
        label=f"Mails about billing go {' and '.join(receivers)}",
        help_text=f"Otherwise they still go to {person.email}.",
        required=False,
        initial=True,
    )
