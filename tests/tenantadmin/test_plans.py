"""Queries that are planned for their values are not prepared, although the connection prepares the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.urls import reverse

from accounts.models import User
from tenantadmin.lib.database.plans import planned_with_values
from tests import factories
from tests.admin.rows import our_models
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _each_query_is_prepared() -> Iterator[None]:
    connection.ensure_connection()
    threshold = connection.connection.prepare_threshold
    connection.connection.prepare_threshold = 0
    yield
    connection.connection.prepare_threshold = threshold


def prepared(text: str) -> list[str]:
    """Return the statements with ``text`` that the connection has prepared."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [statement for (statement,) in cursor.fetchall() if text in statement]


def test_a_query_in_the_block_is_not_prepared_and_one_after_it_is() -> None:
    with planned_with_values():
        assert not User.objects.filter(email="plan@example.org")
    assert not prepared('FROM "accounts_user"')
    with pytest.raises(ZeroDivisionError), planned_with_values():
        _ = 1 / 0
    assert not User.objects.filter(email="plan@example.org")
    assert prepared('FROM "accounts_user"')


def test_the_history_of_all_documents_is_planned_for_its_reader(
    world: factories.World,
) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    assert client.get("/config/history").status_code == 200
    assert not prepared('ORDER BY "accounts_revision"."changed_at"')


def test_lists_of_staff_are_planned_for_what_is_searched(client: Client, world: factories.World) -> None:
    client.force_login(world.platform_admin)
    for model in our_models():
        options = model._meta
        address = reverse(f"admin:{options.app_label}_{options.model_name}_changelist")
        assert client.get(f"{address}?q=nothing").status_code == 200, address
        assert not prepared(" LIMIT 101"), address
