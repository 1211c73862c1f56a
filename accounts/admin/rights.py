"""Memberships, ownerships, grants, access tokens and sessions as rows of one table.

A person's page, a tenant's page of people and the access review show the same rows.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact
from django.http import HttpResponseRedirect

from accounts.access.credentials import end_pat, end_refresh_token
from accounts.access.principal import WILDCARD
from accounts.access.scopes import (
    ABILITIES,
    ALL_SCOPES,
    MEMBERSHIP_SCOPES,
    READ_SCOPES,
    Scope,
    without_included,
)
from accounts.admin.base import ActPage, StaffPage
from accounts.admin.names import names_of
from accounts.billing.accounts import read_account, write_account
from accounts.events import record_event
from accounts.models import (
    Account,
    Membership,
    PermissionGrant,
    PersonalAccessToken,
    RefreshToken,
    Tenant,
    User,
)
from accounts.models.billing import GrantResource
from accounts.models.events import EventKind
from accounts.models.tokens import OF_DASHBOARD
from accounts.models.users import MembershipRole, PrimaryRole, StaffRole
from accounts.readers.grants import end_grant
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers
from accounts.roles import has_other_active_admin
from tenantadmin.lib.core.errors import Conflict
from tenantadmin.lib.core.formats import count
from tenantadmin.lib.http.admin_actions import Refused
from tenantadmin.lib.http.streaming import stream_csv

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    from accounts.admin.names import Names
    from accounts.models.querysets import MembershipQuerySet, RevocableQuerySet


#: At most this many rows of each kind are on a page. CSV files have all.
MAX_ROWS: Final = 200
_Ownership: Final = Account.owners.through
_STAFF: Final = {
    "platform admin": "everything but reading requests and SQL",
    "support": "look at staff pages, invalidate results, build days again",
}
_READ_AND_WRITE: Final = frozenset({Scope.CONFIG_READ, Scope.CONFIG_WRITE})
_OWNER: Final = "change the account, its owners and domains, create tenants in it"


class RightKind(StrEnum):
    """The source of a right."""

    ROLE = "role"
    OWNERSHIP = "ownership"
    MEMBERSHIP = "membership"
    GRANT = "grant"
    TOKEN = "token"  # noqa: S105
    SESSION = "session"


_COUNTED: Final[Mapping[str, str]] = {
    RightKind.ROLE: "staff role",
    RightKind.OWNERSHIP: "account ownership",
}


@dataclass(frozen=True, slots=True)
class Right:
    """One right of a person. ``row`` grants it; ``on`` has the ids of tenants and accounts."""

    kind: RightKind
    row: Any
    person: User
    #: Its name: the role, or the token's name.
    what: str
    #: What it allows, in words.
    allows: str
    on: Sequence[UUID] = field(default=())
    has_wildcard: bool = False
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    #: Last use. For roles, memberships, ownerships and grants: when the person was last seen.
    last_used_at: dt.datetime | None = None
    #: Rights that a page shows in this row.
    folded: Sequence[Right] = field(default=())

    @property
    def key(self) -> str:
        """The value of the right in a form, and of those folded into it."""
        return ",".join(f"{right.kind}:{right.row.pk}" for right in (self, *self.folded))

    @property
    def can_be_revoked(self) -> bool:
        """False for roles, which are changed on the user's page."""
        return self.kind is not RightKind.ROLE


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights, the names of their tenants and accounts, and whether more exist than a page shows."""

    rows: Sequence[Right]
    names: Names
    #: At most this many rows of each kind are listed, if there are more.
    cut_at: int | None = None

    @property
    def can_be_revoked(self) -> bool:
        return any(right.can_be_revoked for right in self.rows)

    @property
    def counted(self) -> str:
        """How many there are of each kind, in words."""
        return count_kinds(self.rows)

    @property
    def folded(self) -> list[Right]:
        """The rows of a page: tokens that the dashboard makes for a sign-in are one row for each person."""
        groups: defaultdict[Any, list[Right]] = defaultdict(list)
        for right in self.rows:
            is_of_dashboard = right.kind is RightKind.TOKEN and right.row.name == OF_DASHBOARD
            groups[right.person.pk if is_of_dashboard else right.key].append(right)
        return [rights[0] if len(rights) == 1 else _fold(rights) for rights in groups.values()]

    def cells(self) -> Iterator[list[Any]]:
        """Yield the rows of the CSV file, with the columns of `HEADER`."""
        for right in self.rows:
            known = [self.names[key][1] for key in right.on if key in self.names]
            yield [
                right.person.email,
                "yes" if right.person.is_active else "no",
                right.kind,
                right.what,
                right.allows,
                "everything" if right.has_wildcard else "; ".join(known),
                " ".join(map(str, right.on)),
                right.since,
                right.until,
                right.last_used_at,
            ]


def count_kinds(rights: Iterable[Right]) -> str:
    """Return in words how many rights there are of each kind: ``1 membership, 2 tokens``."""
    kinds = Counter(right.kind for right in rights)
    return ", ".join(count(number, _COUNTED.get(kind, kind)) for kind, number in kinds.items())


HEADER: Final = ("person", "active", "kind", "right", "may", "on", "ids", "since", "until", "last use")


def rights_of(person: User, *, limit: int | None = MAX_ROWS) -> Rights:
    """Return the rights of a person that are now in force."""
    return _collect(
        limit,
        memberships=Membership.objects.filter(user=person),
        ownerships=_Ownership.objects.filter(user=person, account__deleted_at__isnull=True),
        grants=PermissionGrant.objects.filter(grantee=person),
        tokens=PersonalAccessToken.objects.filter(owner=person),
        sessions=RefreshToken.objects.filter(user=person),
        staff=User.objects.filter(_is_staff(), pk=person.pk),
    )


def rights_on(tenant: Tenant, *, limit: int | None = MAX_ROWS) -> Rights:
    """Return the rights on a tenant that are now in force, including rights on its account."""
    on_tenant = Q(resource=GrantResource.TENANT, resource_id=tenant.pk)
    on_account = Q(resource=GrantResource.ACCOUNT, resource_id=tenant.account_id)
    return _collect(
        limit,
        memberships=Membership.objects.filter(tenant=tenant),
        ownerships=_Ownership.objects.filter(account=tenant.account_id),
        grants=PermissionGrant.objects.filter(on_tenant | on_account),
        tokens=PersonalAccessToken.objects.filter(
            Q(tenants__overlap=[str(tenant.pk), WILDCARD])
            | Q(accounts__overlap=[str(tenant.account_id), WILDCARD])
        ),
    )


def far_reaching_rights(*, limit: int | None = MAX_ROWS) -> Rights:
    """Return rights beyond one customer: staff, wildcard tokens, and access for a limited time."""
    return _collect(
        limit,
        staff=User.objects.filter(_is_staff()),
        memberships=Membership.objects.filter(ends_at__isnull=False),
        tokens=PersonalAccessToken.objects.filter(
            Q(tenants__overlap=[WILDCARD]) | Q(accounts__overlap=[WILDCARD])
        ),
    )


def _is_staff() -> Q:
    return Q(role=PrimaryRole.ADMIN) | Q(is_support=True)


def _collect(
    limit: int | None,
    *,
    memberships: MembershipQuerySet[Membership],
    ownerships: QuerySet[Any] | None = None,
    grants: RevocableQuerySet[PermissionGrant] | None = None,
    tokens: RevocableQuerySet[PersonalAccessToken],
    sessions: RevocableQuerySet[RefreshToken] | None = None,
    staff: QuerySet[User] | None = None,
) -> Rights:
    """Return the rights of these rows, in a constant number of queries."""
    lists: list[QuerySet[Any]] = []
    if staff is not None:
        lists.append(staff.order_by("role", "email"))
    if ownerships is not None:
        lists.append(ownerships.select_related("user", "account").order_by("user__email", "pk"))
    lists.append(memberships.in_force().select_related("user").order_by("user__email", "pk"))
    if grants is not None:
        lists.append(grants.in_force().select_related("grantee", "granted_by").order_by("pk"))
    # A page shows a limited number of tokens: first the tokens that people made, then the tokens of sign-ins.
    is_of_sign_in = Exact(F("name"), OF_DASHBOARD)
    lists.append(tokens.in_force().select_related("owner").order_by(is_of_sign_in, "owner__email", "pk"))
    if sessions is not None:
        lists.append(sessions.in_force().select_related("user").order_by("-created_at"))
    found = [list(rows if limit is None else rows[: limit + 1]) for rows in lists]
    cut_at = limit if limit is not None and any(len(rows) > limit for rows in found) else None
    rows = list(chain.from_iterable(rows[:limit] for rows in found))
    seen = last_seen({_person_of(row).pk: _person_of(row) for row in rows})
    rights = [_right(row, seen) for row in rows]
    return Rights(rights, names_of(chain.from_iterable(right.on for right in rights)), cut_at)


def _person_of(row: Any) -> User:
    if isinstance(row, User):
        return row
    person: User = (
        row.grantee
        if isinstance(row, PermissionGrant)
        else row.owner
        if isinstance(row, PersonalAccessToken)
        else row.user
    )
    return person


def last_seen(people: dict[int, User]) -> dict[int, dt.datetime | None]:
    """Return when each person last signed in, or used a session or a token, in two queries."""
    of_sessions = RefreshToken.objects.filter(user__in=people).values_list("user")
    of_tokens = PersonalAccessToken.objects.filter(owner__in=people).values_list("owner")
    last_of_session = Max(Coalesce("last_used_at", "created_at"))
    moments: dict[int, list[dt.datetime | None]] = {
        key: [person.last_login] for key, person in people.items()
    }
    for key, at in chain(
        of_sessions.annotate(last=last_of_session).order_by(),
        of_tokens.annotate(last=Max("last_used_at")).order_by(),
    ):
        moments[key].append(at)
    return {key: max(filter(None, found), default=None) for key, found in moments.items()}


def _fold(rights: Sequence[Right]) -> Right:
    """Return one right for tokens of a person's sign-ins."""
    first, *others = rights
    used = [right.last_used_at for right in rights if right.last_used_at]
    return replace(
        first,
        what=f"{first.what}: {len(rights)} sign-ins",
        on=list(dict.fromkeys(chain.from_iterable(right.on for right in rights))),
        has_wildcard=any(right.has_wildcard for right in rights),
        until=max((right.until for right in rights if right.until), default=None),
        last_used_at=max(used, default=None),
        folded=others,
    )


def _describe_scopes(scopes: Iterable[str]) -> str:
    given = without_included(map(Scope, scopes))
    if given >= _READ_AND_WRITE:
        return ", ".join(
            [
                "read and change rules and configuration",
                *filter(None, [_describe_scopes(given - _READ_AND_WRITE)]),
            ]
        )
    return ", ".join(words for scope, words in ABILITIES.items() if scope in given)


def _right(row: Any, seen: dict[int, dt.datetime | None]) -> Right:
    person = _person_of(row)
    right = partial(Right, row=row, person=person, last_used_at=seen[person.pk])
    if isinstance(row, User):
        what = "platform admin" if row.role == PrimaryRole.ADMIN else "support"
        return right(RightKind.ROLE, what=what, allows=_STAFF[what], has_wildcard=True)
    if isinstance(row, _Ownership):
        account: Any = row.account
        return right(RightKind.OWNERSHIP, what="account owner", allows=_OWNER, on=[account.pk])
    if isinstance(row, Membership):
        limit = READ_SCOPES if person.role == PrimaryRole.GUEST else ALL_SCOPES
        may = _describe_scopes(MEMBERSHIP_SCOPES[row.role] & limit)
        on = [row.tenant_id]
        return right(RightKind.MEMBERSHIP, what=row.role, allows=may, on=on, until=row.ends_at)
    right = partial(right, since=row.created_at, until=row.expires_at)
    if isinstance(row, PermissionGrant):
        what = "permissions" if row.granted_by is None else f"permissions from {row.granted_by.email}"
        return right(
            RightKind.GRANT, what=what, allows=_describe_scopes(row.permissions), on=[row.resource_id]
        )
    if isinstance(row, PersonalAccessToken):
        named = (*row.tenants, *row.accounts)
        return right(
            RightKind.TOKEN,
            what=row.name,
            allows=_describe_scopes(row.scopes),
            on=[UUID(key) for key in named if key != WILDCARD],
            has_wildcard=WILDCARD in named,
            last_used_at=row.last_used_at,
        )
    return right(
        RightKind.SESSION,
        what=f"{row.provider or 'one-time link'}, {row.address or 'unknown address'}",
        allows="all that the person may do",
        last_used_at=row.last_used_at or row.created_at,
    )


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Accounts and tenants that would be without an owner."""

    accounts: Sequence[Account]
    tenants: Sequence[Tenant]


def left_alone(rights: Iterable[Right]) -> LeftAlone:
    """Return accounts and tenants without an owner if all these rights ended, in at most two queries."""
    chosen = list(rights)
    owned = {right.row.pk: right.row.account_id for right in chosen if right.kind is RightKind.OWNERSHIP}
    held = {
        right.row.pk: right.row.tenant_id
        for right in chosen
        if right.kind is RightKind.MEMBERSHIP and right.row.role == MembershipRole.OWNER
    }
    of_account = _Ownership.objects.filter(account=OuterRef("pk")).exclude(pk__in=owned)
    of_tenant = Membership.objects.filter(tenant=OuterRef("pk"), role=MembershipRole.OWNER)
    accounts = Account.objects.filter(~Exists(of_account), pk__in=set(owned.values()))
    tenants = Tenant.objects.live().filter(~Exists(of_tenant.exclude(pk__in=held)), pk__in=set(held.values()))
    return LeftAlone(list(accounts), list(tenants))


#: The query parameter that requests the CSV file instead of the page.
_CSV = "csv"


class RightsPage(StaffPage):
    """A page with a table of rights, which is also a CSV file."""

    #: The name of the CSV file.
    file_name: ClassVar[str]

    def rights(self, *, limit: int | None) -> Rights:
        """Return the rights that the page shows."""
        raise NotImplementedError

    def done_to(self) -> Mapping[str, Any]:
        """Return whom events of this page name, like `ActPage.done_to`."""
        raise NotImplementedError

    def revoke_at(self) -> str:
        """Return the address of the page that revokes rights of this table."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **more: Any) -> HttpResponseBase:
        if request.GET.get("format") != _CSV:
            return super().get(request, **more)
        rights = self.rights(limit=None)
        # The file leaves the service, so the download is recorded.
        record_event(
            EventKind.STAFF_ACTED,
            actor=self.actor,
            after={"act": "rights.exported", "rows": len(rights.rows)},
            **self.done_to(),
        )
        return stream_csv(self.file_name, HEADER, rights.cells())


class RevokePage(ActPage):
    """Revoke the chosen rights."""

    title = "Revoke rights"
    name = "rights.revoked"
    button = "Revoke"
    is_dangerous = True
    is_destructive = True
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    template_name = "backoffice/people/revoke.html"
    effect = (
        "Revoking is final, and will take effect within five seconds, also on tokens already issued. "
        "Either all chosen rights will be revoked or none."
    )

    def rights(self, *, limit: int | None) -> Rights:
        """Return the rights from which the reader has chosen."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **more: Any) -> HttpResponse:
        # Before the page asks for the second factor.
        if not request.GET.getlist("right"):
            messages.error(request, "Choose what to revoke first.")
            return HttpResponseRedirect(self.done_at())
        return super().get(request, **more)

    def read(self) -> Mapping[str, Any]:
        rights = self.rights(limit=None)
        chosen = self._chosen(rights)
        return {"chosen": chosen, "rights": rights, "alone": left_alone(chosen)}

    def _chosen(self, rights: Rights) -> Sequence[Right]:
        values = self.request.POST if self.request.method == "POST" else self.request.GET
        keys = set(",".join(values.getlist("right")).split(","))
        return [right for right in rights.rows if right.key in keys and right.can_be_revoked]

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        chosen = self._chosen(self.rights(limit=None))
        ended = revoke_rights(chosen, author=self.author)
        if not ended:
            raise Conflict("None of these rights is in force any more. Go back and choose again.")
        verb = "Ended" if all(right.kind is RightKind.SESSION for right in ended) else "Revoked"
        missed = len(chosen) - len(ended)
        before = f" {missed} had ended before." if missed else ""
        return f"{verb} {count_kinds(ended)}.{before}", {"rights": [right.key for right in chosen]}


def revoke_rights(rights: Sequence[Right], *, author: Author) -> list[Right]:
    """Revoke rights. Return those that ended now; a right that had already ended is not among them.

    Raises:
        Refused: an account would have no owner.
        Forbidden: as `change_readers`.
    """
    with transaction.atomic():
        # In this order other writers lock: accounts, users, tenants.
        order = list(RightKind)
        ordered = sorted(rights, key=lambda right: (order.index(right.kind), right.person.pk, str(right.key)))
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
        return change_owners(row.account_id, leaving=right.person.email, author=author)
    if right.kind is RightKind.MEMBERSHIP:
        [is_ended] = change_readers(author, SetMembership(right.person, row.tenant_id, None))
        return bool(is_ended)
    if right.kind is RightKind.GRANT:
        return end_grant(row, author=author)
    end = end_pat if right.kind is RightKind.TOKEN else end_refresh_token
    return end(row, actor=author.email)


def change_owners(
    account_id: UUID, *, leaving: str, author: Author, heir: str = "", gives_billing: bool = False
) -> bool:
    """Replace the owner ``leaving`` of an account by ``heir``. Return False if nothing changes.

    ``gives_billing``: the heir, else another owner, also gets the mails about billing.
    """
    state = read_account(account_id)
    owners = {*state.owners, *([heir] if heir else [])} - {leaving}
    payer = state.account.billing_email
    if gives_billing and payer == leaving:
        payer = heir or min(owners, default=leaving)
    if leaving not in state.owners and payer == state.account.billing_email:
        return False
    write_account(
        account_id=account_id,
        document={
            **state.document(),
            "owners": sorted(owners),
            "billingEmail": payer,
            "seq": state.account.seq,
        },
        parse=dict,
        author=author,
    )
    return True


def why_not_offboard(person: User, *, actor: str) -> str:
    """Return why the user cannot be offboarded, or an empty text."""
    if person.email == actor:
        return "This is you. Ask another platform admin."
    if person.is_platform_admin and not has_other_active_admin(person):
        return "This is the last active platform admin. Make another user a platform admin first."
    if not person.is_active and not rights_of(person, limit=1).rows:
        return "The person is inactive and has no right any more."
    return ""
