"""From a proven identity to the service's own tokens: one flow behind every way of signing in.

Contract: Authentication 2. The first sign-in of somebody who belongs nowhere makes a free account and one
tenant, exactly once, whoever else arrives at the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction

from accounts.access.credentials import create_refresh_token, mint_for_sign_in
from accounts.emails import check_email
from accounts.models import MagicLink, User
from accounts.models.users import PrimaryRole
from accounts.provisioning import provision_home
from accounts.signin.settings import is_domain_permitted
from tenantadmin.core.errors import Forbidden, Unauthorized
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    import datetime as dt


#: Sign-ins of one address wait for each other under this advisory lock. Any constant will do.
_SIGN_IN_LOCK: Final = 4_202_303


class SignInFailed(Unauthorized):
    """Who is asking could not be proven."""

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
    """The tokens of a sign-in; ``expires_in`` in seconds, of the access token."""

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

    Open magic links of the address end.

    Raises:
        SignInFailed: the address is not verified, or is none.
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
        wait_for_turn(email)
        user = _find_or_create(identity, email)
        if not user.is_active:
            raise Forbidden("This user is deactivated.")
        is_first = user.last_login is None
        _remember(user, identity, moment)
        if is_first and user.role != PrimaryRole.GUEST:
            provision_home(user)
        MagicLink.objects.filter(email=email, used_at__isnull=True).update(used_at=moment)
        _, refresh_token = create_refresh_token(user=user)
        grant = mint_for_sign_in(user)
    return SignIn(grant.access_token, refresh_token, grant.expires_in)


def wait_for_turn(email: str) -> None:
    """Let sign-ins of one address happen one after the other; held until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_SIGN_IN_LOCK, email])


def require_permitted(email: str) -> None:
    """Refuse an address whose domain may not sign in.

    Raises:
        Forbidden: so it is.
    """
    if not is_domain_permitted(email):
        raise Forbidden("Addresses of this domain may not sign in here.")


def _find_or_create(identity: Identity, email: str) -> User:
    """Return the locked row of the user: by the provider's subject, else by the address."""
    if identity.subject:
        locked = User.objects.select_for_update(no_key=True)
        known = locked.filter(identity_provider=identity.provider, identity_subject=identity.subject).first()
        if known is not None:
            return known
    return User.objects.lock_or_create(email)


def _remember(user: User, identity: Identity, moment: dt.datetime) -> None:
    if identity.subject:
        user.identity_provider, user.identity_subject = identity.provider, identity.subject
    user.display_name = user.display_name or identity.display_name[:200]
    user.email_verified = True
    user.last_login = user.modified_at = moment
    user.save()
