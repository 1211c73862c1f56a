"""During a rolling deploy, processes of the previous release write to the new schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddConstraint, AddField, AddIndex

from tenantadmin.lib.database.indexes import AddIndexWithoutLock
from tests.admin.filling import make_row
from tests.tenantadmin.previous_release import MIGRATIONS

if TYPE_CHECKING:
    from django.db.migrations.operations.base import Operation

pytestmark = pytest.mark.django_db


def previous_models() -> list[Any]:
    """Return the models as the previous release knows them."""
    loader = MigrationLoader(connection)
    state = loader.project_state(list(MIGRATIONS.items()))
    return [model for model in state.apps.get_models() if model._meta.app_label in MIGRATIONS]


def test_the_previous_release_can_write_every_row() -> None:
    models = previous_models()
    assert len(models) > 20
    for model in models:
        row = make_row(model)
        assert model._default_manager.filter(pk=row.pk).exists(), model


def new_operations(*, atomic: bool | None = None) -> Iterator[tuple[str, str, Operation]]:
    """Yield app, migration and operation of all migrations since the previous release."""
    loader = MigrationLoader(connection)
    earlier = {key for last in MIGRATIONS.items() for key in loader.graph.forwards_plan(last)}
    for (app, name), migration in loader.disk_migrations.items():
        if app in MIGRATIONS and (app, name) not in earlier and atomic in {None, migration.atomic}:
            for operation in migration.operations:
                yield app, name, operation


def makes_index(field: Any) -> bool:
    return bool(field.db_index or field.unique)


def test_new_indexes_of_earlier_tables_lock_no_table() -> None:
    """Otherwise no process can write to the table until the index is made."""
    tables = {model._meta.label_lower for model in previous_models()}
    # A field with an index or a constraint makes an index, too.
    locking = [
        f"{app}.{name}: {operation.describe()}"
        for app, name, operation in new_operations()
        if (isinstance(operation, AddIndex) and type(operation) is not AddIndexWithoutLock)
        or isinstance(operation, AddConstraint)
        or (isinstance(operation, AddField) and makes_index(operation.field))
        if f"{app}.{operation.model_name}".lower() in tables
    ]
    assert not locking


def test_a_migration_that_is_no_transaction_can_run_again() -> None:
    others = [
        f"{app}.{name}: {operation.describe()}"
        for app, name, operation in new_operations(atomic=False)
        if type(operation) is not AddIndexWithoutLock
    ]
    assert not others
