"""``docs/walks.md`` names the files that requests enter, and counts them right."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from analytics import tasks
from logs.pending import BUILDS
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_object

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


def sections() -> dict[str, tuple[int, str]]:
    """Return number and text of each walk by its title."""
    parts = re.split(r"^## (.+) \((\d+)\)$", (ROOT / "docs/walks.md").read_text(), flags=re.MULTILINE)
    return {
        title: (int(number), text)
        for title, number, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    }


WALKS: Final = sections()
#: Some files of a folder, which are not counted.
FOLDER: Final = re.compile(r"`[\w/]+/\*\.py`")
ENTRANCE: Final = "The entrance of every request"


def named(text: str) -> set[str]:
    """Return the files in ``text``: ``folder/name.py``, ``folder/{one,other}.py``, ``folder/*.py``."""
    names: set[str] = set()
    for folder, several, one in re.findall(r"`((?:\w+/)+)(?:\{([\w,]+)\}|(\w+|\*))\.py`", text):
        for stem in several.split(",") if several else [one]:
            names.update(str(path.relative_to(ROOT)) for path in ROOT.glob(f"{folder}{stem}.py"))
    return names


#: It is entered if lines are JSON, which an earlier test of this process may have configured.
LOG_LINES = {"tenantadmin/lib/core/log_lines.py"}


def files_entered(walk: Callable[[], Any]) -> set[str]:
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
    return {str(name) for name in names if name.parts[0] in APPS} - LOG_LINES


def read_all(client: ApiClient, method: str, address: str, body: Any) -> None:
    """Send a request, and read the response to its end, also if it is streamed."""
    client.request(method, address, body).getvalue()


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
    for due in BUILDS.take(limit=10):
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


@pytest.mark.parametrize("title", WALKS)
def test_the_number_of_a_walk_counts_its_list(title: str) -> None:
    number, text = WALKS[title]
    text, _, _ = text.partition("\nSometimes also")
    files = named(FOLDER.sub("", text))
    if title not in (ENTRANCE, "A build by Celery"):
        files |= named(WALKS[ENTRANCE][1])
    assert len(files) == number, " ".join(sorted(files))


def test_requests_enter_only_the_files_of_their_walks(
    built: factories.World, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What it does depends on the time that a request takes.
    monkeypatch.setattr("accounts.budgets.use_budget", lambda *_, **__: None)
    rules = [{"rules": [{**RULE, "ttlSeconds": seconds}]} for seconds in (120, 180)]
    queries = [{"sql": f"SELECT count(*) AS {name} FROM proxy_logs"} for name in "ab"]
    markers = [{"markerId": f"inv-{number}", "targetRuleId": "reports"} for number in (1, 2)]
    requests: dict[str, tuple[str, str, list[Any]]] = {
        "PUT rules": ("PUT", "/config/tenants/{}/rules", rules),
        "POST query": ("POST", "/tenants/{}/query", queries),
        "A day summary": ("GET", f"/tenants/{{}}/summaries/{DAY}", [None, None]),
        "A marker": ("POST", "/tenants/{}/invalidation-markers", markers),
    }
    entrance = named(WALKS[ENTRANCE][1])
    for title, (method, path, bodies) in requests.items():
        address = path.format(built.tenant.pk)
        first = client.request(method, address, bodies[0])
        assert first.status_code < 300, first.content
        entered = files_entered(partial(read_all, client, method, address, bodies[1]))
        assert entered <= entrance | named(WALKS[title][1]), title
        assert entrance <= entered, title


def test_a_build_enters_only_the_files_of_its_walk(built: factories.World) -> None:
    put_logs(built.tenant.pk, "b")
    entered = files_entered(lambda: build(built.tenant.pk))
    assert entered <= named(WALKS["A build by Celery"][1])
