"""Seed the demo: users, accounts, tenants, access, and what was made of their logs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.core.files.base import ContentFile
from django.db import transaction
from msgspec.structs import replace

from accounts.access.credentials import create_pat, digest_of, end_pat
from accounts.access.scopes import Scope
from accounts.billing.accounts import create_account
from accounts.events import record_event
from accounts.models import Account, PersonalAccessToken, Tenant, User
from accounts.models.events import EventKind
from accounts.models.tenants import tenant_name_key
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers
from accounts.tenants.lifecycle import create_tenant
from analytics.advice.recommend import queue_mining
from analytics.demo.logs import (
    Demo,
    DemoDataError,
    LogPlan,
    People,
    Person,
    ensure_advice,
    ensure_incidents,
    write_history,
    write_later_day,
)
from analytics.demo.profile import PROFILE_DAYS, Draft, Profile
from analytics.jobs.digests import make_digest
from analytics.replay.runs import queue_replay
from analytics.watch.facts import DigestPeriod
from rules.drafts import create_draft, list_drafts
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.timestamps import from_epoch_ms, now
from tenantadmin.lib.database.connections import advisory_lock
from tenantadmin.lib.objectstore import ObjectNotFound, ObjectStore
from tosapp.publishing import active_terms, publish

if TYPE_CHECKING:
    from accounts.models.billing import Plan


_AGE: Final = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class DemoUsers:
    """A platform admin, an owner and a member of the demo tenants, and a user without access to them."""

    admin: User
    owner: User
    member: User
    stranger: User


def ensure_users(people: People) -> DemoUsers:
    """Create the missing users, without a password. Those in whose name the demo acts have signed in.

    They are older than the logs of the demo.
    """
    return DemoUsers(
        admin=_ensure_user(people.admin, role=PrimaryRole.ADMIN),
        owner=_ensure_user(people.owner, last_login=now()),
        member=_ensure_user(people.member),
        stranger=_ensure_user(people.stranger, last_login=now()),
    )


def ensure_account(name: str, *, owner: User, plan: Plan, actor: User) -> UUID:
    """Create the billing account unless ``owner`` has an account with this name. Return its id."""
    account = Account.objects.live().filter(owners=owner, name=name).first()
    if account is not None:
        return account.pk
    return create_account(
        name=name, owners=[owner.email], plan=plan, billing_email=owner.email, author=Author(actor.email)
    ).account_id


def ensure_terms(markdown: str, *, publisher: User) -> None:
    """Publish the demo's terms of service if none exist. Users must accept them when they sign in.

    Raises:
        StoreError: the object store failed.
    """
    if active_terms().get(fresh=True) is None:
        publish(markdown, actor=publisher.email)


def ensure_tenant(document: Mapping[str, Any], *, account_id: UUID, owner: User, first_day: date) -> UUID:
    """Create a tenant unless the account has a tenant with this name. Return its id.

    The tenant is older than its logs, which begin with ``first_day``.
    """
    name_key = tenant_name_key(document["tenantName"])
    tenant = Tenant.objects.live().filter(account=account_id, name_key=name_key).first()
    if tenant is not None:
        return tenant.pk
    return create_tenant(
        account_id=account_id,
        document=document,
        actor=owner.email,
        owner=owner,
        created_at=from_epoch_ms(Profile.created_at(first_day)),
    ).tenant_id


def _ensure_user(person: Person, **more: Any) -> User:
    user = User.objects.filter(email=person.email).first()
    created_at = now() - _AGE
    return user or User.objects.create_user(
        person.email, display_name=person.name, created_at=created_at, **more
    )


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
    if _is_valid(_read_access(path), tenants_json):
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
    if content := _read_access(demo_file()):
        _write(demo_file(), {**content, "lastDay": last_day.isoformat()})


def _is_valid(content: Any, tenants_json: list[dict[str, str]]) -> bool:
    match content:
        case {"adminEmail": str(), "adminPassword": str(), "pat": str(pat), "tenants": tenants}:
            tokens = PersonalAccessToken.objects.not_revoked().filter(digest=digest_of(pat))
            return bool(tenants == tenants_json and tokens.exists())
    return False


def _read_access(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


RECORD_KEY: Final = "demo/seed.json"

#: Length in days of the replay of a tenant's draft.
_REPLAYED_DAYS: Final = 7
#: The advisory lock that lets only one process seed at a time.
_LOCK: Final = "seed"


class SeedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of the first run, and whether its logs are complete.

    ``tenant_ids`` are in the order of `Demo.profiles`.
    """

    account_id: UUID
    tenant_ids: tuple[UUID, ...]
    first_day: date
    days: int
    complete: bool = False

    @property
    def last_day(self) -> date:
        return self.first_day + timedelta(days=self.days - 1)


@dataclass(frozen=True, slots=True)
class Step:
    """One day of logs was written: the tenant's name, and the number of entries."""

    tenant: str
    entries: int


def seed_demo(
    store: ObjectStore, demo: Demo, *, today: date, days: int = PROFILE_DAYS, share: float = 1.0
) -> Iterator[Step]:
    """Seed the missing data. Yield a `Step` after each day of logs; none if nothing was missing.

    Args:
        store: where the logs are written.
        demo: the data files.
        today: the logs end on the day before (UTC).
        days: the number of days.
        share: the part of the usual number of entries to generate.

    Raises:
        DemoUsersMissing: the demo's admin or owner was deleted, and the file with the token is lost.
        DemoDataError: the demo was seeded with another number of tenants.
        StoreError, OSError: the object store or ``VAR_DIR`` cannot be written.
    """
    with advisory_lock(_LOCK, wait=True):
        record = _read_record(store)
        if record and not Account.objects.filter(pk=record.account_id).exists():
            record = None  # the store is older than the database
        if record and len(record.tenant_ids) != len(demo.profiles):
            raise DemoDataError(
                f"The demo was seeded with {len(record.tenant_ids)} tenants, but the data files now describe "
                f"{len(demo.profiles)}. Start again with an empty VAR_DIR."
            )
        if record is None or not record.complete:
            record = _seed_documents(record, demo, first_day=today - timedelta(days=days), days=days)
            _write_record(store, record)
            for tenant_id, profile in zip(record.tenant_ids, demo.profiles, strict=True):
                entries = round(profile.entries * share * days / PROFILE_DAYS)
                plan = LogPlan(profile, tenant_id, record.first_day, record.days, entries)
                yield from _seed_tenant(store, plan, actor=demo.people.owner.email)
            ensure_incidents(
                store,
                demo,
                account_id=record.account_id,
                first_day=record.first_day,
                last_day=record.last_day,
            )
            record = replace(record, complete=True)
            _write_record(store, record)
        tenants = [
            (str(tenant_id), profile.name)
            for tenant_id, profile in zip(record.tenant_ids, demo.profiles, strict=True)
        ]
        ensure_access(demo.people, tenants, last_day=record.last_day)


def continue_demo(store: ObjectStore, demo: Demo, *, today: date, share: float = 1.0) -> Iterator[Step]:
    """Write the missing days up to yesterday of a complete demo. Yield a `Step` after each day of a tenant.

    Raises:
        StoreError, OSError: the object store or ``VAR_DIR`` cannot be written.
    """
    with advisory_lock(_LOCK, wait=True):
        record = _read_record(store)
        while record and record.complete and record.last_day < today - timedelta(days=1):
            record = replace(record, days=record.days + 1)
            for tenant_id, profile in zip(record.tenant_ids, demo.profiles, strict=True):
                entries = write_later_day(
                    store, profile, tenant_id=tenant_id, day=record.last_day, share=share
                )
                yield Step(profile.name, entries)
            _write_record(store, record)
            note_last_day(record.last_day)


def make_last_digests(store: ObjectStore) -> None:
    """Make the digests of the demo's last day. In the hour after midnight the service would still wait.

    Raises:
        StoreError, duckdb.Error: the log cannot be read.
    """
    record = _read_record(store)
    if record is not None:
        for tenant_id in record.tenant_ids:
            make_digest(store, tenant=tenant_id, period=DigestPeriod.of_day(record.last_day), wait=True)


def _seed_documents(record: SeedRecord | None, demo: Demo, *, first_day: date, days: int) -> SeedRecord:
    """Create users, accounts and tenants. Return ``record`` if it fits the tenants, or a new one."""
    users = ensure_users(demo.people)
    ensure_terms(demo.terms, publisher=users.admin)
    owner, stranger = demo.people.owner, demo.people.stranger
    account_id = ensure_account(owner.account, owner=users.owner, plan=owner.plan, actor=users.admin)
    other_id = ensure_account(stranger.account, owner=users.stranger, plan=stranger.plan, actor=users.admin)
    begins = first_day if record is None else record.first_day
    ensure_tenant(
        {"tenantName": stranger.tenant}, account_id=other_id, owner=users.stranger, first_day=begins
    )
    tenant_ids = tuple(
        ensure_tenant(profile.first_config, account_id=account_id, owner=users.owner, first_day=begins)
        for profile in demo.profiles
    )
    held = set(users.member.memberships.values_list("tenant_id", flat=True))
    author, role = Author(users.owner.email), MembershipRole.MEMBER
    change_readers(author, *(SetMembership(users.member, key, role) for key in tenant_ids if key not in held))
    if record is not None and record.tenant_ids == tenant_ids:
        return record
    return SeedRecord(account_id=account_id, tenant_ids=tenant_ids, first_day=first_day, days=days)


def _seed_tenant(store: ObjectStore, plan: LogPlan, *, actor: str) -> Iterator[Step]:
    for entries in write_history(store, plan, actor=actor):
        yield Step(plan.profile.name, entries)
    ensure_advice(store, plan, actor=actor)
    if plan.profile.draft is not None:
        _ensure_replay(plan, plan.profile.draft, actor=actor)
    # When the logs are compacted, a worker runs the search and measures accepted recommendations.
    queue_mining(tenant_id=plan.tenant_id, actor=actor)


def _ensure_replay(plan: LogPlan, draft: Draft, *, actor: str) -> None:
    """Create the draft of a tenant unless it has one, and queue its replay over the last days.

    A worker runs the replay when the logs are compacted.
    """
    drafts = list_drafts(plan.tenant_id)
    if not drafts:
        rules = [*read_ruleset(plan.tenant_id).rules, draft.rule]
        document = {"name": draft.name, "rules": rules}
        drafts = [create_draft(tenant_id=plan.tenant_id, document=document, actor=actor)]
    queue_replay(
        tenant_id=plan.tenant_id,
        draft_id=drafts[-1].pk,
        first_day=plan.last_day - timedelta(days=min(plan.days, _REPLAYED_DAYS) - 1),
        last_day=plan.last_day,
        warmup_days=1,
        gateway={},
        actor=actor,
    )


def _read_record(store: ObjectStore) -> SeedRecord | None:
    try:
        with store.open(RECORD_KEY) as file:
            return msgspec.json.decode(file.read(), type=SeedRecord)
    except ObjectNotFound:
        return None


def _write_record(store: ObjectStore, record: SeedRecord) -> None:
    store.save(RECORD_KEY, ContentFile(msgspec.json.encode(record)))
