"""Seed the demo once. If it is killed at any point, the next run completes it.

The first run stores its choices (the days, the tenants) in the object store under `RECORD_KEY`. Another run
completes the same logs. If they are complete, it does not change what users have made of the demo.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import orjson
from django.core.files.base import ContentFile
from django.db import connection

from accounts.models import Account
from analytics.advice.mining import queue_mining
from analytics.demo.access import ensure_access
from analytics.demo.advice import DemoAdvice
from analytics.demo.generate import SEED
from analytics.demo.incidents import ensure_incidents
from analytics.demo.markers import ensure_markers
from analytics.demo.people import (
    ensure_account,
    ensure_strangers_tenant,
    ensure_tenant,
    ensure_terms,
    ensure_users,
    publish_rules,
)
from analytics.demo.profile import PROFILE_DAYS
from analytics.demo.reading import DemoDataError
from analytics.demo.writer import LogPlan, write_logs
from analytics.replay.runs import queue_replay
from logs.layout import day_start_ms
from rules.drafts import create_draft, list_drafts
from rules.ruleset import read_ruleset
from tenantadmin.lib.objectstore import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.demo.profile import Draft, Profile
    from analytics.demo.reading import Demo, Person
    from tenantadmin.lib.objectstore import ObjectStore

RECORD_KEY: Final = "demo/seed.json"

#: The draft of a tenant is replayed over so many days.
_REPLAYED_DAYS: Final = 7
#: The key of the advisory lock that lets only one process seed at a time.
_LOCK: Final = 0x53454544


@dataclass(frozen=True, slots=True)
class SeedRecord:
    """The choices of the first run, and whether its logs are complete.

    ``tenant_ids`` and ``entries`` (numbers of log entries) are in the order of `Demo.profiles`.
    """

    account_id: str
    tenant_ids: tuple[str, ...]
    first_day: str
    days: int
    entries: tuple[int, ...]
    seed: int
    complete: bool = False

    @property
    def last_day(self) -> date:
        return date.fromisoformat(self.first_day) + timedelta(days=self.days - 1)


@dataclass(frozen=True, slots=True)
class Step:
    """One day of logs was written: the tenant's name, and the number of entries."""

    tenant: str
    entries: int


def seed_demo(
    store: ObjectStore, demo: Demo, *, today: date, days: int = PROFILE_DAYS, share: float = 1.0
) -> Iterator[Step]:
    """Seed what is missing. Yield a `Step` after each day of logs; none if nothing was missing.

    Args:
        store: where the logs are written.
        demo: the data files.
        today: the logs are those of the days before (UTC).
        days: the number of days.
        share: the part of the usual number of entries to generate.

    Raises:
        DemoUsersMissing: the demo's admin or owner was deleted, and the file with the token is lost.
        DemoDataError: it was seeded with another number of tenants.
        StoreError, OSError: the object store or ``VAR_DIR`` cannot be written.
    """
    with _seed_lock():
        record = _read_record(store)
        if record and not Account.objects.filter(pk=record.account_id).exists():
            record = None  # the store is older than the database
        if record and len(record.tenant_ids) != len(demo.profiles):
            raise DemoDataError(
                f"The demo was seeded with {len(record.tenant_ids)} tenants, but the data files now describe "
                f"{len(demo.profiles)}. Start again with an empty VAR_DIR."
            )
        if record is None or not record.complete:
            record = _seed_documents(record, demo, today=today, days=days, share=share)
            _write_record(store, record)
            yield from _seed_logs(store, record, demo.profiles, owner=demo.people.owner)
            ensure_incidents(
                store,
                demo,
                account_id=UUID(record.account_id),
                first_day=date.fromisoformat(record.first_day),
                last_day=record.last_day,
            )
            record = replace(record, complete=True)
            _write_record(store, record)
        names = [profile.name for profile in demo.profiles]
        ensure_access(demo.people, list(zip(record.tenant_ids, names, strict=True)), last_day=record.last_day)


def _seed_documents(
    record: SeedRecord | None, demo: Demo, *, today: date, days: int, share: float
) -> SeedRecord:
    """Create users, accounts and tenants. Return ``record`` if it fits the tenants, or a new one."""
    users = ensure_users(demo.people)
    ensure_terms(demo.terms, publisher=users.admin)
    owner, stranger = demo.people.owner, demo.people.stranger
    account_id = ensure_account(owner.account, owner=users.owner, plan=owner.plan, actor=users.admin)
    other_id = ensure_account(stranger.account, owner=users.stranger, plan=stranger.plan, actor=users.admin)
    first_day = today - timedelta(days=days) if record is None else date.fromisoformat(record.first_day)
    ensure_strangers_tenant(stranger.tenant, account_id=other_id, users=users, first_day=first_day)
    tenant_ids = tuple(
        str(ensure_tenant(profile, account_id=account_id, users=users, first_day=first_day))
        for profile in demo.profiles
    )
    if record is not None and record.tenant_ids == tenant_ids:
        return record
    return SeedRecord(
        account_id=str(account_id),
        tenant_ids=tenant_ids,
        first_day=(today - timedelta(days=days)).isoformat(),
        days=days,
        entries=tuple(round(profile.entries * share * days / PROFILE_DAYS) for profile in demo.profiles),
        seed=SEED,
    )


def _seed_logs(
    store: ObjectStore, record: SeedRecord, profiles: tuple[Profile, ...], *, owner: Person
) -> Iterator[Step]:
    for tenant_id, entries, profile in zip(record.tenant_ids, record.entries, profiles, strict=True):
        plan = LogPlan(
            profile=profile,
            tenant_id=UUID(tenant_id),
            first_day=date.fromisoformat(record.first_day),
            days=record.days,
            seed=record.seed,
            entries=entries,
        )
        markers = []
        advice = DemoAdvice(plan)
        for offset, day in enumerate(write_logs(store, plan)):
            markers += day.markers
            advice.keep(offset, day.rows)
            yield Step(profile.name, len(day.rows))
        ensure_markers(plan.tenant_id, markers)
        end = day_start_ms(record.last_day + timedelta(days=1))
        for publication in profile.publications(plan.first_day):
            if publication.at < end:
                publish_rules(plan.tenant_id, publication, actor=owner.email)
        advice.ensure(actor=owner.email)
        if profile.draft is not None:
            _ensure_replay(plan, profile.draft, actor=owner.email)
        # A worker searches when the logs are compacted, and then measures what was accepted.
        queue_mining(tenant_id=plan.tenant_id, actor=owner.email)


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
            content: dict[str, Any] = orjson.loads(file.read())
    except ObjectNotFound:
        return None
    lists = {name: tuple(content[name]) for name in ("tenant_ids", "entries")}
    return SeedRecord(**{**content, **lists})


def _write_record(store: ObjectStore, record: SeedRecord) -> None:
    store.save(RECORD_KEY, ContentFile(orjson.dumps(asdict(record), option=orjson.OPT_INDENT_2)))


@contextmanager
def _seed_lock() -> Iterator[None]:
    """Wait until no other process seeds this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
