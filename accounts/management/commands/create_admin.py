"""``manage.py create_admin EMAIL``: the first platform admin, or one more."""

from __future__ import annotations

import getpass
import secrets
import sys
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.events import record_event
from accounts.models import User
from accounts.models.events import EventKind
from accounts.models.users import PrimaryRole
from accounts.readers.rule import Author
from accounts.roles import apply_roles, lock_admins, make_roles
from accounts.signin.staff.enrolment import LINK_HOURS, enrolment_link
from accounts.signin.staff.sessions import second_factors
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

_ACTOR: Final = "manage.py create_admin"


class Command(BaseCommand):
    """Makes a user a platform admin with a password for the admin site. Running it again changes nothing."""

    help = (
        "Make EMAIL an active platform admin. The password is for the admin site: asked for at a terminal "
        "(empty: one is generated), read with --password-stdin, or generated and printed. An existing "
        "password stays unless a new one is given."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--password-stdin", action="store_true", help="Read the password from stdin.")

    def handle(self, *, email: str, password_stdin: bool, **options: Any) -> None:  # noqa: ARG002
        try:
            address = check_email(email)
        except ValueError as error:
            raise CommandError(str(error)) from error
        has_password = any(
            user.has_usable_password() for user in User.objects.filter(email=address).only("password")
        )
        password = _given_password(from_stdin=password_stdin, ask=not has_password)
        generated = not password and not has_password
        if generated:
            password = secrets.token_urlsafe(18)
        elif password:
            _check_password(password, address)
        created = _make_admin(address, password)
        self.stdout.write(f"{address} is {'a new' if created else 'a'} platform admin.")
        if generated:
            self.stdout.write(f"Password for the admin site: {password}")
        user = User.objects.get(email=address)
        if settings.STAFF_SECOND_FACTOR and not second_factors(user):
            self.stdout.write(f"To add a second factor, once, within {LINK_HOURS} h: {enrolment_link(user)}")


def _given_password(*, from_stdin: bool, ask: bool) -> str:
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
        if not password:
            raise CommandError("--password-stdin: there is no password on stdin.")
        return password
    if not ask or not sys.stdin.isatty():
        return ""
    password = getpass.getpass("Password for the admin site (empty: generate one): ")
    if password and getpass.getpass("Again: ") != password:
        raise CommandError("The two passwords differ.")
    return password


def _check_password(password: str, address: str) -> None:
    try:
        validate_password(password, User(email=address))
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error


@transaction.atomic
def _make_admin(address: str, password: str) -> bool:
    """Return whether the user is new."""
    lock_admins()
    user = User.objects.select_for_update(no_key=True).filter(email=address).first()
    created = user is None
    user = user or User(email=address)
    if created:
        user.set_unusable_password()
        user.save()
        record_event(EventKind.USER_CREATED, actor=_ACTOR, subject=address)
    roles = make_roles(PrimaryRole.ADMIN, user.scopes)
    apply_roles(user, roles=roles, active=True, author=Author(_ACTOR), path="")
    user.modified_at = now()
    if password:
        user.set_password(password)
        record_event(EventKind.PASSWORD_CHANGED, actor=_ACTOR, subject=address)
    user.save(update_fields=["password", "modified_at"])
    return created
