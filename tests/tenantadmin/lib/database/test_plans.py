"""Lists are planned for the values of their filters, although the connection prepares statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.urls import reverse

from accounts.models import User
from tests import factories
from tests.admin.rows import our_models
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import Model
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _each_query_is_prepared() -> Iterator[None]:
    connection.ensure_connection()
    threshold = connection.connection.prepare_threshold
    connection.connection.prepare_threshold = 0
    yield
    connection.connection.prepare_threshold = threshold


@pytest.fixture(autouse=True)
def _each_plan_is_generic() -> None:
    """Make PostgreSQL use one plan for all values from the first execution on, not after the fifth."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")


def plans(text: str) -> list[tuple[int, int]]:
    """Return how many generic and custom plans each prepared statement with ``text`` had."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE strpos(statement, %s) > 0",
            [text],
        )
        return list(cursor.fetchall())


def test_other_queries_share_a_plan() -> None:
    assert not User.objects.filter(email="plan@example.org")
    assert plans('FROM "accounts_user"') == [(1, 0)]


def test_the_history_of_all_documents_is_planned_for_its_reader(
    world: factories.World,
) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    assert client.get("/config/history").status_code == 200
    assert plans('ORDER BY "accounts_revision"."changed_at"') == [(0, 1)]


@pytest.mark.parametrize("model", our_models(), ids=lambda model: model._meta.label)
def test_lists_of_staff_are_planned_for_the_searched_value(
    client: Client, world: factories.World, model: type[Model]
) -> None:
    client.force_login(world.platform_admin)
    options = model._meta
    address = reverse(f"admin:{options.app_label}_{options.model_name}_changelist")
    assert client.get(f"{address}?q=nothing").status_code == 200
    assert plans(" LIMIT 101") in ([(0, 1)], [])
