"""Rollups, summary documents and builds."""

from __future__ import annotations

import datetime as dt
from typing import Final, Self

from django.db import models
from django.db.models.functions import Length

from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs.queue import Job

_DAY_LENGTH: Final = len("2026-03-01")
_FAILED_FOR: Final = dt.timedelta(days=7)


def is_day(period: str) -> bool:
    """Return True if a period is a day, not a month, a year or the whole log."""
    return len(period) == _DAY_LENGTH


class DayRollup(models.Model):
    """The rollup files of a day."""

    tenant_id = models.UUIDField()
    day = models.DateField()
    #: The build of the partition that the rollup was made from.
    build = models.CharField(max_length=32)
    version = models.PositiveIntegerField()
    #: Table name to object key.
    files = models.JSONField()
    bytes = models.PositiveBigIntegerField()
    #: The sums of the day, for charts and `TenantHealth`. Null in rows of earlier releases, until a build.
    hits = models.BigIntegerField(null=True)
    misses = models.BigIntegerField(null=True)
    warehouse_ms = models.BigIntegerField(null=True)
    #: Of ``misses``: BYPASS and PASSTHROUGH.
    not_cached = models.BigIntegerField(null=True)
    # Sums that may be larger than 64 bits.
    hit_bytes = models.FloatField(null=True)
    hit_time_sum = models.FloatField(null=True)
    hit_time_count = models.BigIntegerField(null=True)
    miss_time_sum = models.FloatField(null=True)
    miss_time_count = models.BigIntegerField(null=True)
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-day")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "day"], name="day_rollup_unique"),)
        # To find rollups of earlier versions.
        indexes = (models.Index(fields=["version"], name="day_rollup_version"),)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.day}"


class MergedRollup(models.Model):
    """The rollup files of a month, merged from its days, or of a year, merged from its months."""

    tenant_id = models.UUIDField()
    #: ``2026-03`` or ``2026``.
    period = models.CharField(max_length=7)
    build = models.CharField(max_length=32)
    #: A hash of the builds of its days.
    source = models.CharField(max_length=64)
    #: The version of the rollups. Rows written before this column existed have version 3.
    version = models.PositiveIntegerField(db_default=3)
    #: Table name to object key.
    files = models.JSONField()
    bytes = models.PositiveBigIntegerField()
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-period")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "period"], name="merged_rollup_unique"),)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.period}"


class Kind(models.TextChoices):
    """The kinds of stored documents. Documents of one user are computed on request."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    RULES = "rules"
    OPPORTUNITIES = "opportunities"
    USERS = "users"


class SummaryDocument(models.Model):
    """A summary document, stored as the response body."""

    tenant_id = models.UUIDField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    #: ``2026-03-01``, ``2026-03``, ``2026``, or empty for the whole history.
    period = models.CharField(max_length=10, blank=True)
    #: The document. If it is too large for a row, this is empty and ``file`` is the key of its object.
    body = models.BinaryField()
    file = models.CharField(max_length=1024, blank=True, db_default="")
    bytes = models.PositiveBigIntegerField(default=0, db_default=0)
    etag = models.CharField(max_length=40)
    #: A hash of the builds of the rollups that the document was computed from.
    source = models.CharField(max_length=64)
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "kind", "-period")
        constraints = (
            models.UniqueConstraint(fields=["tenant_id", "kind", "period"], name="summary_document_unique"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.period} of {self.tenant_id}"


class _IsPositive(models.Func):
    """The condition of a partial index, written out: one plan for all values of a parameter cannot use it."""

    template = "%(expressions)s > 0"
    output_field = models.BooleanField()


class TenantHealthQuerySet(models.QuerySet["TenantHealth"]):
    """Queries of the health of tenants."""

    def current(self, today: dt.date) -> Self:
        """Return the tenants whose log reaches to the day before ``today``."""
        return self.filter(last_day__gte=today - dt.timedelta(days=1))

    def late(self, today: dt.date) -> Self:
        """Return the tenants whose log does not reach so far."""
        return self.filter(last_day__lt=today - dt.timedelta(days=1))

    def stale(self) -> Self:
        """Return the tenants with days that must be built again."""
        return self.filter(_IsPositive("stale_days"))

    def with_quarantine(self) -> Self:
        """Return the tenants with entries in quarantine."""
        return self.filter(_IsPositive("quarantined"))


class TenantHealth(Job):
    """Recent figures of a tenant in one row, updated by each build of a day. Pages need not read rollups.

    The windows of 1, 7 and 28 days end with ``last_day``. A hit rate is null without requests.
    """

    tenant_id = models.UUIDField(primary_key=True)
    #: The last day with log entries.
    last_day = models.DateField(null=True)
    rate_1 = models.FloatField("hit rate, 1 day", null=True)
    rate_7 = models.FloatField("hit rate, 7 days", null=True)
    rate_28 = models.FloatField("hit rate, 28 days", null=True)
    #: ``rate_28`` minus ``rate_7``: positive if the hit rate fell.
    drop = models.FloatField(null=True)
    requests_7 = models.BigIntegerField("requests, 7 days", default=0)
    misses_7 = models.BigIntegerField("misses, 7 days", default=0)
    warehouse_ms_7 = models.BigIntegerField("warehouse ms, 7 days", default=0)
    #: Compacted days without current rollups, when the row was written.
    stale_days = models.PositiveIntegerField(default=0)
    #: Entries in quarantine, of all days.
    quarantined = models.PositiveBigIntegerField(default=0)
    #: The last digests found what is open, or what only the present rules close (`analytics.digest.verdict`).
    has_findings = models.BooleanField(default=False, db_default=False)
    updated_at = models.DateTimeField(default=now)
    #: When its digests are looked at next. The build of a day makes them due at once; null is the same.
    due_at = models.DateTimeField(  # type: ignore[assignment]  # only the previous release writes null
        null=True, default=now, db_index=True, db_column="digests_due_at"
    )

    objects = TenantHealthQuerySet.as_manager()

    class Meta:
        ordering = ("tenant_id",)
        verbose_name_plural = "tenant health"
        indexes = (
            models.Index(models.F("drop").desc(nulls_last=True), "tenant_id", name="health_by_drop"),
            models.Index(fields=["-last_day", "tenant_id"], name="health_by_last_day"),
            # The list of tenants can be sorted by these.
            models.Index(fields=["last_day", "tenant_id"], name="health_last_days"),
            models.Index(fields=["rate_7", "tenant_id"], name="health_by_rate"),
            models.Index(fields=["requests_7", "tenant_id"], name="health_by_requests"),
            models.Index(fields=["warehouse_ms_7", "tenant_id"], name="health_by_warehouse"),
            models.Index(fields=["tenant_id"], name="health_stale", condition=models.Q(stale_days__gt=0)),
            models.Index(
                fields=["-last_day", "tenant_id"],
                name="health_findings",
                condition=models.Q(has_findings=True),
            ),
            models.Index(
                fields=["tenant_id"], name="health_quarantined", condition=models.Q(quarantined__gt=0)
            ),
        )

    def __str__(self) -> str:
        return f"health of {self.tenant_id}"


class BuildQuerySet(models.QuerySet["Build"]):
    """Queries of builds."""

    def unrepaired(self) -> Self:
        """Return failed builds that no ended build of the same period follows."""
        later = Build.objects.filter(
            tenant_id=models.OuterRef("tenant_id"),
            period=models.OuterRef("period"),
            started_at__gt=models.OuterRef("started_at"),
            state__in=[Build.State.DONE, Build.State.FAILED],
        )
        return self.filter(~models.Exists(later), state=Build.State.FAILED)

    def to_repair(self) -> Self:
        """Return what Home and the tenant's overview tell: unrepaired builds that failed a short time ago."""
        return self.unrepaired().filter(started_at__gte=now() - _FAILED_FOR)

    def of_days(self) -> Self:
        """Return builds of days."""
        return self.alias(length=Length("period")).filter(length=_DAY_LENGTH)

    def of_periods(self) -> Self:
        """Return builds of months, years and the whole history."""
        return self.alias(length=Length("period")).filter(length__lt=_DAY_LENGTH)


class Build(models.Model):
    """The record of one build of a period, for the admin site."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    tenant_id = models.UUIDField()
    period = models.CharField(max_length=10, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    started_at = models.DateTimeField(default=now, db_index=True)
    finished_at = models.DateTimeField(null=True)
    rows = models.PositiveBigIntegerField(null=True)
    error = models.TextField(blank=True)

    objects = BuildQuerySet.as_manager()

    class Meta:
        ordering = ("-started_at",)
        indexes = (
            models.Index(fields=["-started_at"], name="build_failed", condition=models.Q(state="failed")),
            models.Index(fields=["tenant_id", "-started_at"], name="build_of_tenant"),
            models.Index(fields=["tenant_id", "period", "-started_at"], name="build_of_period"),
            models.Index(
                fields=["tenant_id", "period"],
                name="build_running",
                condition=models.Q(state="running"),
            ),
        )

    def __str__(self) -> str:
        return f"{self.period or 'history'} of {self.tenant_id}: {self.state}"
