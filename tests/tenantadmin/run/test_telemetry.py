"""Sentry and OpenTelemetry start where their variables are set, and only there."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from tenantadmin.run import telemetry
from tenantadmin.run.telemetry import scrub_event

_AUTOMATIC = "opentelemetry.instrumentation.auto_instrumentation"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any] | str]:
    """Put packages in the place of the optional ones. Return what is called."""
    calls: list[dict[str, Any] | str] = []
    sentry: Any = ModuleType("sentry_sdk")
    sentry.init = lambda **options: calls.append(options)
    automatic: Any = ModuleType(_AUTOMATIC)
    automatic.initialize = lambda: calls.append("traces")
    trace: Any = ModuleType("opentelemetry.trace")
    trace.get_tracer_provider = lambda: SimpleNamespace(
        add_span_processor=lambda processor: calls.append(type(processor).__name__)
    )
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    for name in ("opentelemetry", "opentelemetry.instrumentation"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "sentry_sdk", sentry)
    monkeypatch.setitem(sys.modules, _AUTOMATIC, automatic)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    return calls


def test_nothing_starts_by_itself(started: list[dict[str, Any] | str]) -> None:
    telemetry.start()
    assert started == []


def test_each_starts_by_its_variable(
    started: list[dict[str, Any] | str], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SENTRY_DSN = "https://key@sentry.example.com/1"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    telemetry.start()
    assert started == [
        {
            "dsn": "https://key@sentry.example.com/1",
            "send_default_pii": False,
            "max_request_body_size": "never",
            "include_local_variables": False,
            "before_send": scrub_event,
            "before_send_transaction": scrub_event,
            "before_breadcrumb": scrub_event,
        },
        "traces",
        "SpanScrubber",
    ]


def test_a_missing_package_is_named(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SENTRY_DSN = "https://key@sentry.example.com/1"
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    with pytest.raises(ImproperlyConfigured, match=r"SENTRY_DSN is set, but .* --extra telemetry"):
        telemetry.start()
