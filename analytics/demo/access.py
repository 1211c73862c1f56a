"""The demo's password and token: ``$VAR_DIR/demo.json``, which only the file's owner can read.

The database stores only their hashes. If the file is missing or belongs to another database, a new password
and a new token are made.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction

from accounts.access.credentials import create_pat, digest_of, end_pat
from accounts.access.scopes import Scope
from accounts.events import record_event
from accounts.models import PersonalAccessToken, User
from accounts.models.events import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from analytics.demo.reading import People

#: The actor of the events.
_ACTOR: Final = "manage.py seed_demo"
FILE_NAME: Final = "demo.json"
PAT_NAME: Final = "Demo"
PAT_SCOPES: Final = (
    Scope.CONFIG_READ,
    Scope.CONFIG_WRITE,
    Scope.LOGS_READ,
    Scope.LOGS_QUERY,
    Scope.LOGS_NOTIFY,
    Scope.ANALYTICS_READ,
    Scope.ANALYTICS_USERS,
    Scope.CACHE_ADMIN,
)


class DemoUsersMissing(Exception):
    """The demo's admin or owner was deleted. The message says what to do."""


def demo_file() -> Path:
    """Return the path of the file."""
    return Path(settings.VAR_DIR) / FILE_NAME


def ensure_access(people: People, tenants: Sequence[tuple[str, str]], *, last_day: date) -> bool:
    """Write the file unless its token is valid in this database. Return True if it was written.

    The file has ``{adminEmail, adminPassword, ownerEmail, pat, tenants: [{tenantId, name}], lastDay}``
    and mode 0600.

    Args:
        people: the admin gets the password, and the owner gets the token.
        tenants: id and name of each.
        last_day: the last day with logs.

    Raises:
        DemoUsersMissing: the admin or the owner was deleted.
        OSError: the folder cannot be written.
    """
    tenants_json = [{"tenantId": tenant_id, "name": name} for tenant_id, name in tenants]
    path = demo_file()
    if _is_valid(_read(path), tenants_json):
        return False
    password = secrets.token_urlsafe(12)
    with transaction.atomic():
        emails = [people.admin.email, people.owner.email]
        users = User.objects.select_for_update().in_bulk(emails, field_name="email")
        if len(users) < 2:
            raise DemoUsersMissing(
                f"{path} is missing or belongs to another database, and the user {' or '.join(emails)} is "
                "deleted. Make an admin with manage.py create_admin, or start again with an empty VAR_DIR."
            )
        admin, owner = (users[email] for email in emails)
        admin.set_password(password)
        admin.save(update_fields=["password"])
        record_event(EventKind.PASSWORD_CHANGED, actor=_ACTOR, subject=admin.email)
        for old in owner.personal_access_tokens.not_revoked().filter(name=PAT_NAME):
            end_pat(old, actor=_ACTOR)
        _, pat = create_pat(
            owner=owner,
            name=PAT_NAME,
            scopes=PAT_SCOPES,
            tenants=[tenant_id for tenant_id, _ in tenants],
            actor=_ACTOR,
        )
        # Write before the commit: if this fails, the database keeps the old password and token.
        _write(
            path,
            {
                "adminEmail": admin.email,
                "adminPassword": password,
                "ownerEmail": owner.email,
                "pat": pat,
                "tenants": tenants_json,
                "lastDay": last_day.isoformat(),
            },
        )
    return True


def note_last_day(last_day: date) -> None:
    """Write the last day with logs into the file, if there is one.

    Raises:
        OSError: the folder cannot be written.
    """
    if content := _read(demo_file()):
        _write(demo_file(), {**content, "lastDay": last_day.isoformat()})


def _is_valid(content: Any, tenants_json: list[dict[str, str]]) -> bool:
    match content:
        case {"adminEmail": str(), "adminPassword": str(), "pat": str(pat), "tenants": tenants}:
            tokens = PersonalAccessToken.objects.not_revoked().filter(digest=digest_of(pat))
            return bool(tenants == tenants_json and tokens.exists())
    return False


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
