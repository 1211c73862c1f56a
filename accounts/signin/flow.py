"""Turn a proven identity into the service's own tokens. Every way of signing in uses this flow.

Contract: Authentication 2. The first sign-in of a user without tenants and accounts creates a free account
and one tenant, only once even if several sign-ins run at the same time.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.access.assurance import Assurance, Way
from accounts.access.credentials import (
    create_refresh_token,
    end_links,
    lock_sign_in,
    marked,
    mint_for_sign_in,
)
from accounts.access.resources import require_permitted
from accounts.billing.accounts import create_account
from accounts.events import record_event
from accounts.models import User
from accounts.models.events import EventKind
from accounts.models.users import PrimaryRole
from accounts.readers.rule import Author
from accounts.signin.redirects import resolve_redirect
from accounts.tenants.lifecycle import create_tenant_with_address
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.errors import Forbidden, Unauthorized
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from accounts.access.credentials import IssuedToken


def return_address(target: str) -> str:
    """Return the address that a sign-in with the target ``target`` redirects to."""
    return resolve_redirect(
        target, dashboard_url=settings.DASHBOARD_URL, allowed=settings.ALLOWED_REDIRECT_HOSTS
    )


_FIRST_TENANT: Final = "Default"
_MAX_NAME: Final = 100


class SignInFailed(Unauthorized):
    """The identity of the caller could not be proven."""

    message = "Signing in failed. Start again."


class OtherIdentity(SignInFailed):
    """The user of this address signs in through another identity, which must agree first."""

    def __init__(self, user: User) -> None:
        super().__init__(
            f"{user.email} signs in through {user.identity_provider!r} here. Sign in that way or by an "
            "emailed link. To change it, ask a platform admin to unlink it.",
            why=f"The user signs in through another identity, at {user.identity_provider!r}.",
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """What an identity provider said. A magic link proves an address and has no ``provider``."""

    email: str
    email_verified: bool
    provider: str = ""
    subject: str = ""
    display_name: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """From which network address and with which browser a user signs in, for the list of sessions."""

    address: str = ""
    user_agent: str = ""


class SignIn(JsonStruct, rename=None):
    """The tokens of a sign-in. ``expires_in`` is the lifetime of the access token in seconds."""

    access_token: str
    refresh_token: str
    expires_in: int

    @classmethod
    def of_session(cls, issued: IssuedToken, refresh_token: str) -> Self:
        """Return the tokens of `open_session`."""
        return cls(
            access_token=issued.access_token, refresh_token=refresh_token, expires_in=issued.expires_in
        )


def complete_sign_in(identity: Identity, device: Device) -> SignIn:
    """Create or update the user behind ``identity``, and start a session, in one transaction.

    All unused magic links of the address become invalid.

    Raises:
        SignInFailed: the address is not verified or not valid, or its user has another identity.
        Forbidden: its domain may not sign in, or the user is deactivated.
    """
    email = check_identity(identity)
    moment = now()
    with transaction.atomic():
        lock_sign_in(email)
        user = find_user(identity, email) or _create_user(email)
        if not user.is_active:
            raise Forbidden("This user is deactivated.", why="The user is deactivated.")
        is_first = user.last_login is None
        _update_user(user, identity, moment)
        if is_first and user.role != PrimaryRole.GUEST:
            create_first_tenant(user)
        end_links(email)
        way = Way.PROVIDER if identity.provider else Way.LINK
        session = open_session(
            user,
            device,
            provider=identity.provider,
            assurance=Assurance(amr={way: time.time()}),
            ways={"provider": identity.provider or "link"},
        )
        return SignIn.of_session(*session)


def open_session(
    user: User,
    device: Device,
    *,
    provider: str = "",
    assurance: Assurance,
    ways: Mapping[str, str],
    is_step_up: bool = False,
    is_staff: bool = False,
    tenant_id: UUID | None = None,
) -> tuple[IssuedToken, str]:
    """Start a session of the API. Return its first access token and its refresh token.

    Args:
        ways: how it was proven, for the event.
        is_step_up: it needs no new proof, so the client may start as many as it likes.
        is_staff: staff began it to look at a customer's tenant. Its tokens and events say so, and the PATs
            that it makes name one tenant and end with it.
        tenant_id: the customer's tenant, for the event.
    """
    with transaction.atomic():
        repeats = None
        if is_step_up:
            User.objects.select_for_update(no_key=True).get(pk=user.pk)
            repeats = {"after__has_key": "session", **{f"after__{way}": value for way, value in ways.items()}}
        session, refresh_token = create_refresh_token(
            user=user,
            provider=provider,
            address=device.address,
            user_agent=device.user_agent,
            assurance=assurance,
            is_staff=is_staff,
        )
        after = {**ways, "session": session.pk, **marked(session)}
        record_event(
            EventKind.SIGN_IN_SUCCEEDED,
            actor=user.email,
            subject=user.email,
            tenant_id=tenant_id,
            after=after,
            repeats=repeats,
        )
        return mint_for_sign_in(session), refresh_token


def check_identity(identity: Identity) -> str:
    """Return the normalized address of ``identity``.

    Raises:
        SignInFailed: the address is not verified or not valid.
        Forbidden: its domain may not sign in.
    """
    if not identity.email:
        raise SignInFailed("The identity provider gave no usable email address.")
    if not identity.email_verified:
        raise SignInFailed("The identity provider has not verified this email address.")
    try:
        email = check_email(identity.email)
    except ValueError as error:
        raise SignInFailed("The identity provider gave no usable email address.") from error
    require_permitted(email)
    return email


def find_user(identity: Identity, email: str) -> User | None:
    """Return the user by the provider's subject, else by the address. Lock its row.

    Raises:
        OtherIdentity: the user of the address has another identity. Neither another provider nor a later
            holder of the address may take over the user.
    """
    known = find_identity(identity)
    if known is not None:
        return known
    user = User.objects.select_for_update(no_key=True).filter(email=email).first()
    if user is not None and user.identity_subject and identity.subject:
        raise OtherIdentity(user)
    return user


def find_identity(identity: Identity) -> User | None:
    """Return the user with the identity's provider and subject, and lock its row."""
    if not identity.subject:
        return None
    return (
        User.objects.select_for_update(no_key=True)
        .filter(identity_provider=identity.provider, identity_subject=identity.subject)
        .first()
    )


def _create_user(email: str) -> User:
    user, is_new = User.objects.lock_or_create(email)
    if is_new:
        record_event(EventKind.USER_CREATED, actor=email, subject=email)
    return user


def create_first_tenant(user: User) -> None:
    """Create a free account and one tenant for ``user``, unless the user has a tenant or account.

    The tenant gets a random address under the first platform domain. The caller has locked the user's row
    in the current transaction.
    """
    if user.memberships.exists() or user.owned_accounts.exists():
        return
    account = create_account(
        name=user.email[:_MAX_NAME],
        owners=[user.email],
        author=Author(user.email),
        billing_email=user.email,
    )
    create_tenant_with_address(
        account_id=account.account_id, name=_FIRST_TENANT, actor=user.email, owner=user
    )


def link_identity(user: User, identity: Identity) -> None:
    """Make ``identity`` the one that the user signs in through. A magic link has none and changes nothing."""
    before = _identity_of(user)
    after = {"provider": identity.provider, "subject": identity.subject}
    if not identity.subject or before == after:
        return
    user.identity_provider, user.identity_subject = identity.provider, identity.subject
    user.save(update_fields=["identity_provider", "identity_subject"])
    record_event(EventKind.IDENTITY_LINKED, actor=user.email, subject=user.email, before=before, after=after)


def unlink_identity(user: User, *, actor: str) -> bool:
    """Forget the identity, so that the next one that proves the address is linked; False if there is none."""
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if not user.identity_subject:
            return False
        before = _identity_of(user)
        user.identity_provider = user.identity_subject = ""
        user.save(update_fields=["identity_provider", "identity_subject"])
        record_event(EventKind.IDENTITY_UNLINKED, actor=actor, subject=user.email, before=before)
    return True


def _identity_of(user: User) -> dict[str, str] | None:
    if not user.identity_subject:
        return None
    return {"provider": user.identity_provider, "subject": user.identity_subject}


def _update_user(user: User, identity: Identity, moment: dt.datetime) -> None:
    link_identity(user, identity)
    user.display_name = user.display_name or " ".join(identity.display_name.split())[:200]
    user.email_verified = True
    user.last_login = user.modified_at = moment
    user.save(update_fields=["display_name", "email_verified", "last_login", "modified_at"])
