from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.contrib.postgres.indexes import OpClass
from django.db.models.expressions import OrderBy
from django.db.models.indexes import IndexExpression


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "People, accounts and tenants"

    def ready(self) -> None:
        # Its receivers record what happens to second factors.
        import_module("accounts.signin.staff.trail")
        # For indexes on the start of a text. As an installed app, django.contrib.postgres would also query
        # types of extensions on every new connection, and none of them is used.
        IndexExpression.register_wrappers(OrderBy, OpClass)
