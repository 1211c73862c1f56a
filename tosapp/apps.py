from __future__ import annotations

from django.apps import AppConfig


class TosappConfig(AppConfig):
    name = "tosapp"
    verbose_name = "Terms of service"
