"""``manage.py reset_second_factor EMAIL``: the way in for a platform admin who has lost every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from accounts.signin.staff.enrolment import LINK_HOURS, enrolment_link
from accounts.signin.staff.sessions import reset_second_factor
from tenantadmin.lib.core.emails import normalize_email

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

#: The actor of the event.
_ACTOR: Final = "manage.py reset_second_factor"


class Command(BaseCommand):
    """Removes a user's second factors, so that the next sign-in to the admin site asks for a new one."""

    help = (
        "Remove the passkeys, authenticator app and recovery codes of EMAIL. Use it if no other platform "
        "admin can do so on the admin site. The reason is recorded."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--reason", required=True, help="Why, for the record of events.")

    def handle(self, *, email: str, reason: str, **options: Any) -> None:  # noqa: ARG002
        user = User.objects.filter(email=normalize_email(email)).first()
        if user is None:
            raise CommandError(f"There is no user {email}.")
        if not reset_second_factor(user, actor=_ACTOR, reason=reason):
            raise CommandError(f"{user.email} has no second factor.")
        self.stdout.write(f"The second factor of {user.email} is reset.")
        self.stdout.write(f"To add a new one, once, within {LINK_HOURS} h: {enrolment_link(user)}")
