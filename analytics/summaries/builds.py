"""Record running builds, and the result of finished ones."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from django.conf import settings

from analytics.models import Build
from tenantadmin.lib.core.metrics import count_build
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import Busy, build_lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from analytics.models.summaries import BuildQuerySet


def delete_old_builds() -> int:
    """Delete the records of builds that started more than `BUILD_LIFETIME` ago. Return the count."""
    deleted, _ = Build.objects.filter(started_at__lt=now() - settings.BUILD_LIFETIME).delete()
    return deleted


@contextmanager
def locked_period(*, tenant: UUID, period: str, wait: bool) -> Iterator[None]:
    """Hold the lock of a period. Mark an earlier, killed build of it as failed.

    Raises:
        Busy: another worker holds the lock, and ``wait`` is false.
    """
    with build_lock(tenant=tenant, period=period or "history", wait=wait):
        Build.objects.filter(tenant_id=tenant, period=period, state=Build.State.RUNNING).update(
            state=Build.State.FAILED, finished_at=now(), error="The worker ended before the build did."
        )
        yield


def close_failures(builds: BuildQuerySet, *, rows: int | None = None) -> None:
    """Record that periods are current whose last build failed: nothing is left to build.

    The worker was killed after it had published, or the log of the day is gone. The caller holds a lock, so
    that no build of these periods runs.
    """
    at = now()
    Build.objects.bulk_create(
        Build(
            tenant_id=failed.tenant_id,
            period=failed.period,
            state=Build.State.DONE,
            started_at=at,
            finished_at=at,
            rows=rows,
        )
        for failed in builds.unrepaired()
    )


def end_killed_builds() -> None:
    """Mark builds as failed that are recorded as running although the lock of their period is free."""
    running = Build.objects.filter(state=Build.State.RUNNING).order_by().distinct()
    for tenant, period in running.values_list("tenant_id", "period"):
        with suppress(Busy), locked_period(tenant=tenant, period=period, wait=False):
            pass


@contextmanager
def recorded_build(*, tenant: UUID, period: str) -> Iterator[Build]:
    """Record a build as running, then as done or failed. The caller may set its ``rows``.

    The record of a killed build stays running until `end_killed_builds`. A build that has to wait for another
    one (`Busy`) leaves none.
    """
    build = Build.objects.create(tenant_id=tenant, period=period)
    try:
        yield build
    except Busy:
        build.delete()
        raise
    except BaseException as error:
        build.state, build.error = Build.State.FAILED, f"{type(error).__name__}: {error}"
        raise
    else:
        build.state = Build.State.DONE
    finally:
        if build.pk is not None:
            build.finished_at = now()
            build.save()
            count_build(kind="day" if len(period) == len("2026-03-01") else "period", state=build.state)
