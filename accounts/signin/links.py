"""Passwordless sign-in by an emailed one-time link. Contract: Discovery and sign-in, Limits.

Known and unknown addresses are treated alike to the last step: a link is stored and mailed, and the user is
looked up when it is used.
"""

from __future__ import annotations

import datetime as dt
import logging
import secrets
import smtplib
from typing import TYPE_CHECKING, ClassVar, Final

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import transaction
from django.template.loader import render_to_string

from accounts.access.credentials import digest_of
from accounts.models import MagicLink
from accounts.signin.flow import Identity, SignIn, complete_sign_in, require_permitted, wait_for_turn
from accounts.signin.limits import spend
from accounts.signin.redirects import with_parameters
from accounts.signin.settings import return_address
from tenantadmin.core.errors import ApiError, Unauthorized
from tenantadmin.core.timestamps import now

if TYPE_CHECKING:
    from accounts.models.signin import MagicLink as Link

logger = logging.getLogger(__name__)
#: Links that ended this long ago are forgotten.
_KEPT: Final = dt.timedelta(days=1)


class LinksNotConfigured(ApiError):
    """No mail server is named, so no link can be sent."""

    status: ClassVar[int] = 503
    code: ClassVar[str] = "identity_provider_unavailable"
    message: ClassVar[str] = "Signing in by email is not configured."


class LinkNotSent(ApiError):
    """The mail server refused the message or did not answer."""

    status: ClassVar[int] = 502
    code: ClassVar[str] = "identity_provider_error"
    message: ClassVar[str] = "The sign-in link could not be sent. Try again later."


class InvalidLink(Unauthorized):
    """An unknown, expired or used link; which of them is not told."""

    message: ClassVar[str] = "The link is invalid, expired or already used. Ask for a new one."


def require_links() -> None:
    """Refuse where magic links are turned off.

    Raises:
        LinksNotConfigured: so they are.
    """
    if not settings.MAGIC_LINKS_ENABLED:
        raise LinksNotConfigured


def request_link(*, email: str, redirect: str, address: str) -> None:
    """Mail a one-time link to a normalized ``email``; ``address`` is the client's network address.

    Raises:
        LinksNotConfigured: no mail server is named.
        Forbidden: the domain may not sign in.
        RateLimited: too many links for the email or from the address.
        InternalError: a limit cannot be applied.
        LinkNotSent: the mail server failed; the link does not stand.
    """
    require_links()
    require_permitted(email)
    spend(limit=settings.MAGIC_LINK_ADDRESS_LIMIT, kind="link-address", key=address)
    spend(limit=settings.MAGIC_LINK_EMAIL_LIMIT, kind="link-email", key=email)
    token = secrets.token_urlsafe(32)
    moment = now()
    MagicLink.objects.filter(expires_at__lt=moment - _KEPT).delete()
    link = MagicLink.objects.create(
        digest=digest_of(token),
        email=email,
        return_to=return_address(redirect),
        created_at=moment,
        expires_at=moment + dt.timedelta(seconds=settings.MAGIC_LINK_SECONDS),
    )
    _send(link, token)


def verify_link(*, token: str, return_to: str | None) -> tuple[SignIn, str]:
    """Sign in by a link, once; returns the tokens and where to go: ``return_to``, else what was asked for.

    Of two who verify at the same moment exactly one signs in.

    Raises:
        LinksNotConfigured: magic links are turned off.
        InvalidLink: the link is unknown, expired or used.
        Forbidden: the domain may no longer sign in, or the user is deactivated.
    """
    require_links()
    moment = now()
    link = MagicLink.objects.filter(digest=digest_of(token)).first()
    if link is None:
        raise InvalidLink
    with transaction.atomic():
        # First of all: a sign-in ends the other links of the address, which another one may be holding.
        wait_for_turn(link.email)
        open_links = MagicLink.objects.filter(pk=link.pk, used_at__isnull=True, expires_at__gt=moment)
        if not open_links.update(used_at=moment):
            raise InvalidLink
        sign_in = complete_sign_in(Identity(email=link.email, email_verified=True))
    return sign_in, link.return_to if return_to is None else return_address(return_to)


def _send(link: Link, token: str) -> None:
    context = {
        "link": with_parameters(f"{settings.PUBLIC_BASE_URL}/auth/magic-link/verify", {"t": token}),
        "minutes": settings.MAGIC_LINK_SECONDS // 60,
        "service": settings.PUBLIC_BASE_URL,
    }
    message = EmailMultiAlternatives(
        subject="Your sign-in link",
        body=render_to_string("mail/magic_link.txt", context),
        to=[link.email],
    )
    message.attach_alternative(render_to_string("mail/magic_link.html", context), "text/html")
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as error:
        logger.exception("The sign-in link could not be mailed")
        link.delete()
        raise LinkNotSent from error
