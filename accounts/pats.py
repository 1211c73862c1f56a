"""Personal access tokens: list, create, rotate, revoke, mail before the end. Contract: Authentication, 4.

The owner's role and memberships decide which scopes a new PAT may have. If a PAT creates the new one, the new
one may not have more rights than it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from msgspec import Meta

from accounts.access.credentials import (
    create_pat,
    default_expiry,
    end_pat,
    end_with_session,
    end_within,
    role_scopes,
    rotate_pat,
)
from accounts.access.principal import NO_SCOPES, WILDCARD, Principal, Rights
from accounts.access.rights import rights_of
from accounts.access.scopes import (
    ABOUT_USERS,
    MEMBERS_ONLY,
    NOT_IN_MEMBERS_PATS,
    PLATFORM_ADMIN_SCOPES,
    SUPPORT_SCOPES,
    Scope,
)
from accounts.limits import count_use
from accounts.mailing import mail_later
from accounts.models import Account, PersonalAccessToken, Tenant, User
from accounts.readers.rule import Author, change_readers
from accounts.readers.users import ActOnToken
from accounts.users import require_self_or_admin
from tenantadmin.lib.core.emails import named
from tenantadmin.lib.core.errors import Forbidden, NotFound, ValidationFailed
from tenantadmin.lib.core.formats import exact_minute
from tenantadmin.lib.core.structs import Email, JsonStruct, one_of, sent_as
from tenantadmin.lib.core.timestamps import Timestamp, now


@dataclass(frozen=True, slots=True)
class PatRequest:
    """A PAT to create. ``tenants`` and ``accounts`` contain ids, or only the wildcard."""

    name: str
    scopes: frozenset[Scope]
    #: None: `default_expiry`, or when its maker ends.
    expires_at: dt.datetime | None = None
    tenants: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    endpoints: tuple[Mapping[str, Any], ...] = ()

    @property
    def has_wildcard(self) -> bool:
        return WILDCARD in self.tenants or WILDCARD in self.accounts


class PatDocument(JsonStruct):
    """A PAT without its text. ``prefix`` is the start of the text."""

    id: int
    name: str
    owner: Email
    prefix: str
    scopes: list[Annotated[str, one_of(sorted(Scope))]]
    tenants: list[str]
    accounts: list[str]
    endpoints: list[Annotated[dict[str, Any], sent_as("accounts.serializers.users.Endpoint")]]
    created_at: Timestamp
    expires_at: Timestamp
    last_used_at: Timestamp | None
    previous_ends_at: Annotated[
        Timestamp | None, Meta(description="Until when the secret before the last rotation is accepted.")
    ]


class CreatedPatDocument(PatDocument):
    """A new PAT with its text, which is shown only once."""

    token: str


def list_pats(principal: Principal, *, email: str) -> list[PatDocument]:
    """Return the documents of a user's PATs that are not revoked, newest first.

    Raises:
        Forbidden: the caller is neither the user nor a platform admin.
        NotFound: there is no such user; only platform admins get this.
    """
    owner = require_self_or_admin(principal, email)
    return [PatDocument.of(pat, owner=owner.email) for pat in owner.personal_access_tokens.not_revoked()]


def read_pat(principal: Principal, *, email: str, pat_id: int) -> PatDocument:
    """Return the document of a PAT that is not revoked.

    Raises:
        Forbidden: the caller is neither the user nor a platform admin.
        NotFound: the user has no such PAT, or it is revoked.
    """
    owner = require_self_or_admin(principal, email)
    pat = owner.personal_access_tokens.not_revoked().filter(pk=pat_id).first()
    if pat is None:
        raise _unknown_pat()
    return PatDocument.of(pat, owner=owner.email)


def create_own_pat(principal: Principal, *, email: str, wanted: PatRequest) -> CreatedPatDocument:
    """Create a PAT and return its document with ``token``, its text, which is shown only once.

    Raises:
        Forbidden: the PAT would have more rights than its owner, or than the PAT that creates it; or it has a
            wildcard, and the caller is no platform admin.
        SecondFactorRequired: it has a wildcard or another owner, and the caller has no fresh proof.
        ValidationFailed: an unknown tenant or account, an expiry in the past or too far ahead, or too many
            active PATs.
        NotFound: there is no such user.
        RateLimited: the caller has created too many in a short time.
    """
    owner = require_self_or_admin(principal, email)
    count_use(limit=settings.PAT_LIMIT, kind="pat", key=principal.email)
    is_own = owner.pk == principal.rights.user_id
    # A platform admin may put into its own PAT only what its session has proven.
    signed_in = is_own and principal.claims.is_sign_in
    require_grantable(principal.rights if signed_in else rights_of(owner), wanted)
    if wanted.has_wildcard and not principal.is_platform_admin:
        raise Forbidden("Only a platform admin may create tokens with a wildcard.")
    _require_no_foreign_logs(principal, owner=owner, scopes=wanted.scopes)
    _require_within(principal, wanted)
    store = partial(store_pat, owner, wanted, actor=principal.email, maker=principal)
    made = ActOnToken(owner, wanted.has_wildcard, store, _tenants_shown(principal, owner, wanted))
    [(pat, text)] = change_readers(Author.of(principal), made)
    return CreatedPatDocument.of(pat, owner=owner.email, token=text)


def store_pat(
    owner: User, wanted: PatRequest, *, actor: str, maker: Principal | None = None
) -> tuple[PersonalAccessToken, str]:
    """Create a PAT, unless its owner has too many; return it with its text. The caller checks all else.

    It ends with the PAT of ``maker``, or with its session if that is one of staff.

    Raises:
        ValidationFailed: the owner has as many active PATs as a user may have, or it would end later than its
            maker.
        NotFound: the owner has just been deleted.
        InvalidToken: the maker has just ended.
    """
    maker_pat = None if maker is None else maker.claims.personal_access_token
    session = None if maker is None or not maker.claims.is_staff else maker.claims.session
    with transaction.atomic():
        # Lock the owner, so that two requests at once cannot exceed the limit.
        if not User.objects.select_for_update(no_key=True).filter(pk=owner.pk).exists():
            raise NotFound("There is no such user.")
        active = owner.personal_access_tokens.in_force().count()
        if active >= settings.PAT_MAX_ACTIVE:
            raise ValidationFailed.at(
                "",
                "too-many-tokens",
                f"{owner.email} has {active} active personal access tokens, and may have "
                f"{settings.PAT_MAX_ACTIVE}. Revoke one first.",
            )
        expires_at = wanted.expires_at
        if maker is not None and maker_pat is not None:
            number = maker.claims.secret_number
            latest = end_within(expires_at, pat_id=maker_pat, secret_number=number)
            expires_at = expires_at or min(default_expiry(), latest)
            # It is of the session of staff that its maker is of.
            session = PersonalAccessToken.objects.values_list("session", flat=True).get(pk=maker_pat)
        elif session is not None:
            expires_at = end_with_session(expires_at, session_id=session)
        return create_pat(
            owner=owner,
            name=wanted.name,
            scopes=wanted.scopes,
            tenants=wanted.tenants,
            accounts=wanted.accounts,
            endpoints=[dict(endpoint) for endpoint in wanted.endpoints],
            expires_at=expires_at,
            actor=actor,
            made_with=maker_pat,
            session=session,
        )


def rotate_secret(
    principal: Principal, *, email: str, pat_id: int, grace: dt.timedelta
) -> CreatedPatDocument:
    """Give a PAT a new secret and return its document with ``token``. The former secret lives for ``grace``.

    Raises:
        Forbidden: the caller is neither the owner nor a platform admin, or a PAT with fewer rights.
        SecondFactorRequired: it has a wildcard or another owner, and the caller has no fresh proof.
        NotFound: the user has no such PAT, or it is revoked or expired.
        RateLimited: the caller has created too many secrets in a short time.
    """
    owner = require_self_or_admin(principal, email)
    count_use(limit=settings.PAT_LIMIT, kind="pat", key=principal.email)
    pat = owner.personal_access_tokens.in_force().filter(pk=pat_id).first()
    if pat is None:
        raise _unknown_pat()
    held = PatRequest(
        name=pat.name,
        scopes=frozenset(Scope(name) for name in pat.scopes),
        expires_at=pat.expires_at,
        tenants=tuple(pat.tenants),
        accounts=tuple(pat.accounts),
    )
    _require_no_foreign_logs(principal, owner=owner, scopes=held.scopes)
    _require_within(principal, held)
    rotate = partial(rotate_pat, pat, grace=grace, actor=principal.email)
    made = ActOnToken(owner, held.has_wildcard, rotate, _tenants_shown(principal, owner, held))
    [rotated] = change_readers(Author.of(principal), made)
    if rotated is None:
        raise _unknown_pat()
    return CreatedPatDocument.of(rotated[0], owner=owner.email, token=rotated[1])


def revoke_pat(principal: Principal, *, email: str, pat_id: int) -> None:
    """Revoke a PAT and, within seconds, the access tokens minted from it.

    Raises:
        Forbidden: the caller is neither the owner nor a platform admin with a fresh proof.
        NotFound: the user has no such PAT, or it is revoked already.
    """
    owner = require_self_or_admin(principal, email)
    pat = owner.personal_access_tokens.not_revoked().filter(pk=pat_id).first()
    end = (lambda: False) if pat is None else partial(end_pat, pat, actor=principal.email)
    [is_ended] = change_readers(Author.of(principal), ActOnToken(owner, has_wildcard=False, act=end))
    if not is_ended:
        raise _unknown_pat()


def _unknown_pat() -> NotFound:
    return NotFound("There is no such personal access token.")


def require_grantable(owner: Rights, wanted: PatRequest) -> None:
    """Refuse a PAT with more rights than its owner's role, memberships and grants on them give now.

    The owner's sign-in token does not count: it has none of the scopes that are for PATs alone.

    Raises:
        Forbidden: the owner lacks a scope, tenant or account of the PAT, or a scope on one of its tenants on
            which it has only a grant.
        ValidationFailed: an unknown tenant or account, or an expiry in the past or too far ahead.
    """
    expires_at = wanted.expires_at or default_expiry()
    if expires_at <= now():
        raise ValidationFailed.at("/expiresAt", "in-the-past", "Give a time in the future, or leave it out.")
    if expires_at > now() + dt.timedelta(days=settings.PAT_MAX_DAYS):
        message = f"Give a time at most {settings.PAT_MAX_DAYS} days ahead, or leave it out."
        raise ValidationFailed.at("/expiresAt", "too-late", message)
    if wanted.has_wildcard and not owner.is_platform_admin:
        raise Forbidden("Only a platform admin may own tokens with a wildcard.")
    if not owner.is_platform_admin and not owner.is_support:
        _require_members(owner, wanted)
    elif WILDCARD not in wanted.tenants and (unknown := _unknown_tenants(wanted)):
        raise ValidationFailed.at("/tenants", "unknown-tenant", f"There is no tenant {unknown[0]}.")
    if owner.is_platform_admin and WILDCARD not in wanted.accounts:
        accounts = Account.objects.filter(pk__in=wanted.accounts)
        known = {str(key) for key in accounts.values_list("pk", flat=True)}
        if unknown := sorted(set(wanted.accounts) - known):
            raise ValidationFailed.at("/accounts", "unknown-account", f"There is no account {unknown[0]}.")
    _require_scopes(owner, wanted)


def _require_members(owner: Rights, wanted: PatRequest) -> None:
    own = {str(tenant) for tenant in (*owner.memberships, *owner.granted.tenants)}
    if foreign := sorted(set(wanted.tenants) - own):
        raise Forbidden(f"The owner is not a member of the tenant {foreign[0]}, and has no grant on it.")
    if foreign := sorted(set(wanted.accounts) - {str(account) for account in owner.owned_accounts}):
        raise Forbidden(f"The owner does not own the account {foreign[0]}.")


def _require_scopes(owner: Rights, wanted: PatRequest) -> None:
    named = [UUID(tenant) for tenant in wanted.tenants if tenant != WILDCARD]
    # Grants add to the memberships.
    granted = owner.granted.tenants
    of_named = NO_SCOPES.union(
        *(owner.from_membership(tenant) | granted.get(tenant, NO_SCOPES) for tenant in named)
    )
    if owner.is_platform_admin:
        # The role does not give raw logs and SQL. They need a membership, and the PAT must name its tenant.
        allowed = PLATFORM_ADMIN_SCOPES | of_named
    else:
        any_tenant = bool(wanted.accounts) or not named
        by_role = SUPPORT_SCOPES if owner.is_support else NO_SCOPES
        if owner.is_support and of_named & MEMBERS_ONLY:
            # Support that has access to the log sees names of users too.
            by_role |= {Scope.ANALYTICS_USERS}
        allowed = (role_scopes(owner) if any_tenant else of_named | by_role) - NOT_IN_MEMBERS_PATS
    if excess := sorted(wanted.scopes - allowed):
        raise Forbidden(f"The owner's role and memberships do not give the scope '{excess[0]}'.")
    if not (owner.is_platform_admin or owner.is_support):
        _require_granted(owner, wanted.scopes, named)


def _require_granted(owner: Rights, scopes: frozenset[Scope], tenants: Iterable[UUID]) -> None:
    """Refuse scopes that a membership gives on another tenant of the PAT, but no grant on this one."""
    for tenant in sorted(set(tenants) - owner.memberships.keys()):
        if excess := sorted(scopes - owner.granted.tenants[tenant]):
            raise Forbidden(
                f"The owner's grant on the tenant {tenant} does not give the scope '{excess[0]}'. "
                "Make a token for this tenant alone, with the scopes of the grant."
            )


def _require_no_foreign_logs(principal: Principal, *, owner: User, scopes: frozenset[Scope]) -> None:
    """Refuse to show a platform admin the secret of another user's token that tells of users.

    Raises:
        Forbidden: with who may.
    """
    if owner.pk != principal.rights.user_id and scopes & (MEMBERS_ONLY | {Scope.ANALYTICS_USERS}):
        raise Forbidden(
            "Only members themselves make tokens for the raw logs, the SQL and the users of their tenants."
        )


def _tenants_shown(principal: Principal, owner: User, wanted: PatRequest) -> list[UUID]:
    """Return the tenants that another user's token names, itself or by their account."""
    if owner.pk == principal.rights.user_id or wanted.has_wildcard:
        return []
    of_accounts = Tenant.objects.live().filter(account__in=map(UUID, wanted.accounts))
    return sorted({*map(UUID, wanted.tenants), *of_accounts.values_list("pk", flat=True)})


def _require_within(principal: Principal, wanted: PatRequest) -> None:
    claims = principal.claims
    if claims.is_staff:
        _require_of_staff_session(principal, wanted)
    if claims.is_sign_in:
        return
    if principal.rights.endpoints:
        raise Forbidden("A token that is limited to endpoints cannot create other tokens.")
    if excess := sorted(wanted.scopes - claims.scopes):
        raise Forbidden(f"This token does not have the scope '{excess[0]}' itself.")
    if claims.has_wildcard:
        return
    foreign_tenants = set(wanted.tenants).difference(map(str, claims.tenants))
    if foreign_tenants or set(wanted.accounts).difference(map(str, claims.accounts)):
        raise Forbidden("This token does not name one of the tenants or accounts itself.")


def _require_of_staff_session(principal: Principal, wanted: PatRequest) -> None:
    """Refuse a PAT of a session that staff began, unless it names the one tenant that they look at.

    Raises:
        Forbidden: it names no tenant, several or an account; or it tells of users, and the caller is no
            member of the tenant.
    """
    if len(wanted.tenants) != 1 or wanted.has_wildcard or wanted.accounts:
        raise Forbidden("A session that staff began makes only tokens that name one tenant and no account.")
    is_member = UUID(wanted.tenants[0]) in principal.rights.memberships
    if not is_member and (excess := sorted(wanted.scopes & ABOUT_USERS)):
        raise Forbidden(
            f"The scope '{excess[0]}' is for members of the tenant. Take access for a limited time."
        )


def _unknown_tenants(wanted: PatRequest) -> list[str]:
    live = Tenant.objects.live().filter(pk__in=wanted.tenants)
    return sorted(set(wanted.tenants) - {str(key) for key in live.values_list("pk", flat=True)})


#: The mail is sent this long before the end.
NOTICE: Final = dt.timedelta(days=7)
#: Tokens that were made for less time end without a mail.
_SHORTEST: Final = dt.timedelta(days=30)
#: The most mails of one run.
_MOST: Final = 500


def mail_ending_pats() -> int:
    """Mail the owners of tokens that end within `NOTICE`. Return the number of mails.

    A token is marked in the transaction that puts its mail into the outbox.
    """
    if not settings.MAGIC_LINKS_ENABLED:  # without a mail server
        return 0
    ending = PersonalAccessToken.objects.in_force().filter(
        expires_at__lte=now() + NOTICE,
        expires_at__gte=F("created_at") + _SHORTEST,
        end_mailed_at=None,
        owner__is_active=True,
    )
    with transaction.atomic():
        rows = ending.select_for_update(no_key=True, skip_locked=True, of=("self",)).select_related("owner")
        pats = list(rows.order_by("expires_at", "pk")[:_MOST])
        for pat in pats:
            _mail(pat)
        PersonalAccessToken.objects.filter(pk__in=[pat.pk for pat in pats]).update(end_mailed_at=now())
    return len(pats)


def _mail(pat: PersonalAccessToken) -> None:
    context = {
        "pat": pat,
        "name": named(pat.name),
        "ends": exact_minute(pat.expires_at),
        "link": f"{settings.DASHBOARD_URL}#/account",
        "service": settings.PUBLIC_BASE_URL,
    }
    subject = f"Your personal access token {named(pat.name)} ends soon"
    mail_later(to=pat.owner.email, subject=subject, template="pat-end", context=context)
