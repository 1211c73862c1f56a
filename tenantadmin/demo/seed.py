"""Seeds the demo once. Killed anywhere and started again, it ends in the same state.

What was decided at the beginning (the days, the tenants) is kept beside the logs, under `RECORD_KEY` in the
object store: another run completes that and, where it is complete, leaves everything as its users made it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import orjson
from django.db import connection

from accounts.models import Account
from accounts.models.billing import Plan
from tenantadmin.demo.access import ensure_access
from tenantadmin.demo.generate import SEED
from tenantadmin.demo.markers import ensure_markers
from tenantadmin.demo.people import (
    ensure_account,
    ensure_cast,
    ensure_strangers_tenant,
    ensure_tenant,
    ensure_terms,
)
from tenantadmin.demo.product import PRODUCT
from tenantadmin.demo.profile import PROFILE_DAYS
from tenantadmin.demo.retail import RETAIL
from tenantadmin.demo.writer import LogPlan, write_logs
from tenantadmin.objectstore import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenantadmin.objectstore import ObjectStore

RECORD_KEY: Final = "demo/seed.json"
PROFILES: Final = (RETAIL, PRODUCT)

#: The key of the advisory lock under which one process at a time seeds.
_LOCK: Final = 0x53454544


@dataclass(frozen=True, slots=True)
class SeedRecord:
    """What a run decided and how far it came. ``tenant_ids`` and ``entries`` (how many each gets) are
    in the order of `PROFILES`.
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

    @property
    def tenants(self) -> list[tuple[str, str]]:
        """Id and name of each demo tenant."""
        return [
            (tenant_id, profile.name) for tenant_id, profile in zip(self.tenant_ids, PROFILES, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Step:
    """One day of logs written: of which tenant, how many entries."""

    tenant: str
    entries: int


def seed_demo(
    store: ObjectStore, *, today: date, days: int = PROFILE_DAYS, share: float = 1.0
) -> Iterator[Step]:
    """Seed what is missing, with logs of the ``days`` days before ``today`` (UTC); yields while writing them.

    ``share`` of the usual number of entries. Nothing is yielded where nothing was missing.

    Raises:
        DemoGone: what the demo is opened with was removed since.
        StoreError, OSError: the object store or ``VAR_DIR`` cannot be written.
    """
    with _alone():
        record = _read_record(store)
        if record and not Account.objects.filter(pk=record.account_id).exists():
            record = None  # the store is older than the database
        if record is None or not record.complete:
            record = _seed_documents(record, today=today, days=days, share=share)
            _write_record(store, record)
            yield from _seed_logs(store, record)
            record = replace(record, complete=True)
            _write_record(store, record)
        ensure_access(record.tenants, last_day=record.last_day)


def _seed_documents(started: SeedRecord | None, *, today: date, days: int, share: float) -> SeedRecord:
    cast = ensure_cast()
    ensure_terms(publisher=cast.admin)
    account_id = ensure_account("Meridian Goods", owner=cast.owner, plan=Plan.TEAM, actor=cast.admin)
    elsewhere = ensure_account("Elsewhere", owner=cast.stranger, plan=Plan.FREE, actor=cast.admin)
    ensure_strangers_tenant(account_id=elsewhere, cast=cast)
    tenant_ids = tuple(str(ensure_tenant(profile, account_id=account_id, cast=cast)) for profile in PROFILES)
    if started is not None and started.tenant_ids == tenant_ids:
        return started
    return SeedRecord(
        account_id=str(account_id),
        tenant_ids=tenant_ids,
        first_day=(today - timedelta(days=days)).isoformat(),
        days=days,
        entries=tuple(round(profile.entries * share * days / PROFILE_DAYS) for profile in PROFILES),
        seed=SEED,
    )


def _seed_logs(store: ObjectStore, record: SeedRecord) -> Iterator[Step]:
    for tenant_id, entries, profile in zip(record.tenant_ids, record.entries, PROFILES, strict=True):
        plan = LogPlan(
            profile=profile,
            tenant_id=UUID(tenant_id),
            first_day=date.fromisoformat(record.first_day),
            days=record.days,
            seed=record.seed,
            entries=entries,
        )
        markers = []
        for day in write_logs(store, plan):
            markers += day.markers
            yield Step(profile.name, day.entries)
        ensure_markers(plan.tenant_id, markers)


def _read_record(store: ObjectStore) -> SeedRecord | None:
    try:
        content: dict[str, Any] = orjson.loads(store.read(RECORD_KEY))
    except ObjectNotFound:
        return None
    lists = {name: tuple(content[name]) for name in ("tenant_ids", "entries")}
    return SeedRecord(**{**content, **lists})


def _write_record(store: ObjectStore, record: SeedRecord) -> None:
    store.write(RECORD_KEY, orjson.dumps(asdict(record), option=orjson.OPT_INDENT_2))


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process seeds this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
