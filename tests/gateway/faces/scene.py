"""A tenant, its rules, a warehouse, and a Gateway on the network in front of it, for real drivers."""

from __future__ import annotations

import json
import socketserver
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import psycopg
import pytest
import requests
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection

from accounts.access.scopes import Scope
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics import oracle
from tests.conftest import ApiClient
from tests.gateway.faces.tls import HOST, make_certificate
from tests.gateway.gateway import Gateway
from tests.gateway.service import Service
from tests.objects import save_object

if TYPE_CHECKING:
    from pytest_django.live_server_helper import LiveServer

VISIT: Final = Path(__file__).parents[2] / "drivers/scripts/visit.py"

_TABLES: Final = """
    DROP SCHEMA IF EXISTS sales, hr, secret CASCADE;
    CREATE SCHEMA sales; CREATE SCHEMA hr; CREATE SCHEMA secret;
    CREATE TABLE sales.orders AS SELECT 1 AS id, 10 AS amount;
    CREATE TABLE sales.targets AS SELECT 1 AS id, 100 AS amount;
    CREATE TABLE secret.notes AS SELECT 'no' AS text;
    CREATE TABLE hr.people (name text, owner text);
    INSERT INTO hr.people VALUES ('Nils', 'owner@example.org'), ('Mia', 'member@example.org');
"""
_RULES: Final[list[dict[str, Any]]] = [
    {"id": "no-secrets", "action": "deny", "conditions": {"tables": {"containsAny": ["secret.*"]}}},
    {
        "id": "people",
        "conditions": {"tables": {"containsAny": ["hr.*"]}, "isReadOnly": True},
        "varyBy": ["userName"],
    },
    {"id": "targets", "conditions": {"tables": "sales.targets", "isReadOnly": True}, "varyBy": []},
    {"id": "orders", "conditions": {"tables": "sales.orders", "isReadOnly": True}, "varyBy": []},
    {
        "id": "orders-written",
        "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isDataChange": True},
        "invalidateRules": ["orders"],
    },
    {
        "id": "targets-written",
        "conditions": {"tables": {"containsAny": ["sales.targets"]}, "isDataChange": True},
        "invalidateRules": ["targets"],
        "requireInvalidation": True,
    },
]

#: What a driver asks: the user, the statement, its parameters.
Step: TypeAlias = tuple[str, str, list[Any]]
PEOPLE: Final = "SELECT name FROM hr.people WHERE owner = current_setting('app.user')"
ORDER: Final = "SELECT amount FROM sales.orders WHERE id = ?"
STEPS: Final[list[Step]] = [
    ("ann", ORDER, [1]),
    ("bob", ORDER, [1]),
    ("ann", ORDER, [2]),
    ("ann", PEOPLE, []),
    ("bob", PEOPLE, []),
    ("ann", PEOPLE, []),
    ("bob", PEOPLE, []),
    ("ann", "SELECT text FROM secret.notes", []),
    ("ann", "UPDATE sales.orders SET amount = amount + 1 WHERE id = 1", []),
    ("bob", ORDER, [1]),
    ("ann", ORDER, [1]),
    ("ann", "UPDATE sales.targets SET amount = 0", []),
    ("bob", "SELECT amount FROM sales.targets", []),
]
#: The rows of each answer, or a part of the message of its error.
ANSWERS: Final[list[Any]] = [
    [["10"]],
    [["10"]],
    [],
    [["Nils"]],
    [["Mia"]],
    [["Nils"]],
    [["Mia"]],
    "The rule no-secrets refuses this statement.",
    [],
    [["11"]],
    [["11"]],
    "Nothing was changed, because cached results could not be made stale. Try again.",
    [["100"]],
]
#: What the log says of them.
LOGGED: Final = [
    ("MISS", "orders"),
    ("HIT", "orders"),
    ("MISS", "orders"),
    ("MISS", "people"),
    ("MISS", "people"),
    ("HIT", "people"),
    ("HIT", "people"),
    ("BLOCKED", "no-secrets"),
    ("BYPASS", "orders-written"),
    ("MISS", "orders"),
    ("HIT", "orders"),
    ("INVALIDATION_ERROR", "targets-written"),
    ("MISS", "targets"),
]


class FailingService(Service):
    """It cannot record that a write of the targets fired."""

    def invalidate(self, tenant: str, rule_id: str, statement: str) -> list[dict[str, Any]]:
        if rule_id == "targets-written":
            raise requests.ConnectionError("the service does not answer")
        return super().invalidate(tenant, rule_id, statement)


@dataclass
class Scene:
    """The Gateway, and what its consumers are told of it."""

    gateway: Gateway
    tenant_id: str
    admin: ApiClient
    warehouse: str
    tls: ssl.SSLContext
    authority: Path
    tokens: dict[str, str]
    users: dict[str, str]
    objects: dict[str, bytes] = field(default_factory=dict)

    def visit(
        self,
        python: Path | str,
        driver: str,
        port: int,
        *,
        steps: Sequence[Step] = STEPS,
        environment: Mapping[str, str] | None = None,
        script: Path = VISIT,
    ) -> list[Any]:
        """Let a driver ask. Return, for each step, its rows as texts, or the message of its error."""
        place = {
            "driver": driver,
            "host": HOST,
            "port": port,
            "ca": str(self.authority),
            "tokens": self.tokens,
            "users": self.users,
            "steps": steps,
            "database": psycopg.conninfo.conninfo_to_dict(self.warehouse)["dbname"],
        }
        done = subprocess.run(
            [str(python), str(script)],
            input=json.dumps(place),
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.authority.parent), **(environment or {})},
        )
        assert done.returncode == 0, done.stderr
        answers: list[Any] = json.loads(done.stdout.splitlines()[-1])
        return answers

    def read_log(self) -> list[dict[str, Any]]:
        """Write the log, and return its entries."""
        self.gateway.flush()
        lines = [line for body in self.objects.values() for line in body.splitlines()]
        return [json.loads(line) for line in lines]

    def check_summaries(self) -> None:
        """Build the day of the log, and compare its documents with what the tests' oracle makes of it."""
        call_command("rebuild", verbosity=0)
        day = datetime.fromtimestamp(self.read_log()[0]["timestamp"] / 1000, UTC).date()
        rows = oracle.read_day(self.objects, day)
        place = f"/tenants/{self.tenant_id}/summaries/{day:%Y}"
        for path, document in (
            (f"{day:%m/%d}", oracle.day_document(rows)),
            ("rules", oracle.rules_document(rows)),
        ):
            assert self.admin.get(f"{place}/{path}").json() == document


#: What rules do not decide.
BESIDE: Final = {"SPOOFED", "EXECUTOR", "TELEMETRY"}


def check(answers: Sequence[Any], log: Sequence[Mapping[str, Any]], *, sessions: int = 2) -> Counter[str]:
    """Hold the answers and the log of a driver against what is right. Return the other statuses."""
    for answer, expected in zip(answers, ANSWERS, strict=True):
        assert expected in answer if isinstance(expected, str) else answer == expected, answers
    tables = {"sales.orders", "sales.targets", "hr.people", "secret.notes"}
    decided = [entry for entry in log if {*entry.get("tables", ())} & tables]
    found = [(entry["cacheStatus"], entry["matchedRule"]) for entry in decided]
    assert found == LOGGED, found
    assert {entry["statusCode"] for entry in log} == {200}
    assert {entry["userName"] for entry in decided} == {"owner@example.org", "member@example.org"}
    assert len({entry["sessionId"] for entry in decided}) == sessions
    return Counter(entry["cacheStatus"] for entry in log if entry not in decided)


@contextmanager
def serving(face: socketserver.BaseServer) -> Iterator[None]:
    """Serve a face while the block runs."""
    thread = threading.Thread(target=face.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        face.shutdown()
        face.server_close()
        thread.join()


@pytest.fixture
def scene(live_server: LiveServer, tmp_path: Path) -> Iterator[Scene]:
    cache.clear()
    world = factories.make_world()
    tenant_id = str(world.tenant.pk)
    pat = factories.pat_secret(
        world.platform_admin, Scope.CONFIG_READ, Scope.CACHE_ADMIN, Scope.LOGS_NOTIFY, tenants=["*"]
    )
    admin = ApiClient(
        factories.pat_token(
            world.platform_admin, Scope.CONFIG_WRITE, Scope.CONFIG_READ, Scope.ANALYTICS_READ, tenants=["*"]
        )
    )
    written = admin.put(f"/config/tenants/{tenant_id}/rules", {"rules": _RULES})
    assert written.status_code == 200, written.content
    parts = connection.settings_dict
    dsn = psycopg.conninfo.make_conninfo(host=parts["HOST"], user=parts["USER"], dbname=parts["NAME"])
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute(_TABLES)
    tls, authority = make_certificate(tmp_path)
    objects: dict[str, bytes] = {}

    def write_object(key: str, body: bytes) -> None:
        objects[key] = body
        save_object(default_store(), key, body)

    service = FailingService(live_server.url, pat)
    gateway = Gateway(
        service,
        None,  # type: ignore[arg-type]  # each session has its own
        jwks_url=f"{live_server.url}/.well-known/jwks.json",
        issuer="http://testserver",
        write_object=write_object,
    )
    gateway.poll()
    people = {"ann": world.owner, "bob": world.member}
    yield Scene(
        gateway,
        tenant_id,
        admin,
        dsn,
        tls,
        authority,
        {name: factories.sign_in(person) for name, person in people.items()},
        {name: person.email for name, person in people.items()},
        objects,
    )
    service.close()
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute("DROP SCHEMA sales, hr, secret CASCADE")
    cache.clear()
