"""Passwordless sign-in by an emailed one-time link. Contract: Discovery and sign-in, Limits.

Known and unknown addresses are treated the same, so that callers cannot find out who is a user: every link is
stored and mailed, and the user is looked up only when the link is used.
"""

from __future__ import annotations

import datetime as dt
import secrets
from typing import TYPE_CHECKING, ClassVar, Final

from django.conf import settings
from django.db import transaction

from accounts.access.credentials import digest_of, lock_sign_in
from accounts.access.resources import require_permitted
from accounts.events import record_event, sign_in_failures_recorded
from accounts.limits import count_use
from accounts.mailing import MailNotSent, send_mail
from accounts.models import MagicLink
from accounts.models.events import EventKind
from accounts.signin.flow import Device, Identity, SignIn, complete_sign_in, return_address
from accounts.signin.redirects import with_parameters
from tenantadmin.lib.core.errors import ApiError, Unauthorized
from tenantadmin.lib.core.request_context import network_of
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from accounts.models.tokens import MagicLink as Link

#: Links are deleted this long after they expired.
_RETENTION: Final = dt.timedelta(days=1)


class LinksNotConfigured(ApiError):
    """No mail server is configured, so no link can be sent."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "identity_provider_unavailable"
    message: ClassVar[str] = "Signing in by email is not configured."


class LinkNotSent(MailNotSent):
    message: ClassVar[str] = "The sign-in link could not be sent. Try again later."


class InvalidLink(Unauthorized):
    """An unknown, expired or used link. The message does not say which."""

    message: ClassVar[str] = "The link is invalid, expired or already used. Ask for a new one."


def require_links() -> None:
    """Refuse if magic links are turned off.

    Raises:
        LinksNotConfigured: they are turned off.
    """
    if not settings.MAGIC_LINKS_ENABLED:
        raise LinksNotConfigured


def request_link(*, email: str, redirect: str, address: str, page: str = "/auth/magic-link/verify") -> None:
    """Mail a one-time link to a normalized ``email``. ``address`` is the client's network address.

    ``page`` is the path that the link opens, with the token in ``t``.

    Raises:
        LinksNotConfigured: no mail server is configured.
        Forbidden: the domain may not sign in.
        RateLimited: too many links for the email or from the address.
        InternalError: a limit cannot be applied.
        LinkNotSent: the mail server failed; the link is deleted.
    """
    require_links()
    require_permitted(email)
    count_use(limit=settings.MAGIC_LINK_ADDRESS_LIMIT, kind="link-address", key=network_of(address))
    count_use(limit=settings.MAGIC_LINK_EMAIL_LIMIT, kind="link-email", key=email)
    token = secrets.token_urlsafe(32)
    moment = now()
    MagicLink.objects.filter(expires_at__lt=moment - _RETENTION).delete()
    with transaction.atomic():
        link = MagicLink.objects.create(
            digest=digest_of(token),
            email=email,
            return_to=return_address(redirect),
            created_at=moment,
            expires_at=moment + dt.timedelta(seconds=settings.MAGIC_LINK_SECONDS),
        )
        # Every caller may request a link to any address.
        record_event(EventKind.SIGN_IN_LINK_REQUESTED, actor="", subject=email)
    _send(link, token, page=page)


def verify_link(*, token: str, return_to: str | None, device: Device) -> tuple[SignIn, str]:
    """Sign in by a link, once. Return the tokens and the address to go to.

    The address is ``return_to``, or without it the one that the request for the link named. If two requests
    use the same link at the same time, exactly one signs in.

    Raises:
        LinksNotConfigured: magic links are turned off.
        InvalidLink: the link is unknown, expired or used.
        Forbidden: the domain may no longer sign in, or the user is deactivated.
    """
    link = find_link(token)
    with sign_in_failures_recorded(link.email, way="link"), transaction.atomic():
        use_link(link)
        sign_in = complete_sign_in(Identity(email=link.email, email_verified=True), device)
    return sign_in, link.return_to if return_to is None else return_address(return_to)


def find_link(token: str) -> Link:
    """Return the link of ``token``, which may be expired or used.

    Raises:
        LinksNotConfigured: magic links are turned off.
        InvalidLink: the link is unknown.
    """
    require_links()
    link = look_at_link(token)
    if link is None:
        with sign_in_failures_recorded(way="link"):
            raise InvalidLink(why="The link is unknown.")
    return link


def look_at_link(token: str) -> Link | None:
    """Return the link of ``token``, for the page that it opens. Nothing is used up or recorded."""
    return MagicLink.objects.filter(digest=digest_of(token)).first()


def use_link(link: Link) -> None:
    """Use ``link`` up. Call it in the transaction that signs in.

    Raises:
        InvalidLink: the link is expired or used.
    """
    # Take this lock first. A sign-in updates all links of its address, so two sign-ins by different links
    # of one address would otherwise deadlock.
    lock_sign_in(link.email)
    moment = now()
    open_links = MagicLink.objects.filter(pk=link.pk, used_at__isnull=True, expires_at__gt=moment)
    if not open_links.update(used_at=moment):
        is_old = link.expires_at <= moment
        raise InvalidLink(why="The link has expired." if is_old else "This or a later link was used before.")


def _send(link: Link, token: str, *, page: str) -> None:
    context = {
        "link": with_parameters(f"{settings.PUBLIC_BASE_URL}{page}", {"t": token}),
        "minutes": settings.MAGIC_LINK_SECONDS // 60,
        "email": link.email,
        "service": settings.PUBLIC_BASE_URL,
    }
    try:
        send_mail(
            to=link.email,
            subject=f"Sign in to {settings.PRODUCT_NAME}",
            template="magic_link",
            context=context,
        )
    except MailNotSent as error:
        link.delete()
        raise LinkNotSent from error
