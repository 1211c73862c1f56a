from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "People, accounts and tenants"

    def ready(self) -> None:
        # Its receivers record what happens to second factors.
        import_module("accounts.staff.trail")
