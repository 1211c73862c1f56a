"""The page to choose the engine of a tenant's queries."""

from __future__ import annotations

from typing import Any

from django import forms

from accounts.admin.pages.base import ReasonForm, TenantActPage
from accounts.models.tenants import SqlEngine, TenantConfig
from accounts.models.users import StaffRole
from accounts.tenants.errors import TenantNotFound


class EngineForm(ReasonForm):
    """The engine of a tenant's queries."""

    engine = forms.ChoiceField(label="Queries run on", choices=SqlEngine.choices)
    field_order = ("engine", "reason")


class EnginePage(TenantActPage):
    """Choose the engine of a tenant's queries, from the next query on."""

    title = "Engine of queries"
    name = "engine.chosen"
    button = "Choose"
    effect = (
        "Spark will run only statements that it answers as DuckDB does, and only if SQL_SPARK_URL is set. "
        "DuckDB runs all others; a query that reads too much for DuckDB is refused."
    )
    needs = StaffRole.ADMIN
    needs_live = True
    form_class = EngineForm

    def initial(self) -> dict[str, Any]:
        engine = TenantConfig.objects.filter(pk=self.tenant.pk).values_list("sql_engine", flat=True).first()
        return {**super().initial(), "engine": engine}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        config = TenantConfig.objects.select_for_update().filter(pk=self.tenant.pk).first()
        if config is None:
            raise TenantNotFound
        before = config.sql_engine
        config.sql_engine = values["engine"]
        config.save(update_fields=["sql_engine"])
        return f"The engine of queries is {config.sql_engine} now.", {
            "engine": config.sql_engine,
            "engineBefore": before,
        }
