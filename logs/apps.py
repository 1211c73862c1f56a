from __future__ import annotations

from django.apps import AppConfig


class LogsConfig(AppConfig):
    name = "logs"
    verbose_name = "Request logs"

    def ready(self) -> None:
        from logs import checks  # noqa: F401, PLC0415  # registers them
