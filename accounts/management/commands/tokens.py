"""``manage.py tokens``: list and revoke personal access tokens and sessions."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError

from accounts.access.credentials import end_pat, end_refresh_token
from accounts.models import PersonalAccessToken, RefreshToken, User
from accounts.sessions import end_sessions_of
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.timestamps import format_timestamp
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

_ACTOR: Final = "manage.py tokens"


class Command(BaseCommand):
    """Ids and prefixes are shown, never the text of a token, which the service does not know."""

    help = "Lists the active personal access tokens and sessions, and revokes them. Tokens end within 5 s."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="Tokens and sessions, a line each.")
        listing.add_argument("--user", metavar="EMAIL", help="Only tokens and sessions of one user.")
        revoking = actions.add_parser("revoke", help="Revoke one personal access token.")
        revoking.add_argument("id", type=int)
        ending = actions.add_parser("end", help="End one session.")
        ending.add_argument("id", type=int)
        everywhere = actions.add_parser("end-all", help="Sign a user out everywhere. Its PATs stay.")
        everywhere.add_argument("user", metavar="EMAIL")

    def handle(self, *, action: str, **options: Any) -> None:
        match action:
            case "list":
                self._list(options["user"])
            case "revoke":
                pat = PersonalAccessToken.objects.in_force().filter(pk=options["id"]).first()
                self._report(pat is not None and end_pat(pat, actor=_ACTOR))
            case "end":
                session = RefreshToken.objects.in_force().filter(pk=options["id"]).first()
                self._report(session is not None and end_refresh_token(session, actor=_ACTOR))
            case _:
                user = _find_user(options["user"])
                ended = end_sessions_of(user, actor=_ACTOR) or 0
                self.stdout.write(f"{ended} sessions of {user.email} ended.")

    def _list(self, email: str | None) -> None:
        pats = PersonalAccessToken.objects.in_force()
        sessions = RefreshToken.objects.in_force()
        if email is not None:
            user = _find_user(email)
            pats, sessions = pats.filter(owner=user), sessions.filter(user=user)
        for pat in pats.select_related("owner").order_by("owner__email", "pk").iterator():
            reach = ",".join(map(str, [*pat.tenants, *pat.accounts])) or "own"
            self._line("token", pat, pat.owner.email, visible(pat.name), ",".join(sorted(pat.scopes)), reach)
        for session in sessions.select_related("user").order_by("user__email", "pk").iterator():
            self._line("session", session, session.user.email, session.provider or "link", session.address)

    def _line(self, kind: str, row: PersonalAccessToken | RefreshToken, *more: str) -> None:
        times = f"used {_time(row.last_used_at)}", f"until {_time(row.expires_at)}"
        self.stdout.write("\t".join([kind, str(row.pk), f"{row.prefix}…", *more, *times]))

    def _report(self, has_ended: bool) -> None:  # noqa: FBT001
        if not has_ended:
            raise CommandError("There is no active one with this id. manage.py tokens list shows them.")
        self.stdout.write("It has ended.")


def _find_user(email: str) -> User:
    user = User.objects.filter(email=normalize_email(email)).first()
    if user is None:
        raise CommandError(f"There is no user {email}.")
    return user


def _time(moment: dt.datetime | None) -> str:
    return "never" if moment is None else format_timestamp(moment)
