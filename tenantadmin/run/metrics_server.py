"""Serve metrics for Prometheus at ``METRICS_ADDRESS``, apart from the public address.

The processes of a container share the address: one of them serves the counts of all. When it ends, another
takes over. Beside the counts there is the state of the service, from the database and Redis.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import connection
from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from analytics.service_state import beat_age, count_running_builds
from logs.pending import pending_state
from tenantadmin.lib.core.queues import read_queues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import Metric
    from prometheus_client.registry import Collector

logger = logging.getLogger(__name__)

#: A process tries to take the address again after this time.
_RETRY_SECONDS: Final = 10.0


class StateCollector:
    """Reads the state of the service at each scrape. Metrics that cannot be read are left out and logged."""

    def describe(self) -> Iterable[Metric]:
        """Return no descriptions, so that registration does not query the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        try:
            for read in (self._queues, self._builds, self._beat):
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
        yield GaugeMetricFamily(
            "tenantadmin_running_builds", "Builds under way", value=count_running_builds()
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
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # it registers itself
    else:
        registry.register(REGISTRY)
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
