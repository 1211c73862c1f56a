"""Turn a proven identity into the service's own tokens. Every way of signing in uses this flow.

Contract: Authentication 2. The first sign-in of a user without tenants and accounts creates a free account
and one tenant, only once even if several sign-ins run at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction

from accounts.access.credentials import create_refresh_token, mint_for_sign_in
from accounts.emails import check_email
from accounts.events import record_event
from accounts.models import MagicLink, User
from accounts.models.events import EventKind
from accounts.models.users import PrimaryRole
from accounts.provisioning import provision_first_tenant
from accounts.signin.settings import is_domain_permitted
from tenantadmin.core.errors import Forbidden, Unauthorized
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    import datetime as dt


#: The advisory lock that serializes sign-ins of one address. Any constant will do.
_SIGN_IN_LOCK: Final = 4_202_303


class SignInFailed(Unauthorized):
    """The identity of the caller could not be proven."""

    message = "Signing in failed. Start again."


@dataclass(frozen=True, slots=True)
class Identity:
    """What an identity provider said. A magic link proves an address and has no ``provider``."""

    email: str
    email_verified: bool
    provider: str = ""
    subject: str = ""
    display_name: str = ""


@dataclass(frozen=True, slots=True)
class SignIn:
    """The tokens of a sign-in. ``expires_in`` is the lifetime of the access token in seconds."""

    access_token: str
    refresh_token: str
    expires_in: int

    def as_json(self) -> dict[str, Any]:
        return {
            "access_token": self.access_token,
            "refresh_token": self.refresh_token,
            "expires_in": self.expires_in,
        }


def complete_sign_in(identity: Identity) -> SignIn:
    """Create or update the user behind ``identity`` and mint its tokens, in one transaction.

    All unused magic links of the address become invalid.

    Raises:
        SignInFailed: the address is not verified or not valid.
        Forbidden: its domain may not sign in, or the user is deactivated.
    """
    if not identity.email_verified:
        raise SignInFailed("The identity provider has not verified this email address.")
    try:
        email = check_email(identity.email)
    except ValueError as error:
        raise SignInFailed("The identity provider gave no usable email address.") from error
    require_permitted(email)
    moment = now()
    with transaction.atomic():
        lock_sign_in(email)
        user = _find_or_create(identity, email)
        if not user.is_active:
            raise Forbidden("This user is deactivated.")
        is_first = user.last_login is None
        _update_user(user, identity, moment)
        if is_first and user.role != PrimaryRole.GUEST:
            provision_first_tenant(user)
        MagicLink.objects.filter(email=email, used_at__isnull=True).update(used_at=moment)
        row, refresh_token = create_refresh_token(user=user)
        signed_in = {"provider": identity.provider or "link", "session": row.pk}
        record_event(EventKind.SIGN_IN_SUCCEEDED, actor=user.email, subject=user.email, after=signed_in)
        grant = mint_for_sign_in(user)
    return SignIn(grant.access_token, refresh_token, grant.expires_in)


def lock_sign_in(email: str) -> None:
    """Wait for other sign-ins of the address. The lock is released when the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_SIGN_IN_LOCK, email])


def require_permitted(email: str) -> None:
    """Refuse an address whose domain may not sign in.

    Raises:
        Forbidden: the domain may not sign in.
    """
    if not is_domain_permitted(email):
        raise Forbidden("Addresses of this domain may not sign in here.")


def _find_or_create(identity: Identity, email: str) -> User:
    """Find the user by the provider's subject, else find or create it by the address. Lock its row."""
    if identity.subject:
        locked = User.objects.select_for_update(no_key=True)
        known = locked.filter(identity_provider=identity.provider, identity_subject=identity.subject).first()
        if known is not None:
            return known
    user, is_new = User.objects.lock_or_create(email)
    if is_new:
        record_event(EventKind.USER_CREATED, actor=email, subject=email)
    return user


def _update_user(user: User, identity: Identity, moment: dt.datetime) -> None:
    if identity.subject:
        user.identity_provider, user.identity_subject = identity.provider, identity.subject
    user.display_name = user.display_name or identity.display_name[:200]
    user.email_verified = True
    user.last_login = user.modified_at = moment
    user.save()
