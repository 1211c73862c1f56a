"""The list of a tenant's files is read again only after it changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from accounts.models.tenants import TenantConfig
from logs import sources
from logs.models import Partition
from logs.sources import log_source
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

    from tests.factories import World

    Assertion = Callable[[int], CaptureQueriesContext]

pytestmark = pytest.mark.django_db


def add_day(tenant: UUID, day: str, build: str) -> None:
    Partition.objects.update_or_create(
        tenant_id=tenant,
        day=date.fromisoformat(day),
        defaults={
            "listing_digest": build,
            "build": build,
            "file": f"{tenant}/compacted/day={day}/{build}.parquet",
            "rows": 1,
            "bytes": 100,
            "objects_read": 1,
            "duplicates": 0,
            "quarantined": 0,
        },
    )


def read(tenant: UUID) -> list[tuple[str, str]]:
    source = log_source(default_store(), tenant=tenant)
    return [(day.day, file.rpartition("/")[2]) for day in source.days for file in day.files]


def test_only_a_change_is_read(world: World, django_assert_num_queries: Assertion) -> None:
    tenant, other = world.tenant.pk, world.stranger_tenant.pk
    with django_assert_num_queries(2):
        assert read(tenant) == []
    add_day(tenant, "2026-03-01", "a")
    for queries in (2, 1, 1):
        with django_assert_num_queries(queries):
            assert read(tenant) == [("2026-03-01", "a.parquet")]
    add_day(tenant, "2026-03-02", "b")
    for queries in (2, 1):
        with django_assert_num_queries(queries):
            assert read(tenant) == [("2026-03-01", "a.parquet"), ("2026-03-02", "b.parquet")]
    add_day(tenant, "2026-03-01", "c")
    for queries in (2, 1):
        with django_assert_num_queries(queries):
            assert read(tenant) == [("2026-03-01", "c.parquet"), ("2026-03-02", "b.parquet")]
    Partition.objects.filter(tenant_id=tenant, day="2026-03-02").update(
        more_files=[f"{tenant}/compacted/day=2026-03-02/b2.parquet"]
    )
    assert read(tenant)[1:] == [("2026-03-02", "b.parquet"), ("2026-03-02", "b2.parquet")]
    Partition.objects.filter(tenant_id=tenant, day="2026-03-02").delete()
    assert read(tenant) == [("2026-03-01", "c.parquet")]
    assert read(other) == []


def test_another_engine_for_the_tenant_is_seen_at_once(world: World) -> None:
    tenant = world.tenant.pk
    add_day(tenant, "2026-03-01", "a")
    assert log_source(default_store(), tenant=tenant).engine == "duckdb"
    TenantConfig.objects.filter(tenant_id=tenant).update(sql_engine="spark")
    assert log_source(default_store(), tenant=tenant).engine == "spark"


def test_a_long_history_is_read_each_time(
    world: World, django_assert_num_queries: Assertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_REMEMBERED_DAYS", 1)
    add_day(world.tenant.pk, "2026-03-01", "a")
    for _ in range(2):
        with django_assert_num_queries(2):
            assert read(world.tenant.pk) == [("2026-03-01", "a.parquet")]
