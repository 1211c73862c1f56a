"""Actions on users and domains on the admin site. They call the same functions as the API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Count

from accounts.billing.domains import verify_domain
from accounts.events import record_event
from accounts.mailing import send_mail
from accounts.models import Domain, User
from accounts.models.events import EventKind
from accounts.models.users import PrimaryRole
from accounts.readers.rule import Author
from accounts.readers.users import set_support
from accounts.roles import has_other_active_admin, lock_admins, replace_roles, wildcard_tokens
from accounts.sessions import end_sessions_of
from accounts.signin.flow import unlink_identity
from accounts.signin.staff.enrolment import LINK_HOURS, enrolment_link
from accounts.signin.staff.sessions import reset_second_factor, second_factors
from accounts.users import delete_user, sole_ownerships
from tenantadmin.lib.http.admin_actions import ConfirmedAction, with_confirmation

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

_MAX_NAMES: Final = 10


def _demote(request: HttpRequest, user: User) -> None:
    replace_roles(user.email, primary=PrimaryRole.USER, scopes=None, author=Author.on_site(request.user))


def _deactivate(request: HttpRequest, user: User) -> None:
    replace_roles(user.email, primary=None, scopes=None, active=False, author=Author.on_site(request.user))


def _activate(request: HttpRequest, user: User) -> None:
    replace_roles(user.email, primary=None, scopes=None, active=True, author=Author.on_site(request.user))


def _delete(request: HttpRequest, user: User) -> None:
    delete_user(user.email, author=Author.on_site(request.user))


def _make_support(request: HttpRequest, user: User) -> bool:
    return set_support(user, is_support=True, author=Author.on_site(request.user))


def _end_support(request: HttpRequest, user: User) -> bool:
    return set_support(user, is_support=False, author=Author.on_site(request.user))


def _no_demotion(_request: HttpRequest, user: User) -> str:
    return "Is no platform admin" if user.role != PrimaryRole.ADMIN else _is_last_admin(user)


def _no_deactivation(_request: HttpRequest, user: User) -> str:
    return _is_last_admin(user) if user.is_active else "Is deactivated already"


def _warn_of_deactivation(request: HttpRequest, user: User) -> list[str]:
    return [*_warn_of_admin(request, user), *_warn_of_ownerships(user)]


def _no_deletion(request: HttpRequest, user: User) -> str:
    if user.pk == request.user.pk:
        return "This is you, whom the log of this site names: ask another platform admin"
    return _is_last_admin(user)


def _warn_of_deletion(request: HttpRequest, user: User) -> list[str]:
    counts = User.objects.filter(pk=user.pk).aggregate(
        Memberships=Count("memberships", distinct=True),
        tokens=Count("personal_access_tokens", distinct=True),
        grants=Count("grants", distinct=True),
    )
    return [
        *_warn_of_admin(request, user),
        *_warn_of_ownerships(user),
        ", ".join(f"{what}: {number}" for what, number in counts.items()) + " are deleted too.",
    ]


def _is_last_admin(user: User) -> str:
    is_last = user.is_platform_admin and not has_other_active_admin(user)
    return "Is the last active platform admin" if is_last else ""


def _warn_of_admin(request: HttpRequest, user: User) -> list[str]:
    """Return warnings about what else ends if ``user`` loses the role of an active platform admin."""
    if not user.is_platform_admin:
        return []
    tokens = [f"{token.name} ({token})" for token in wildcard_tokens(user)]
    return [
        *(["This is you: you leave this site at once."] if user.pk == request.user.pk else []),
        *(
            [f"These personal access tokens with a wildcard end for good: {_join_names(tokens)}."]
            if tokens
            else []
        ),
    ]


def _warn_of_ownerships(user: User) -> list[str]:
    names = sole_ownerships(user)
    return [f"This user is the only owner of {_join_names(names)}."] if names else []


def _end_sessions(request: HttpRequest, user: User) -> bool:
    return end_sessions_of(user, actor=str(request.user)) is not None


def _warn_of_sessions(request: HttpRequest, user: User) -> list[str]:
    """Return how many sessions end. Those of the admin site are in no list: they end with the epoch."""
    number = user.refresh_tokens.in_force().count()
    return [
        *(["This is you: you leave this site at once."] if user.pk == request.user.pk else []),
        f"Sessions on the dashboard and in the API: {number or 'none'}.",
        *(["Sessions of this site end too."] if user.is_staff else []),
    ]


def _no_reset(request: HttpRequest, user: User) -> str:
    if user.pk == request.user.pk:
        return "This is you: another platform admin resets it"
    return "" if second_factors(user) else "Has no second factor"


def _invite(request: HttpRequest, user: User) -> None:
    record_event(
        EventKind.STAFF_ACTED,
        actor=str(request.user),
        subject=user.email,
        after={"act": "second-factor.invited"},
    )
    context = {
        "inviter": str(request.user),
        "link": enrolment_link(user),
        "hours": LINK_HOURS,
        "service": settings.PUBLIC_BASE_URL,
    }
    send_mail(to=user.email, subject="Add a second factor", template="second_factor", context=context)


def _no_invitation(request: HttpRequest, user: User) -> str:
    if not settings.MAGIC_LINKS_ENABLED:  # without a mail server
        return "No mail server is configured: manage.py create_admin prints a link"
    if user.pk == request.user.pk:
        return "This is you: another platform admin invites you"
    if not user.is_staff:
        return "Is neither platform admin nor support"
    return "Has a second factor" if second_factors(user) else ""


def _verify(request: HttpRequest, domain: Domain) -> None:
    verify_domain(
        account_id=domain.account_id,
        name=domain.name,
        by_hand=True,
        may_verify_by_hand=True,
        actor=str(request.user),
    )


def _others(domain: Domain) -> QuerySet[Domain]:
    return Domain.objects.filter(name=domain.name).exclude(pk=domain.pk).select_related("account")


def _no_verification(_request: HttpRequest, domain: Domain) -> str:
    if domain.verified_at is not None:
        return "Is verified already"
    taken = _others(domain).filter(verified_at__isnull=False).first()
    return f"Is verified for the account {taken.account.name}" if taken else ""


def _warn_of_verification(_request: HttpRequest, domain: Domain) -> list[str]:
    others = [other.account.name for other in _others(domain)]
    return [
        f"Goes to the account {domain.account.name} ({domain.account_id}).",
        *([f"Also registered by {_join_names(others)}."] if others else []),
    ]


def _join_names(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _MAX_NAMES
    return ", ".join(listed[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


_OF_USERS: Final = (
    ConfirmedAction(
        name="demote",
        title="Demote to user",
        done="Demoted to user",
        effect="The platform admin will become a user. Issued tokens lose the role within five seconds. "
        "Personal access tokens with a wildcard will be revoked.",
        lock=lock_admins,
        do=_demote,
        refusal=_no_demotion,
        warn=_warn_of_admin,
    ),
    ConfirmedAction(
        name="make_support",
        title="Make support",
        done="Made support",
        effect="As support, the user will be able to read everything on this site but logs, invalidate "
        "cached results and rebuild days. The role gives no rights in the API.",
        do=_make_support,
        refusal=lambda _, user: "Is support already" if user.is_support else "",
    ),
    ConfirmedAction(
        name="end_support",
        title="End support",
        done="Support ended",
        effect="The user will no longer be able to use this site.",
        do=_end_support,
        refusal=lambda _, user: "" if user.is_support else "Is not support",
    ),
    ConfirmedAction(
        name="deactivate",
        title="Deactivate",
        done="Deactivated",
        effect="The user will no longer be able to sign in, and tokens stop working within five seconds. "
        "Sessions, sign-in links and personal access tokens with a wildcard will end for good. Other "
        "personal access tokens work again once the user is activated.",
        lock=lock_admins,
        do=_deactivate,
        refusal=_no_deactivation,
        warn=_warn_of_deactivation,
    ),
    ConfirmedAction(
        name="activate",
        title="Activate",
        done="Activated",
        effect="The user will be able to sign in again. Personal access tokens that have neither "
        "expired nor been revoked work again; earlier sessions do not.",
        lock=lock_admins,
        do=_activate,
        refusal=lambda _, user: "Is active already" if user.is_active else "",
    ),
    ConfirmedAction(
        name="reset_second_factor",
        title="Reset second factor",
        done="Second factor reset",
        effect="Passkeys, authenticator app and recovery codes will be removed. Invite the user then "
        "to add a new one. Make sure that the request comes from the user.",
        do=lambda request, user: reset_second_factor(user, actor=str(request.user)),
        refusal=_no_reset,
    ),
    ConfirmedAction(
        name="end_sessions",
        title="End all sessions",
        done="All sessions ended",
        effect="The user will be signed out of the dashboard, the API and this site, within five "
        "seconds. Open sign-in links end too. The user can sign in again, and personal access "
        "tokens stay.",
        do=_end_sessions,
        refusal=lambda _, user: "" if user.is_active else "Is deactivated, so no session is left",
        warn=_warn_of_sessions,
    ),
    ConfirmedAction(
        name="invite_second_factor",
        title="Invite to add a second factor",
        done="Invited to add a second factor",
        effect="A link will be mailed to the user, who can add a first second factor with it: once, "
        f"within {LINK_HOURS} hours. Make sure that the mailbox is the user's.",
        do=_invite,
        refusal=_no_invitation,
    ),
    ConfirmedAction(
        name="unlink",
        title="Unlink identity provider",
        done="Identity provider unlinked",
        effect="The next identity provider that proves the user's address will be linked. Make sure "
        "that the request comes from the user.",
        do=lambda request, user: unlink_identity(user, actor=str(request.user)),
        refusal=lambda _, user: "" if user.identity_subject else "No identity provider is linked",
        warn=lambda _, user: [f"Signs in through {user.identity_provider}."],
    ),
    ConfirmedAction(
        name="delete",
        title="Delete",
        done="Deleted",
        effect="The user will be gone, and cannot be restored. The history of documents keeps the email.",
        do=_delete,
        refusal=_no_deletion,
        warn=_warn_of_deletion,
        deletes=True,
    ),
)
_OF_DOMAINS: Final = (
    ConfirmedAction(
        name="verify",
        title="Verify by hand",
        done="Verified by hand",
        effect="The account's tenants will be able to claim every FQDN in the domain, and no other "
        "account can verify it, though the DNS does not prove who controls it.",
        do=_verify,
        refusal=_no_verification,
        warn=_warn_of_verification,
    ),
)
USER_ACTIONS: Final = tuple(map(with_confirmation, _OF_USERS))
DOMAIN_ACTIONS: Final = tuple(map(with_confirmation, _OF_DOMAINS))
