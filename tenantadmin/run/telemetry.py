"""Sentry and OpenTelemetry, by environment variables, without tokens and queries. Packages are optional.

Queries of this service hold tokens of sign-ins, one-time links and links that end mails; paths hold neither.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

REMOVED: Final = "[removed]"

#: Members and attributes that are queries, or that hold credentials.
_SECRET_NAMES: Final = frozenset(
    {
        *("query_string", "url.query", "http.query", "url.fragment", "http.fragment"),
        *("authorization", "cookie", "cookies", "set-cookie", "x-csrftoken"),
    }
)

#: Personal access tokens, refresh tokens and signed tokens, wherever they stand.
_TOKEN: Final = re.compile(r"tas_[a-z]+_[\w-]+|\beyJ[\w-]{10,}\.[\w.-]+")

#: A query or fragment after an address or a path.
_QUERY: Final = re.compile(r"((?:\b[a-z][a-z0-9+.-]*:/)?/[^\s?#\"'<>]*)[?#][^\s\"'<>]+", re.IGNORECASE)


def scrub_text(text: str) -> str:
    """Return ``text`` without tokens, and without the queries of addresses in it."""
    return _TOKEN.sub(REMOVED, _QUERY.sub(rf"\1?{REMOVED}", text))


def scrub(value: Any) -> Any:
    """Return a JSON value without tokens and queries."""
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return {key: REMOVED if _is_secret(key) else scrub(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(inner) for inner in value]
    return value


def scrub_event(event: Any, hint: Any) -> Any:  # noqa: ARG001 - Sentry's signature
    """Scrub an event, transaction or breadcrumb of Sentry before it is sent."""
    return scrub(event)


class SpanScrubber:
    """A span processor of OpenTelemetry that scrubs the attributes with which a span starts."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002
        for name, value in dict(span.attributes or {}).items():
            clean = REMOVED if _is_secret(name) else scrub(value)
            if clean != value:
                span.set_attribute(name, clean)

    def _on_ending(self, span: Any) -> None:
        """Do nothing: attributes that are set later hold no addresses."""

    def on_end(self, span: Any) -> None:
        """Do nothing."""

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
        return True


def _is_secret(name: Any) -> bool:
    return str(name).lower() in _SECRET_NAMES


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
