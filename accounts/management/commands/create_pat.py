"""``manage.py create_pat``: a personal access token for a script or the Gateway; its text alone on stdout."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.access.credentials import default_expiry
from accounts.access.principal import WILDCARD
from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.models import User
from accounts.pats import PatRequest, require_grantable, store_pat
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    """Prints the token alone on stdout, so that a shell may take it: ``PAT=$(manage.py create_pat …)``."""

    help = "Make a personal access token. Its text goes to stdout, once; only its digest is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        several: dict[str, Any] = {"action": "extend", "nargs": "+", "default": []}
        parser.add_argument("--owner", required=True, metavar="EMAIL", help="An existing active user.")
        parser.add_argument(
            "--scope", required=True, choices=sorted(Scope), **{**several, "default": None}, dest="scopes"
        )
        parser.add_argument("--tenant", metavar="ID", dest="tenants", help="A tenant id, or '*'.", **several)
        parser.add_argument(
            "--account", metavar="ID", dest="accounts", help="An account id, or '*'.", **several
        )
        parser.add_argument("--expires-days", type=int, metavar="N", help="Default: PAT_DEFAULT_DAYS.")
        parser.add_argument("--name", default="create_pat", help="What the list of tokens calls it.")

    def handle(
        self,
        *,
        owner: str,
        scopes: list[str],
        tenants: list[str],
        accounts: list[str],
        expires_days: int | None,
        name: str,
        **options: Any,  # noqa: ARG002
    ) -> None:
        user = User.objects.filter(email=normalize_email(owner), is_active=True).first()
        if user is None:
            raise CommandError(
                f"There is no active user {owner}. Make one first: manage.py create_admin EMAIL"
            )
        wanted = PatRequest(
            name=name[:100],
            scopes=frozenset(Scope(scope) for scope in scopes),
            tenants=_ids("--tenant", tenants),
            accounts=_ids("--account", accounts),
            expires_at=_expiry(expires_days),
        )
        try:
            require_grantable(rights_of(user), wanted)
            _, text = store_pat(user, wanted, actor="manage.py create_pat")
        except ApiError as error:
            reasons = " ".join(detail.message for detail in error.details) or error.text
            raise CommandError(reasons) from error
        if not wanted.tenants and not wanted.accounts:
            self.stderr.write(
                "This token names no tenant and no account, so it covers only what is its owner's own. "
                "To cover more, create another token with --tenant or --account."
            )
        self.stdout.write(text)


def _ids(option: str, names: Iterable[str]) -> tuple[str, ...]:
    given = list(dict.fromkeys(names))
    if given == [WILDCARD]:
        return (WILDCARD,)
    if WILDCARD in given:
        raise CommandError(f"{option}: '*' cannot be combined with ids.")
    try:
        return tuple(str(UUID(name)) for name in given)
    except ValueError as error:
        raise CommandError(f"{option} takes a UUID or '*'.") from error


def _expiry(days: int | None) -> dt.datetime:
    if days is None:
        return default_expiry()
    if not 1 <= days <= settings.PAT_MAX_DAYS:
        raise CommandError(f"--expires-days is a number from 1 to {settings.PAT_MAX_DAYS}.")
    return now() + dt.timedelta(days=days)
