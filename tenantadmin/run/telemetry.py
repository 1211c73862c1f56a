"""Sentry and OpenTelemetry, configured by environment variables. Their packages are optional."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from tenantadmin.run.scrubbing import SpanScrubber, scrub_event


def start() -> None:
    """Report errors to ``SENTRY_DSN`` and traces to ``OTEL_EXPORTER_OTLP_ENDPOINT``, if they are set.

    Call it in each process that answers requests or runs tasks, before Django's middleware is loaded.

    Raises:
        ImproperlyConfigured: a package is missing.
    """
    if settings.SENTRY_DSN:
        sentry = _import("sentry_sdk", variable="SENTRY_DSN")
        # No addresses, cookies, bodies or variables: they hold tokens and names.
        sentry.init(
            dsn=settings.SENTRY_DSN,
            send_default_pii=False,
            max_request_body_size="never",
            include_local_variables=False,
            before_send=scrub_event,
            before_send_transaction=scrub_event,
            before_breadcrumb=scrub_event,
        )
    # OpenTelemetry reads this and its other variables itself.
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        automatic = _import(
            "opentelemetry.instrumentation.auto_instrumentation", variable="OTEL_EXPORTER_OTLP_ENDPOINT"
        )
        automatic.initialize()
        trace = _import("opentelemetry.trace", variable="OTEL_EXPORTER_OTLP_ENDPOINT")
        # Without a provider of the SDK (OTEL_SDK_DISABLED), nothing is sent.
        if hasattr(provider := trace.get_tracer_provider(), "add_span_processor"):
            provider.add_span_processor(SpanScrubber())


def _import(module: str, *, variable: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImproperlyConfigured(
            f"{variable} is set, but the package {module.partition('.')[0]} is not installed: "
            "uv pip install -r pyproject.toml --extra telemetry"
        ) from error
