"""Sessions (refresh tokens) and personal access tokens: create, exchange for access tokens, revoke.

Contract: Authentication 3 and 4. The text of a credential is returned once, by the function that makes it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.utils.module_loading import import_string
from msgspec import Meta

from accounts.access.assurance import UNPROVEN, Assurance
from accounts.access.principal import WILDCARD, Rights
from accounts.access.rights import LAST_USE_STEP, rights_of, rights_on_session
from accounts.access.scopes import PAT_ONLY, Scope
from accounts.access.tokens import mint_access_token
from accounts.events import record_event, record_refused_token
from accounts.models import MagicLink, PersonalAccessToken, RefreshToken, User
from accounts.models.events import EventKind
from tenantadmin.lib.core.errors import ApiError, InvalidToken, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import format_timestamp, now

_BEARER: Final = "Bearer"
PAT_PREFIX: Final = "tas_pat_"
REFRESH_PREFIX: Final = "tas_refresh_"
#: How many characters after the prefix are stored, so that users can recognise a token.
_VISIBLE_CHARACTERS = 8
#: An IPv6 address with a zone has no limit of its own.
_MAX_ADDRESS: Final = 64
_MAX_USER_AGENT: Final = 400
#: The advisory lock that serializes sign-ins of one address. Any constant will do.
_SIGN_IN_LOCK: Final = 4_202_303


class InvalidGrant(ApiError):
    """An unknown, expired or revoked credential, or one of an inactive user (RFC 6749, 5.2)."""

    status = 401
    code = "invalid_grant"
    message = "The credential is unknown, expired or revoked."


class IssuedToken(JsonStruct, rename=None):
    """A bearer token; ``expires_in`` in seconds."""

    component = "TokenResponse"

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    scope: Annotated[str, Meta(description="Space separated.")]
    refresh_token: Annotated[str | None, Meta(description="Of a code alone.")] = None


def digest_of(text: str) -> bytes:
    """Return the SHA-256 of a credential's text; only this is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _new_text(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


def create_pat(
    *,
    owner: User,
    name: str,
    scopes: Iterable[Scope],
    tenants: Sequence[str] = (),
    accounts: Sequence[str] = (),
    endpoints: Sequence[dict[str, Any]] = (),
    expires_at: dt.datetime | None = None,
    actor: str = "",
    made_with: int | None = None,
    session: int | None = None,
) -> tuple[PersonalAccessToken, str]:
    """Store a new personal access token and return it with its text. The text is not stored.

    The caller of this function checks before what the owner may put into it. ``expires_at`` defaults to
    `default_expiry`, ``actor`` to the owner. The token ends with ``made_with``, the id of another one, or
    with ``session``, the id of a session of staff.
    """
    text = _new_text(PAT_PREFIX)
    with transaction.atomic():
        pat = PersonalAccessToken.objects.create(
            owner=owner,
            name=name,
            digest=digest_of(text),
            prefix=text[: len(PAT_PREFIX) + _VISIBLE_CHARACTERS],
            scopes=sorted(scopes),
            tenants=list(tenants),
            accounts=list(accounts),
            endpoints=list(endpoints),
            expires_at=expires_at or default_expiry(),
            made_with_id=made_with,
            session_id=session,
        )
        record_event(
            EventKind.PAT_CREATED, actor=actor or owner.email, subject=owner.email, after=_recorded(pat)
        )
    return pat, text


def default_expiry() -> dt.datetime:
    """Return when a new PAT expires if its creator does not say."""
    return now() + dt.timedelta(days=min(settings.PAT_DEFAULT_DAYS, settings.PAT_MAX_DAYS))


def end_within(expires_at: dt.datetime | None, *, pat_id: int, secret_number: int) -> dt.datetime:
    """Return when something that a PAT's token makes ends: with the secret behind the token at the latest.

    Lock the PAT, in a transaction. ``secret_number`` is a claim of the token.

    Raises:
        InvalidToken: the PAT has just ended.
        ValidationFailed: ``expires_at`` is later.
    """
    # A revocation at the same time waits for the lock, and ends what is made.
    rows = PersonalAccessToken.objects.in_force().select_for_update(no_key=True)
    pat = rows.filter(pk=pat_id).first()
    is_former = pat is not None and secret_number != pat.secret_number
    latest = None if pat is None else pat.previous_ends_at if is_former else pat.expires_at
    if latest is None or latest <= now():
        raise InvalidToken("The personal access token behind this token has ended.")
    if expires_at is not None and expires_at > latest:
        ends = format_timestamp(latest)
        message = f"The token that makes this ends at {ends}. Give that time at the latest, or leave it out."
        raise ValidationFailed.at("/expiresAt", "too-late", message)
    return expires_at or latest


def end_with_session(expires_at: dt.datetime | None, *, session_id: int) -> dt.datetime:
    """Return when a PAT ends that a session of staff makes, as `end_within`. Lock the session.

    Raises:
        InvalidToken: the session has just ended.
    """
    session = RefreshToken.objects.in_force().select_for_update(no_key=True).filter(pk=session_id).first()
    if session is None or session.expires_at is None:
        raise InvalidToken("The session of this token has ended.")
    return min(expires_at or session.expires_at, session.expires_at)


def rotate_pat(
    pat: PersonalAccessToken, *, grace: dt.timedelta, actor: str
) -> tuple[PersonalAccessToken, str] | None:
    """Give a PAT a new secret and return it with the text, or None if the PAT is not in force.

    The former secret, the access tokens minted from it, and the PATs that these made end after ``grace``; an
    earlier secret ends now.
    """
    text = _new_text(PAT_PREFIX)
    with transaction.atomic():
        rows = PersonalAccessToken.objects.in_force().select_for_update(no_key=True)
        locked = rows.filter(pk=pat.pk).first()
        if locked is None:
            return None
        locked.previous_digest, locked.digest = locked.digest, digest_of(text)
        locked.previous_ends_at = min(now() + grace, locked.expires_at)
        locked.prefix = text[: len(PAT_PREFIX) + _VISIBLE_CHARACTERS]
        locked.secret_number += 1
        locked.save()
        _shorten_made(locked, to=locked.previous_ends_at)
        after = {
            "pat": locked.pk,
            "name": locked.name,
            "previousEndsAt": format_timestamp(locked.previous_ends_at),
        }
        record_event(EventKind.PAT_ROTATED, actor=actor, subject=pat.owner.email, after=after)
    return locked, text


def end_pat(pat: PersonalAccessToken, *, actor: str) -> bool:
    """Revoke a PAT with those that it made; return False if it was revoked before. Its grants end, too."""
    with transaction.atomic():
        live = PersonalAccessToken.objects.not_revoked().filter(pk=pat.pk)
        if not live.update(revoked_at=now()):
            return False
        record_event(EventKind.PAT_REVOKED, actor=actor, subject=pat.owner.email, before=_recorded(pat))
        _end_made(pat, actor=actor)
    return True


def _end_made(maker: PersonalAccessToken | RefreshToken, *, actor: str) -> None:
    for made in maker.made.not_revoked().select_related("owner"):
        end_pat(made, actor=actor)


def end_refresh_token(token: RefreshToken, *, actor: str) -> bool:
    """Revoke a refresh token, with the PATs of a session of staff; return False if it was revoked before."""
    with transaction.atomic():
        live = RefreshToken.objects.not_revoked().filter(pk=token.pk)
        if not live.update(revoked_at=now()):
            return False
        record_event(
            EventKind.SESSION_ENDED,
            actor=actor,
            subject=token.user.email,
            before={"session": token.pk, **marked(token)},
        )
        _end_made(token, actor=actor)
    return True


def _shorten_made(maker: PersonalAccessToken, *, to: dt.datetime) -> None:
    for made in maker.made.not_revoked().filter(expires_at__gt=to):
        PersonalAccessToken.objects.filter(pk=made.pk).update(expires_at=to)
        _shorten_made(made, to=to)


def marked(session: RefreshToken) -> dict[str, bool]:
    """Return what events say of a session that staff began to look at a customer's tenant."""
    return {"staff": True} if session.is_staff else {}


def _recorded(pat: PersonalAccessToken) -> dict[str, Any]:
    """Return what events say of a PAT: never its text or digest."""
    return {
        "pat": pat.pk,
        "name": pat.name,
        "scopes": pat.scopes,
        "tenants": pat.tenants,
        "accounts": pat.accounts,
        "endpoints": pat.endpoints,
        "expiresAt": format_timestamp(pat.expires_at),
        **({} if pat.session_id is None else {"session": pat.session_id, "staff": True}),
    }


def create_refresh_token(
    *,
    user: User,
    provider: str = "",
    address: str = "",
    user_agent: str = "",
    assurance: Assurance = UNPROVEN,
    is_staff: bool = False,
) -> tuple[RefreshToken, str]:
    """Store a new session and return it with the text of its refresh token. The text is not stored.

    ``provider``, ``address`` and ``user_agent`` say how, from where and with what the user signed in.
    ``is_staff`` marks a session that staff begin to look at a customer's tenant. It lasts no longer than one
    of the admin site.
    """
    text = _new_text(REFRESH_PREFIX)
    lifetime: dt.timedelta = settings.REFRESH_TOKEN_LIFETIME
    if is_staff:
        lifetime = min(lifetime, dt.timedelta(seconds=settings.STAFF_SESSION_SECONDS))
    row = RefreshToken.objects.create(
        user=user,
        digest=digest_of(text),
        prefix=text[: len(REFRESH_PREFIX) + _VISIBLE_CHARACTERS],
        expires_at=now() + lifetime,
        provider=provider,
        address=address[:_MAX_ADDRESS],
        user_agent=user_agent.replace("\0", "")[:_MAX_USER_AGENT],
        amr=dict(assurance.amr),
        second_factor_id=assurance.second_factor,
        is_staff=is_staff,
    )
    return row, text


def role_scopes(rights: Rights) -> frozenset[Scope]:
    """Return the scopes of primary role and memberships, on any tenant."""
    own = rights.own_on_tenants
    return own.everywhere.union(*own.tenants.values())


def sign_in_scopes(rights: Rights) -> frozenset[Scope]:
    """Return the scopes of a sign-in token: from role, memberships and grants, without PAT-only scopes."""
    granted = (*rights.granted.tenants.values(), *rights.granted.accounts.values())
    return role_scopes(rights).union(rights.extra_scopes, *granted) - PAT_ONLY


def mint_for_sign_in(session: RefreshToken) -> IssuedToken:
    """Mint an access token of ``session``, for a person who signed in or refreshed.

    Its role is the role that is in force on the session.
    """
    user = session.user
    rights = rights_on_session(session)
    scopes = sign_in_scopes(rights)
    token = mint_access_token(
        subject=user.email,
        epoch=user.epoch,
        session=session.pk,
        role=rights.role,
        scopes=scopes,
        tenants=[str(tenant_id) for tenant_id in rights.memberships],
        accounts=[str(account_id) for account_id in rights.owned_accounts],
        tos_required=must_acknowledge(user),
        is_staff=session.is_staff,
    )
    return _issued_token(token, scopes)


def exchange_pat(text: str) -> IssuedToken:
    """Exchange a personal access token for an access token.

    Raises:
        InvalidGrant: the PAT is unknown, expired or revoked, its owner is inactive, or it has a wildcard and
            its owner is no longer a platform admin.
    """
    digest = digest_of(text)
    is_previous = Q(previous_digest=digest)
    accepted = Q(digest=digest) | is_previous & Q(previous_ends_at__gt=now())
    rows = PersonalAccessToken.objects.in_force().select_related("owner")
    pat = rows.filter(accepted, owner__is_active=True).first()
    if pat is None:
        owners = PersonalAccessToken.objects.filter(Q(digest=digest) | is_previous)
        raise _refusal(text, owner=owners.values_list("owner__email", flat=True).first())
    rights = rights_of(pat.owner)
    if WILDCARD in (*pat.tenants, *pat.accounts) and not rights.is_platform_admin:
        message = "The owner of this wildcard token is no longer a platform admin."
        raise _refusal(text, owner=pat.owner.email, message=message)
    scopes = frozenset(Scope(name) for name in pat.scopes)
    ends_at, secret_number = pat.expires_at, pat.secret_number
    if bytes(pat.digest) != digest and pat.previous_ends_at is not None:
        ends_at, secret_number = pat.previous_ends_at, secret_number - 1
    token = mint_access_token(
        subject=pat.owner.email,
        epoch=pat.owner.epoch,
        role=pat.owner.role,
        scopes=scopes,
        tenants=pat.tenants,
        accounts=pat.accounts,
        personal_access_token=pat.pk,
        secret_number=secret_number,
        ends_at=ends_at,
        is_staff=pat.session_id is not None,
    )
    with transaction.atomic():
        PersonalAccessToken.objects.filter(pk=pat.pk).update(last_used_at=now())
        minted = {"pat": pat.pk, "scopes": sorted(scopes)}
        _record_minted(pat.owner, minted, {"after__pat": pat.pk})
    return _issued_token(token, scopes, ends_at=ends_at)


def exchange_refresh_token(text: str) -> IssuedToken:
    """Exchange a refresh token for an access token; the refresh token stays valid.

    Raises:
        InvalidGrant: the token is unknown, expired or revoked, or its user is inactive.
    """
    row = (
        RefreshToken.objects.in_force()
        .select_related("user")
        .filter(digest=digest_of(text), user__is_active=True)
        .first()
    )
    if row is None:
        users = RefreshToken.objects.filter(digest=digest_of(text))
        raise _refusal(text, owner=users.values_list("user__email", flat=True).first())
    issued = mint_for_sign_in(row)
    moment = now()
    with transaction.atomic():
        used = RefreshToken.objects.filter(pk=row.pk)
        # Locked, so that two exchanges at once do not both leave an event.
        last = used.select_for_update(no_key=True).values_list("last_used_at", flat=True).first()
        if last is None or moment - last >= LAST_USE_STEP:
            used.update(last_used_at=moment)
        minted = {"session": row.pk, "scopes": issued.scope.split(), **marked(row)}
        _record_minted(row.user, minted, {"after__session": row.pk})
    return issued


def _record_minted(user: User, minted: Mapping[str, Any], of: Mapping[str, Any]) -> None:
    """Record an access token; a client may exchange a credential for as many as it likes."""
    record_event(EventKind.TOKEN_MINTED, actor=user.email, subject=user.email, after=minted, repeats=of)


def _refusal(text: str, *, owner: str | None, message: str = "") -> InvalidGrant:
    """Record that a credential was refused, and return the error. ``owner`` is None for an unknown one."""
    error = InvalidGrant(message)
    record_refused_token(subject=owner or "", token=text, reason=error.text)
    return error


def revoke(text: str) -> None:
    """Revoke a refresh token or a PAT. An unknown text is not an error.

    The access tokens minted from it become invalid with it. The former secret of a PAT ends alone.
    """
    for token in RefreshToken.objects.select_related("user").filter(digest=digest_of(text)):
        end_refresh_token(token, actor=token.user.email)
    for pat in PersonalAccessToken.objects.select_related("owner").filter(digest=digest_of(text)):
        end_pat(pat, actor=pat.owner.email)
    of_former = PersonalAccessToken.objects.not_revoked().filter(previous_digest=digest_of(text))
    for pat in of_former.filter(previous_ends_at__gt=now()).select_related("owner"):
        with transaction.atomic():
            PersonalAccessToken.objects.filter(pk=pat.pk).update(previous_ends_at=now())
            before = {"pat": pat.pk, "secret": pat.secret_number - 1}
            record_event(EventKind.PAT_REVOKED, actor=pat.owner.email, subject=pat.owner.email, before=before)


def lock_sign_in(email: str) -> None:
    """Wait for other sign-ins of the address. The lock is released when the transaction ends.

    Take this lock before the lock of the user's row, as a sign-in does; otherwise the two may deadlock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_SIGN_IN_LOCK, email])


def sign_out_everywhere(user: User, *, actor: str) -> int:
    """End all sessions, access tokens and open magic links of the locked row ``user``.

    Sets a new epoch and ``modified_at`` on ``user``, which the caller saves. The caller has called
    `lock_sign_in`. PATs stay, but must be exchanged again. Returns how many sessions ended.
    """
    user.epoch, user.modified_at = uuid.uuid4(), now()
    end_links(user.email)
    return sum(end_refresh_token(session, actor=actor) for session in user.refresh_tokens.in_force())


def end_links(email: str) -> None:
    """Use up the open magic links of an address. The caller has called `lock_sign_in`."""
    MagicLink.objects.filter(email=email, used_at__isnull=True).update(used_at=now())


def _issued_token(token: str, scopes: Iterable[Scope], *, ends_at: dt.datetime | None = None) -> IssuedToken:
    lifetime = settings.ACCESS_TOKEN_LIFETIME
    seconds = int((lifetime if ends_at is None else min(lifetime, ends_at - now())).total_seconds())
    return IssuedToken(
        access_token=token, token_type=_BEARER, expires_in=seconds, scope=" ".join(sorted(scopes))
    )


def must_acknowledge(user: User) -> bool:
    """Ask the terms-of-service app if the user must acknowledge new terms.

    This app must not import that one, so a setting names the function.
    """
    required: bool = import_string(settings.TOS_REQUIRED_CHECK)(user)
    return required
