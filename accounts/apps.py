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
        # Indexes for the start of a text. The whole of django.contrib.postgres would ask every new connection
        # for the types of extensions that nobody uses here.
        IndexExpression.register_wrappers(OrderBy, OpClass)
