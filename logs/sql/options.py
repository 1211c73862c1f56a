"""Settings of SQL over the log, for the web processes and for a separate SQL service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logs.sql.leases import LeaseOptions
from logs.sql.protocol import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """How and where queries run.

    Attributes:
        slots: how many queries one service process runs at a time.
        slots_per_tenant: how many of them may be one tenant's.
        queue: how many more queries may wait.
        warm: how many query processes are kept ready.
        leases: how long a process is kept for the tenant's next query.
        kept_seconds: how long results are kept for the same query; 0 if they are not.
        kept_bytes: how many bytes of results one tenant may have kept anew in that time.
        cache_bytes: the limit for local copies of a remote store's files.
        spark_url: the Spark Connect server of the second engine; empty if there is none.
        spark_root: where Spark finds the object store.
        spark_from_bytes: so much of a log is too large for this machine.
        service_url: the SQL service that runs the queries; empty if this process runs them.
        service_secret: the secret that the SQL service and its callers share.
    """

    limits: Limits
    slots: int
    slots_per_tenant: int
    queue: int
    warm: int
    leases: LeaseOptions
    kept_seconds: int
    kept_bytes: int
    cache_bytes: int
    spark_url: str
    spark_root: str
    spark_from_bytes: int
    service_url: str
    service_secret: str


def options_from(values: Mapping[str, Any]) -> SqlOptions:
    """Return the options from a configuration: the values of the variables ``SQL_…`` by name."""
    return SqlOptions(
        limits=Limits(
            seconds=values["SQL_TIMEOUT_SECONDS"],
            max_rows=values["SQL_MAX_ROWS"],
            max_bytes=values["SQL_MAX_BYTES"],
            memory_bytes=values["SQL_MEMORY_BYTES"],
            threads=values["SQL_THREADS"],
        ),
        slots=values["SQL_SLOTS"],
        slots_per_tenant=values["SQL_SLOTS_PER_TENANT"],
        queue=values["SQL_QUEUE"],
        warm=values["SQL_WARM_PROCESSES"],
        leases=LeaseOptions(
            processes=values["SQL_LEASES"],
            queries=values["SQL_LEASE_QUERIES"],
            idle_seconds=values["SQL_LEASE_IDLE_SECONDS"],
            processor_seconds=values["SQL_LEASE_PROCESSOR_SECONDS"],
            growth_bytes=values["SQL_LEASE_GROWTH_BYTES"],
        ),
        kept_seconds=values["SQL_KEPT_RESULTS_SECONDS"],
        kept_bytes=values["SQL_KEPT_RESULTS_BYTES"],
        cache_bytes=values["SQL_CACHE_BYTES"],
        spark_url=values["SQL_SPARK_URL"] or "",
        spark_root=(values["OBJECT_STORE_URL"] or "").replace("s3://", "s3a://", 1).rstrip("/"),
        spark_from_bytes=values["SQL_SPARK_FROM_BYTES"],
        service_url=values["SQL_SERVICE_URL"] or "",
        service_secret=values["SQL_SERVICE_SECRET"] or "",
    )
