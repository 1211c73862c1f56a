"""A tenant with logs, served for clients. Tests are left out if their programs are not installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Final

import pytest
from django.core.cache import cache
from django.core.management import call_command

from accounts.access.scopes import Scope
from tenantadmin.celery import app
from tests import factories
from tests.beat import starting_jobs
from tests.clients.programs import (
    NODE_MODULES,
    OPENAPI_GENERATOR,
    PYTHON_CLIENT,
    SQLALCHEMIES,
    SUPERSET,
    TOOLS,
    Service,
)
from tests.objects import save_entries

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter
    from pytest_django.live_server_helper import LiveServer

_SCOPES: Final = (
    *(Scope.CONFIG_READ, Scope.CONFIG_WRITE, Scope.CACHE_ADMIN),
    *(Scope.ANALYTICS_READ, Scope.LOGS_READ, Scope.LOGS_QUERY),
)
_MIDNIGHT_MS: Final = 1_772_323_200_000
_left_out: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    has = {
        "node": shutil.which("node") is not None and NODE_MODULES.is_dir(),
        "java": shutil.which("java") is not None and OPENAPI_GENERATOR.is_dir(),
        "installed": PYTHON_CLIENT.is_dir(),
        "sqlalchemy": SQLALCHEMIES[0].is_dir(),
        "superset": SUPERSET.is_dir(),
        "tools": (TOOLS / "stamp").is_file(),
    }
    left_out = [
        item
        for item in items
        if any(item.get_closest_marker(name) and not is_there for name, is_there in has.items())
    ]
    if left_out:
        _left_out.extend(item.nodeid for item in left_out)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    if _left_out:
        terminalreporter.write_line(
            f"{len(_left_out)} tests of clients were LEFT OUT: they need Node, Java or `make test-superset`.",
            yellow=True,
        )


@pytest.fixture
def worker() -> Iterator[None]:
    """Run a task, such as a replay, in the request that queues it."""
    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


@pytest.fixture
def service(live_server: LiveServer) -> Iterator[Service]:
    world = factories.make_world()
    cache.clear()
    entries = [
        {
            "timestamp": _MIDNIGHT_MS + 7 * 3_600_000 + 1000 * number,
            "userName": "Ana",
            "standardizedSql": "SELECT 1",
            "cacheStatus": status,
            "cacheKey": "k1",
            "responseTimeMs": 5,
            "responseSize": 10,
        }
        for number, status in ((1, "MISS"), (3, "HIT"), (2, "MISS"))
    ]
    save_entries(world.tenant.pk, date(2026, 3, 1), entries, name="07/a.json")
    call_command("rebuild", tenant=world.tenant.pk, verbosity=0)
    pat = factories.pat_secret(world.owner, *_SCOPES, tenants=[str(world.tenant.pk)])
    with starting_jobs():
        yield Service(str(live_server.url), pat, str(world.tenant.pk))
