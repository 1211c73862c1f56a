"""Prepared statements: lists are planned for their filters, and a migration stops no process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import NotSupportedError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from analytics.models import TenantHealth
from tenantadmin.lib.database.plans import retry_after_migration
from tests import factories
from tests.admin.filling import our_models
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.db.models import Model
    from django.test import Client

pytestmark = pytest.mark.django_db


def changed_type(name: str) -> None:
    """Change the type of the column of a table over another connection, as a migration does."""
    with psycopg.connect(**connection.get_connection_params()) as own:
        own.execute(f"ALTER TABLE {name} ALTER number TYPE bigint")


@pytest.fixture
def table(transactional_db: None) -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE changing (number integer)")
        yield "changing"
        cursor.execute("DROP TABLE changing")


def read(name: str) -> list[tuple[int]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {name}")
        return list(cursor.fetchall())


def test_a_changed_column_stops_a_process_without_the_wrapper(table: str) -> None:
    assert read(table) == []
    changed_type(table)
    for _ in range(2):
        with pytest.raises(NotSupportedError, match="cached plan must not change result type"):
            read(table)


def test_a_prepared_statement_is_sent_again_after_a_migration(table: str) -> None:
    with connection.execute_wrapper(retry_after_migration):
        assert read(table) == []
        changed_type(table)
        assert read(table) == []


def test_a_transaction_fails_once_after_a_migration(table: str) -> None:
    with connection.execute_wrapper(retry_after_migration):
        assert read(table) == []
        changed_type(table)
        with pytest.raises(NotSupportedError), transaction.atomic():
            read(table)
        with transaction.atomic():
            assert read(table) == []


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


def test_conditions_of_partial_indexes_have_no_parameter() -> None:
    """One plan for all values cannot use an index of some values."""
    for rows in (TenantHealth.objects.stale(), TenantHealth.objects.with_quarantine()):
        assert rows.query.sql_with_params()[1] == ()


def test_the_history_of_all_documents_is_planned_for_its_reader(
    world: factories.World,
) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    with CaptureQueriesContext(connection) as captured:
        assert client.get("/config/history").status_code == 200
    rows = 'ORDER BY "accounts_revision"."changed_at"'
    assert sum(rows in query["sql"] for query in captured) == 1
    assert plans(rows) == []


@pytest.mark.parametrize("model", our_models(), ids=lambda model: model._meta.label)
def test_lists_of_staff_are_planned_for_the_searched_value(
    client: Client, world: factories.World, model: type[Model]
) -> None:
    client.force_login(world.platform_admin)
    options = model._meta
    address = reverse(f"admin:{options.app_label}_{options.model_name}_changelist")
    assert client.get(f"{address}?q=nothing").status_code == 200
    assert plans(" LIMIT 101") == []
