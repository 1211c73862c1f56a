"""The walks of ``docs/walks.md`` enter no more files than is said there."""

from __future__ import annotations

import gc
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from analytics import tasks
from logs.pending import take_due
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_object

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

pytestmark = pytest.mark.django_db(transaction=True)

ROOT: Final = Path(__file__).parents[1]
APPS: Final = ("accounts", "analytics", "logs", "rules", "tenantadmin", "tosapp")
DAY: Final = "2026/03/01"
MIDNIGHT_MS: Final = 1_772_323_200_000
RULE: Final = {
    "id": "reports",
    "action": "cache",
    "conditions": {"tables": {"containsAny": ["sales.orders"]}},
    "ttlSeconds": 60,
}


def stated(title: str) -> int:
    found = re.search(
        rf"^## {re.escape(title)} \((\d+)\)$", (ROOT / "docs/walks.md").read_text(), re.MULTILINE
    )
    assert found is not None
    return int(found[1])


def files_entered(walk: Callable[[], Any]) -> list[str]:
    """Return the files of the project whose functions `walk` runs in this thread."""
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            entered[frame.f_code.co_filename] = None

    # Finalizers of earlier tests' objects, which the garbage collector calls, do not count.
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
        gc.enable()
    names = (Path(name).relative_to(ROOT) for name in entered if name.startswith(str(ROOT)))
    return sorted(str(name) for name in names if name.parts[0] in APPS)


def put_logs(tenant: object, name: str) -> None:
    entry = {
        "timestamp": MIDNIGHT_MS,
        "userName": "Ana",
        "standardizedSql": "SELECT 1",
        "cacheStatus": "MISS",
    }
    save_object(default_store(), f"{tenant}/logs/{DAY}/00/{name}.json", json.dumps(entry).encode())


def build(tenant: object) -> None:
    """Do what the worker does about a tenant whose logs changed."""
    tasks.refresh_tenant(str(tenant))
    for due in take_due(limit=10):
        if due.day is not None:
            tasks.refresh_day(str(tenant), due.day.isoformat())
    tasks.refresh_periods(str(tenant))


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    scopes = ("config:write", "cache-admin", "analytics:read", "logs:query")
    return ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))


@pytest.fixture
def built(world: factories.World, client: ApiClient) -> factories.World:
    """A tenant with a day of logs and rules."""
    put_logs(world.tenant.pk, "a")
    build(world.tenant.pk)
    answer = client.put(f"/config/tenants/{world.tenant.pk}/rules", {"rules": [RULE]})
    assert answer.status_code == 200, answer.content
    return world


@pytest.mark.parametrize(
    ("title", "method", "path", "bodies"),
    [
        (
            *("PUT rules", "PUT", "/config/tenants/{}/rules"),
            [{"rules": [{**RULE, "ttlSeconds": seconds}]} for seconds in (120, 180)],
        ),
        (
            *("POST query", "POST", "/tenants/{}/query"),
            [{"sql": f"SELECT count(*) AS {name} FROM proxy_logs"} for name in "ab"],
        ),
        ("A day summary", "GET", f"/tenants/{{}}/summaries/{DAY}", [None] * 2),
        (
            *("A marker", "POST", "/tenants/{}/invalidation-markers"),
            [{"markerId": f"inv-{number}", "targetRuleId": "reports"} for number in (1, 2)],
        ),
    ],
)
def test_a_request_enters_no_more_files_than_is_said(
    built: factories.World, client: ApiClient, title: str, method: str, path: str, bodies: list[Any]
) -> None:
    address = path.format(built.tenant.pk)
    first = client.request(method, address, bodies[0])
    assert first.status_code < 300, first.content
    files = files_entered(lambda: client.request(method, address, bodies[1]))
    assert len(files) <= stated(title), " ".join(files)


def test_a_build_enters_no_more_files_than_is_said(built: factories.World) -> None:
    put_logs(built.tenant.pk, "b")
    files = files_entered(lambda: build(built.tenant.pk))
    assert len(files) <= stated("A build by Celery"), " ".join(files)
