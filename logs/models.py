"""The compacted days, the quarantine list, and the audit of reads and queries.

Tenants are referred to by id, not by foreign key, because logs outlive them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar, Final
from uuid import uuid4

from django.conf import settings
from django.db import models

from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.months import MonthlyModel
from tenantadmin.lib.jobs.queue import Job

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Partition(models.Model):
    """A compacted day. Readers take the key of its file from this row, so they see one whole build."""

    tenant_id = models.UUIDField()
    day = models.DateField()
    #: Digest over the names, sizes and etags of the raw objects of the build.
    listing_digest = models.CharField(max_length=64)
    build = models.CharField(max_length=32)
    #: Key of the Parquet file; empty if the day has no valid entry.
    file = models.CharField(max_length=1024, blank=True)
    #: If the day is built by hours: the keys of its further files, in the order of the rows.
    more_files = models.JSONField(default=list, db_default=[])
    rows = models.PositiveBigIntegerField()
    bytes = models.PositiveBigIntegerField()
    objects_read = models.PositiveBigIntegerField()
    duplicates = models.PositiveBigIntegerField()
    quarantined = models.PositiveBigIntegerField()
    #: By hour of the prefix (as text) a `logs.compaction.rows.HourState`; empty in old rows.
    hours = models.JSONField(default=dict, db_default={})
    #: A `logs.compaction.build.TableNames`; null if an earlier release built the day.
    table_names = models.JSONField(null=True)
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-day")
        constraints = (models.UniqueConstraint(fields=["tenant_id", "day"], name="partition_unique"),)
        indexes = (models.Index(fields=["-day", "-id"], name="partition_by_day"),)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.day}"

    @property
    def files(self) -> list[str]:
        """The keys of all files, in the order of the rows."""
        return [self.file, *self.more_files] if self.file else []


class DayPart(models.Model):
    """A part of a large day, which any worker can build. The next build of the day uses it if it is current.

    An hour has the rows of the objects under its prefix. The repeats say which hours share a ``logId``. A
    span has rows that follow each other in the day, and their groups (`analytics.numbers.by_hours`).
    """

    class Stage(models.TextChoices):
        HOUR = "hour"
        REPEATS = "repeats"
        SPAN = "span"

    tenant_id = models.UUIDField()
    day = models.DateField()
    stage = models.CharField(max_length=8, choices=Stage.choices)
    #: The hour (0 to 23), or the span (0 to 25); 0 for the repeats.
    number = models.PositiveSmallIntegerField()
    build = models.CharField(max_length=32)
    #: Digest over the input of this part.
    source = models.CharField(max_length=64)
    #: Name to object key. A span may name the file of its hour.
    files = models.JSONField()
    #: Of all its files.
    bytes = models.PositiveBigIntegerField()
    #: What the next stage needs.
    facts = models.JSONField()
    built_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-day", "stage", "number")
        constraints = (
            models.UniqueConstraint(fields=["tenant_id", "day", "stage", "number"], name="day_part_unique"),
        )
        indexes = (models.Index(fields=["-day", "-id"], name="day_part_newest"),)

    def __str__(self) -> str:
        return f"{self.stage} {self.number} of {self.day} of {self.tenant_id}"


class QuarantinedEntry(models.Model):
    """An entry without a row, and the reason. If ``position`` is null, the whole file."""

    tenant_id = models.UUIDField()
    day = models.DateField()
    key = models.CharField(max_length=1024)
    position = models.PositiveBigIntegerField(null=True)
    reason = models.TextField()
    found_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("tenant_id", "-day", "id")
        indexes = (
            models.Index(fields=["tenant_id", "day"], name="quarantine_by_day"),
            models.Index(fields=["-day", "-id"], name="quarantine_newest"),
        )
        verbose_name_plural = "quarantined entries"

    def __str__(self) -> str:
        return self.key if self.position is None else f"{self.key}, entry {self.position}"


class SupersededFile(models.Model):
    """A file that no row names any more. It is deleted when no reader can still have it open."""

    key = models.CharField(max_length=1024, unique=True)
    superseded_at = models.DateTimeField(default=now, db_index=True)

    class Meta:
        ordering = ("superseded_at",)

    def __str__(self) -> str:
        return self.key


class PendingBuild(Job):
    """A day that must be built or, if ``day`` is null, the stale months, years and history of a tenant.

    The row exists until the build is current, so a build whose task or worker is lost starts again.
    """

    tenant_id = models.UUIDField()
    day = models.DateField(null=True)
    #: Changes each time the day is marked. A build deletes the row only if the mark is still the same.
    mark = models.UUIDField(default=uuid4)
    #: The first mark since the last build.
    marked_at = models.DateTimeField(default=now)
    due_at = models.DateTimeField(default=now, db_index=True)

    class Meta:
        ordering = ("due_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["tenant_id", "day"], name="pending_build_unique", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return f"{self.day or 'months and years'} of {self.tenant_id}"


class LogSweep(models.Model):
    """When the raw logs of a tenant were last listed; without a tenant: when tenants were last listed."""

    tenant_id = models.UUIDField(null=True)
    #: 1970 if they were never listed.
    listed_at = models.DateTimeField(default=EPOCH, db_index=True)

    class Meta:
        ordering = ("listed_at", "id")
        constraints = (
            models.UniqueConstraint(fields=["tenant_id"], name="log_sweep_unique", nulls_distinct=False),
        )

    def __str__(self) -> str:
        return str(self.tenant_id or "the list of tenants")


class LogRead(MonthlyModel):
    """The audit of a raw-log read, written before the data is sent. Contract: Authentication, 7."""

    retention: ClassVar[str] = "AUDIT_RETENTION"

    tenant_id = models.UUIDField()
    email = models.CharField(max_length=320)
    #: The object's key, the prefix whose children were listed, or what `logs.audit` writes of requests.
    key = models.CharField(max_length=1024)
    request_id = models.CharField(max_length=128)
    client_address = models.CharField(max_length=45, blank=True)

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=["-at", "-id"], name="log_read_newest"),
            models.Index(fields=["email", "-at", "-id"], name="log_read_by_email"),
            models.Index(fields=["tenant_id", "-at", "-id"], name="log_read_of_tenant"),
        )

    def __str__(self) -> str:
        return f"{self.email} read {self.key}"


class QueryRun(MonthlyModel):
    """The audit of a SQL query: who sent it, the statement, how long it took and how it ended."""

    retention: ClassVar[str] = "AUDIT_RETENTION"

    tenant_id = models.UUIDField()
    email = models.CharField(max_length=320)
    statement = models.TextField()
    request_id = models.CharField(max_length=128)
    client_address = models.CharField(max_length=45, blank=True)
    #: ``running`` until it ends; then ``ok`` or the error's code.
    outcome = models.CharField(max_length=40, default="running")
    #: The message to the caller if the query was refused or failed.
    message = models.TextField(blank=True, default="", db_default="")
    duration_ms = models.PositiveBigIntegerField(null=True)
    rows = models.PositiveBigIntegerField(null=True)
    bytes = models.PositiveBigIntegerField(null=True)
    #: The rows come from an earlier run. See `logs.kept_results`.
    from_kept_result = models.BooleanField(default=False, db_default=False)
    #: The engine that made the rows; empty if there are none.
    engine = models.CharField(max_length=10, blank=True, default="", db_default="")
    #: The ``application_name`` of a client of PostgreSQL's port. Others give none.
    program = models.CharField(max_length=64, blank=True, default="", db_default="")
    #: The service wrote the statement, for the figures of a page or a document.
    by_service = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=["-at", "-id"], name="query_run_newest"),
            models.Index(fields=["email", "-at", "-id"], name="query_run_by_email"),
            models.Index(fields=["tenant_id", "-at", "-id"], name="query_run_of_tenant"),
            # Most runs are figures, which the audit leaves out.
            *(
                models.Index(
                    fields=[*column, "-at", "-id"],
                    name=f"query_run_own_{name}",
                    condition=models.Q(by_service=False),
                )
                for name, column in {"newest": (), "email": ("email",), "tenant": ("tenant_id",)}.items()
            ),
            models.Index(fields=["-duration_ms", "-id"], name="query_run_slowest"),
        )

    def __str__(self) -> str:
        return f"query of {self.email}"


class SavedQuery(models.Model):
    """SQL that a user kept under a name on the admin site of an earlier release. Nothing writes it."""

    MAX_NAME: ClassVar[int] = 100

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_queries")
    name = models.CharField(max_length=MAX_NAME)
    statement = models.TextField()
    saved_at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("name", "id")
        verbose_name_plural = "saved queries"
        constraints = (models.UniqueConstraint(fields=["user", "name"], name="saved_query_unique"),)

    def __str__(self) -> str:
        return self.name
