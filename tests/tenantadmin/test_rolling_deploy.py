"""During a rolling deploy, processes of the previous release write to the new schema."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from tests.admin.rows import make_row

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
