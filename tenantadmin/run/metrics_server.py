"""Serve metrics for Prometheus at ``METRICS_ADDRESS``, apart from the public address.

The processes of a container share the address: one process serves the counts of all. When it ends, another
takes over. Beside the counts there is the state of the service, from the database and Redis, the same in all
containers.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import connection
from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from analytics.queues import (
    beat_age,
    count_failing_jobs,
    count_quarantined,
    count_running_builds,
    read_staleness,
)
from logs.notifications import sweep_age
from logs.pending import pending_state
from logs.sql.sandbox import missing_restrictions
from tenantadmin.lib.core import metrics
from tenantadmin.lib.core.queues import read_queues
from tenantadmin.lib.core.version import service_version
from tenantadmin.lib.http import health

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

#: A process tries to take the address again after this time.
_RETRY_SECONDS: Final = 10.0


class StateCollector:
    """Reads the state of the service at each scrape.

    A metric that cannot be read is left out. A server that does not answer is not asked for more: Prometheus
    would give up the scrape meanwhile.
    """

    def describe(self) -> Iterable[Metric]:
        """Return no descriptions, so that registration does not query the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily(
            "tenantadmin_build", "The running release", value={"version": service_version()}
        )
        answers = health.readiness.measure()
        up = GaugeMetricFamily("tenantadmin_server_up", "1 if the server answers", labels=["server"])
        for server, seconds in answers.items():
            up.add_metric([server], seconds is not None)
        yield up
        if not settings.SQL_OPTIONS.service_url:
            yield GaugeMetricFamily(
                "tenantadmin_sql_missing_restrictions",
                "Restrictions of query processes that the kernel lacks",
                value=len(missing_restrictions()),
            )
        try:
            for server, read in (
                (health.REDIS, self._queues),
                (health.REDIS, self._beat),
                (health.DATABASE, self._builds),
                (health.DATABASE, self._documents),
                (health.DATABASE, self._logs),
            ):
                if answers[server] is None:
                    continue
                try:
                    yield from read()
                except Exception as error:  # noqa: BLE001  # the other metrics are still of use
                    logger.warning("Metrics cannot be read: %s", error)
        finally:
            connection.close()

    def _queues(self) -> Iterator[Metric]:
        lengths = GaugeMetricFamily(
            "tenantadmin_queue_length", "Tasks that no worker has taken yet", labels=["queue"]
        )
        for queue in read_queues():
            lengths.add_metric([queue.name], queue.length)
        yield lengths

    def _builds(self) -> Iterator[Metric]:
        state = pending_state()
        yield GaugeMetricFamily("tenantadmin_pending_days", "Stale days that are not built", value=state.days)
        yield GaugeMetricFamily(
            "tenantadmin_pending_age_seconds", "Age of the oldest pending build", value=state.age_seconds
        )
        yield GaugeMetricFamily(
            "tenantadmin_failing_builds", "Pending builds that failed several times", value=state.failing
        )
        failing = GaugeMetricFamily(
            "tenantadmin_failing_jobs", "Jobs that failed several times", labels=["queue"]
        )
        for queue, number in count_failing_jobs().items():
            failing.add_metric([queue], number)
        yield failing
        yield GaugeMetricFamily(
            "tenantadmin_running_builds", "Builds under way", value=count_running_builds()
        )

    def _documents(self) -> Iterator[Metric]:
        staleness = GaugeMetricFamily(
            "tenantadmin_staleness_seconds",
            "Age of the oldest change of a log that the documents of a kind do not show",
            labels=["kind"],
        )
        for kind, seconds in read_staleness().items():
            staleness.add_metric([kind], seconds)
        yield staleness

    def _logs(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "tenantadmin_quarantined_entries", "Log entries in quarantine", value=count_quarantined()
        )
        age = sweep_age()
        if age is not None:
            yield GaugeMetricFamily(
                "tenantadmin_sweep_age_seconds",
                "Time since the tenant that waits longest was listed",
                value=age,
            )

    def _beat(self) -> Iterator[Metric]:
        age = beat_age()
        if age is not None:
            yield GaugeMetricFamily(
                "tenantadmin_beat_age_seconds",
                "Time since a worker last ran a job of beat",
                value=age,
            )


def make_registry() -> CollectorRegistry:
    """Return all metrics: the counts of all processes that share the files, and the state."""
    registry = CollectorRegistry()
    folder = metrics.metrics_folder()
    if folder is None:
        registry.register(REGISTRY)
    elif folder.is_dir():
        MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]  # it registers itself
    collector: Collector = StateCollector()
    registry.register(collector)
    return registry


def start() -> None:
    """Serve metrics in a thread if ``METRICS_ADDRESS`` is set, as soon as no other process serves them."""
    if settings.METRICS_ADDRESS is not None:
        host, port = settings.METRICS_ADDRESS
        threading.Thread(target=_serve, args=(host, port), daemon=True, name="metrics").start()


def _serve(host: str, port: int) -> None:
    registry = make_registry()
    while True:
        try:
            start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                logger.error("METRICS_ADDRESS %s:%d cannot be served: %s", host, port, error)  # noqa: TRY400
                return
            time.sleep(_RETRY_SECONDS)
        else:
            logger.info("Metrics are at http://%s:%d/metrics", host, port)
            return
