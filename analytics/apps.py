from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"
    verbose_name = "Usage analytics"

    def ready(self) -> None:
        # Connects its receiver.
        import_module("analytics.advice.recommend")
