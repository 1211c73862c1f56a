"""Settings of SQL over the log, for the web processes and for a separate SQL service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from logs.sql.protocol import Limits
from tenantadmin.conf.environment import Range

if TYPE_CHECKING:
    from tenantadmin.conf.environment import Environment

_MAX_BYTES: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """Limits of a kept process. Reaching one ends the process.

    Attributes:
        processes: how many idle processes are kept, half of them for one tenant. 0 keeps none.
        queries: how many queries a process runs.
        idle_seconds: how long it waits for the next one.
        processor_seconds: how much processor time all its queries may use, before the next one.
        growth_bytes: by how much its memory may grow.
    """

    processes: int = 8
    queries: int = 100
    idle_seconds: float = 60
    processor_seconds: float = 10
    growth_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """Settings of queries.

    Attributes:
        slots: how many queries one service process runs at a time.
        slots_per_tenant: how many of these may be one tenant's.
        queue: how many more queries may wait.
        warm: how many query processes are kept ready.
        leases: how long a process is kept for the tenant's next query.
        kept_seconds: how long results are kept for the same query; 0 if they are not kept.
        kept_bytes: bytes of new results that are kept for one tenant within ``kept_seconds``.
        cache_bytes: the limit for local copies of a remote store's files.
        spark_url: the Spark Connect server of the second engine; empty if there is none.
        store_url: the address of the object store, where Spark reads the log.
        spark_from_bytes: queries that read at least this many bytes run on Spark.
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
    store_url: str
    spark_from_bytes: int
    service_url: str
    service_secret: str


def options_from(env: Environment, *, store_url: str, needs_secret: bool = False) -> SqlOptions:
    """Return the options from the variables ``SQL_…``. The object store is at ``store_url``.

    ``SQL_SERVICE_SECRET`` must be set if ``needs_secret``, or if queries run in an SQL service.
    """
    service_url = env.web_address("SQL_SERVICE_URL", "")
    return SqlOptions(
        limits=Limits(
            seconds=env.float("SQL_TIMEOUT_SECONDS", 15.0, validate=Range(0.1, 3600)),
            max_rows=env.int("SQL_MAX_ROWS", 10_000, validate=Range(1, 1_000_000_000)),
            max_bytes=env.int("SQL_MAX_BYTES", 32 << 20, validate=Range(1, _MAX_BYTES)),
            memory_bytes=env.int("SQL_MEMORY_BYTES", 1 << 30, validate=Range(1 << 20, _MAX_BYTES)),
            threads=env.int("SQL_THREADS", 2, validate=Range(1, 1024)),
        ),
        slots=env.int("SQL_SLOTS", 12, validate=Range(1, 1024)),
        slots_per_tenant=env.int("SQL_SLOTS_PER_TENANT", 8, validate=Range(1, 1024)),
        queue=env.int("SQL_QUEUE", 12, validate=Range(0, 65_536)),
        warm=env.int("SQL_WARM_PROCESSES", 4, validate=Range(0, 1024)),
        leases=LeaseOptions(
            processes=env.int("SQL_LEASES", 8, validate=Range(0, 1024)),
            queries=env.int("SQL_LEASE_QUERIES", 100, validate=Range(1, 1_000_000)),
            idle_seconds=env.float("SQL_LEASE_IDLE_SECONDS", 60.0, validate=Range(0.1, 3600)),
            processor_seconds=env.float("SQL_LEASE_PROCESSOR_SECONDS", 10.0, validate=Range(0.1, 3600)),
            growth_bytes=env.int("SQL_LEASE_GROWTH_BYTES", 256 << 20, validate=Range(0, _MAX_BYTES)),
        ),
        kept_seconds=env.int("SQL_KEPT_RESULTS_SECONDS", 600, validate=Range(0, 86_400)),
        kept_bytes=env.int("SQL_KEPT_RESULTS_BYTES", 4 << 20, validate=Range(1, _MAX_BYTES)),
        cache_bytes=env.int("SQL_CACHE_BYTES", 20 << 30, validate=Range(0, _MAX_BYTES)),
        spark_url=env.spark_address("SQL_SPARK_URL", ""),
        store_url=store_url,
        spark_from_bytes=env.int("SQL_SPARK_FROM_BYTES", 50 << 30, validate=Range(0, 1 << 60)),
        service_url=service_url,
        service_secret=env.shared_secret(
            "SQL_SERVICE_SECRET", "", required=needs_secret or bool(service_url)
        ),
    )
