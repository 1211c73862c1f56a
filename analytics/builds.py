"""The table of builds: what runs, what ended how."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.conf import settings

from analytics.models import Build
from tenantadmin.http.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID


def delete_old_builds() -> int:
    """Delete the builds that began longer ago than `BUILD_LIFETIME`; returns how many."""
    deleted, _ = Build.objects.filter(started_at__lt=now() - settings.BUILD_LIFETIME).delete()
    return deleted


@contextmanager
def recorded_build(*, tenant: UUID, period: str) -> Iterator[Build]:
    """Record a build as running, then as done or failed; the caller may set ``rows``.

    One that was killed stays ``running`` until the next build of the same period, which marks it failed.
    """
    Build.objects.filter(tenant_id=tenant, period=period, state=Build.State.RUNNING).update(
        state=Build.State.FAILED, finished_at=now(), error="The worker ended before the build did."
    )
    build = Build.objects.create(tenant_id=tenant, period=period)
    try:
        yield build
    except BaseException as error:
        build.state, build.error = Build.State.FAILED, f"{type(error).__name__}: {error}"
        raise
    else:
        build.state = Build.State.DONE
    finally:
        build.finished_at = now()
        build.save()
