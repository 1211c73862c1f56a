"""During a rolling deploy, processes of the previous release write to the new schema."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddIndex

from tenantadmin.lib.database.months import MonthlyModel
from tests.admin.rows import make_row, our_models

pytestmark = pytest.mark.django_db

#: The last migrations of the previous release, 0.2.0. Replace them when a release is made.
PREVIOUS: Final = {
    "accounts": "0032_words",
    "analytics": "0017_variants_of_recommendations",
    "logs": "0011_query_engine",
    "rules": "0005_markers_made_by",
    "tosapp": "0002_lists_at_scale",
}


def previous_models() -> list[Any]:
    """Return the models as the previous release knows them."""
    loader = MigrationLoader(connection)
    state = loader.project_state(list(PREVIOUS.items()))
    return [model for model in state.apps.get_models() if model._meta.app_label in PREVIOUS]


def test_the_previous_release_can_write_every_row() -> None:
    models = previous_models()
    assert len(models) > 20
    for model in models:
        row = make_row(model)
        assert model._default_manager.filter(pk=row.pk).exists(), model


def test_new_indexes_of_earlier_tables_are_created_concurrently() -> None:
    """Otherwise no process can write to the table until the index is made."""
    loader = MigrationLoader(connection)
    earlier = {key for last in PREVIOUS.items() for key in loader.graph.forwards_plan(last)}
    # PostgreSQL cannot do so for a table in partitions.
    in_partitions = {it._meta.label_lower for it in our_models() if issubclass(it, MonthlyModel)}
    tables = {it._meta.label_lower for it in previous_models()} - in_partitions
    locking = [
        f"{app}.{name}: {operation.describe()}"
        for (app, name), migration in loader.disk_migrations.items()
        if app in PREVIOUS and (app, name) not in earlier
        for operation in migration.operations
        if type(operation) is AddIndex and f"{app}.{operation.model_name}" in tables
    ]
    assert not locking
