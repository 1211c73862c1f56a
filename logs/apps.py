from __future__ import annotations

from django.apps import AppConfig


class LogsConfig(AppConfig):
    name = "logs"
    verbose_name = "Request logs"
