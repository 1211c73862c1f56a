"""A day of two Gateways: rules change, markers are made, a tenant is deleted. Contract: Cache status.

Both hold a cache, and none may answer from it what a write, or a marker that it has polled, made stale.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection

from accounts.access.credentials import create_pat
from accounts.access.scopes import Scope
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.workers import Child, build_pending, pending_days, read_until
from tests.conftest import ApiClient
from tests.gateway.gateway import Answer, Gateway, Statement, current_ms, to_ms
from tests.gateway.service import Service
from tests.objects import save_object, use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from pytest_django.live_server_helper import LiveServer

pytestmark = pytest.mark.slow

DAY: Final = datetime(2026, 3, 1, tzinfo=UTC)
TABLES: Final = ("sales.orders", "sales.items", "hr.people")
STEPS: Final = 600


def caching(table: str, **fields: Any) -> list[dict[str, Any]]:
    """Return a rule that caches what reads a table alone, and one that invalidates it after a write."""
    name = table.partition(".")[2]
    return [
        {
            "id": name,
            "name": f"Reads of {name}",
            "conditions": {"tables": table, "isReadOnly": True},
            "ttlSeconds": 3600,
        },
        {
            "id": f"{name}-written",
            "conditions": {"tables": {"containsAny": [table]}, "isDataChange": True},
            "invalidateRules": [name],
            **fields,
        },
    ]


DENIED: Final = {"id": "denied", "action": "deny", "conditions": {"userName": {"startsWith": "stranger"}}}
NIGHT: Final = [DENIED, *caching("sales.orders", requireInvalidation=True), *caching("sales.items")]
NOON: Final = [*NIGHT, *caching("hr.people")]


@dataclass
class FakeExecution:
    result: str
    warehouse: FakeWarehouse
    written: list[tuple[str, str]]

    def commit(self) -> None:
        for table in self.written:
            self.warehouse.versions[table] += 1

    def roll_back(self) -> None:
        self.written.clear()


class FakeWarehouse:
    """The result of a statement is the version of the table that it reads; a write makes another."""

    def __init__(self) -> None:
        self.versions: Counter[tuple[str, str]] = Counter()
        self.tenant = ""

    def execute(self, statement: Statement) -> FakeExecution:
        (table,) = statement.tables
        place = (self.tenant, table)
        return FakeExecution(str(self.versions[place]), self, [place] if statement.is_data_change else [])


def read(table: str, number: int) -> Statement:
    return Statement(f"SELECT {number} FROM {table}", "SELECT", [table], True, False)


def write(table: str) -> Statement:
    return Statement(f"UPDATE {table} SET a = ?", "UPDATE", [table], False, True, [1])


@dataclass
class Counted:
    """What the consumers saw, by tenant."""

    statuses: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    users: set[str] = field(default_factory=set)
    statements: Counter[str] = field(default_factory=Counter)
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)


class Play:
    """The service, two Gateways with one warehouse, and consumers."""

    def __init__(self, live_server: LiveServer, world: factories.World) -> None:
        self.world = world
        self.admin = ApiClient(
            factories.pat_token(
                world.platform_admin,
                *(Scope.CONFIG_READ, Scope.CONFIG_WRITE, Scope.CACHE_ADMIN, Scope.ANALYTICS_READ),
                tenants=["*"],
            )
        )
        _, pat = create_pat(
            owner=world.platform_admin,
            name="gateway",
            scopes=[Scope.CONFIG_READ, Scope.CACHE_ADMIN, Scope.LOGS_NOTIFY],
            tenants=["*"],
            accounts=(),
            endpoints=(),
        )
        self.warehouse = FakeWarehouse()
        self.tenants = [str(world.tenant.pk), str(world.stranger_tenant.pk)]
        for tenant in self.tenants:
            self.put_rules(tenant, NIGHT)
        self.services = [Service(live_server.url, pat) for _ in range(2)]
        self.gateways = [
            Gateway(
                service,
                self.warehouse,
                jwks_url=f"{live_server.url}/.well-known/jwks.json",
                issuer="http://testserver",
                write_object=lambda key, body: save_object(default_store(), key, body),
            )
            for service in self.services
        ]
        self.tokens = {
            self.tenants[0]: [(p.email, factories.sign_in(p)) for p in (world.owner, world.member)],
            self.tenants[1]: [(world.stranger.email, factories.sign_in(world.stranger))],
        }
        #: What each Gateway must know: the versions at its last poll, and after its own writes.
        self.known: list[Counter[tuple[str, str]]] = [Counter(), Counter()]
        #: In epoch ms, as `born_at` of answers.
        self.polled_at = [0, 0]
        self.counted: dict[str, Counted] = defaultdict(Counted)
        self.hits: list[tuple[str, Answer, int]] = []
        self.random = random.Random(7)  # noqa: S311 - the same day in every run
        self.manual = 0
        for number in range(2):
            self.poll(number)

    def put_rules(self, tenant: str, rules: list[dict[str, Any]]) -> None:
        answer = self.admin.put(f"/config/tenants/{tenant}/rules", {"rules": rules})
        assert answer.status_code == 200, answer.content

    def poll(self, number: int) -> None:
        self.known[number] = self.warehouse.versions.copy()
        self.polled_at[number] = current_ms()
        self.gateways[number].poll()

    def load_past_the_gateway(self, tenant: str, table: str) -> None:
        """An admin changes a table past the Gateway, and then makes a marker by hand."""
        self.warehouse.versions[tenant, table] += 1
        self.manual += 1
        answer = self.admin.post(
            f"/tenants/{tenant}/invalidation-markers",
            {"markerId": f"load-{self.manual}", "targetRuleId": table.partition(".")[2]},
        )
        assert answer.status_code == 201, answer.content

    def serve(self, first: int, last: int) -> None:
        """Let consumers ask, spread over the day."""
        for step in range(first, last):
            number = self.random.randrange(2)
            if step % 40 == 0:
                self.poll(number)
            tenant = self.random.choice(self.tenants)
            table = self.random.choice(TABLES)
            if step % 90 == 0:
                self.load_past_the_gateway(tenant, self.random.choice(TABLES[:2]))
            user, token = self.random.choice(self.tokens[tenant])
            if step % 100 == 50:
                token += "x"
            is_write = self.random.random() < 0.08
            statement = write(table) if is_write else read(table, self.random.randrange(3))
            self.warehouse.tenant = tenant
            at = DAY + timedelta(days=1) * step / STEPS
            answer = self.gateways[number].handle(token, tenant, statement, logged_at=at)
            self.look_at(number, tenant, table, answer)
            self.count(tenant, user, statement, answer)
            if is_write and answer.result is not None:
                self.known[number][tenant, table] = self.warehouse.versions[tenant, table]

    def look_at(self, number: int, tenant: str, table: str, answer: Answer) -> None:
        """No answer is older than what its Gateway knows."""
        if answer.cache_status == "HIT":
            assert answer.result is not None
            assert int(answer.result) >= self.known[number][tenant, table]
            self.hits.append((tenant, answer, self.polled_at[number]))

    def count(self, tenant: str, user: str, statement: Statement, answer: Answer) -> None:
        counted = self.counted[tenant]
        counted.statuses[answer.cache_status] += 1
        counted.statements[statement.standardized_sql] += 1
        kind = "cached" if answer.cache_status == "HIT" else "other"
        counted.bytes[kind] += len(answer.result or "")
        if answer.cache_status != "AUTH_ERROR":
            counted.users.add(user)
        if answer.rule_id is not None and answer.cache_status in {"HIT", "MISS", "BYPASS"}:
            counted.rules[answer.rule_id, answer.cache_status] += 1

    def flush(self) -> None:
        for gateway in self.gateways:
            gateway.flush()

    def assert_summaries(self) -> None:
        """The summaries say what was counted."""
        for tenant, counted in self.counted.items():
            statuses = counted.statuses
            misses = statuses["MISS"] + statuses["BYPASS"] + statuses["PASSTHROUGH"]
            day = self.admin.get(f"/tenants/{tenant}/summaries/{DAY:%Y/%m/%d}").json()
            assert (day["cacheHits"], day["cacheMisses"]) == (statuses["HIT"], misses)
            assert day["totalHits"] == statuses["HIT"] + misses
            assert day["uniqueUsers"] == len(counted.users)
            assert (day["cachedBytes"], day["passThroughBytes"]) == (
                counted.bytes["cached"],
                counted.bytes["other"],
            )
            assert {query["statement"]: query["count"] for query in day["queries"]} == counted.statements
            year = self.admin.get(f"/tenants/{tenant}/summaries/{DAY:%Y}").json()
            assert (year["totalCacheHits"], year["totalHits"]) == (statuses["HIT"], day["totalHits"])
            rules = self.admin.get(f"/tenants/{tenant}/summaries/{DAY:%Y}/rules").json()["rules"]
            assert {(rule["ruleId"], rule["cacheHits"]) for rule in rules if rule["cacheHits"]} == {
                (rule, count) for (rule, status), count in counted.rules.items() if status == "HIT"
            }
        gateways = Counter[str]()
        for gateway in self.gateways:
            for counts in gateway.counts.values():
                gateways += counts
        assert gateways == sum((counted.statuses for counted in self.counted.values()), Counter())

    def assert_no_hit_against_a_marker(self, tenant: str) -> None:
        """Hold every hit against all markers that its Gateway had polled, as the service lists them."""
        listed = self.admin.get(f"/tenants/{tenant}/invalidation-markers")
        markers = json.loads(b"".join(listed))["markers"]
        assert {marker["invalidatedBy"]["triggeredBy"] for marker in markers} == {
            "Manual",
            "Cross-rule invalidation",
        }
        for of, answer, polled_at in self.hits:
            assert answer.born_at is not None
            for marker in markers:
                invalidated_at = to_ms(marker["invalidatedAt"])
                if of == tenant and marker["targetRuleId"] == answer.rule_id and invalidated_at < polled_at:
                    assert answer.born_at > invalidated_at


@pytest.fixture
def play(live_server: LiveServer) -> Iterator[Play]:
    cache.clear()
    played = Play(live_server, factories.make_world())
    yield played
    # Each open connection keeps a thread of the server, and that one of the database.
    for service in played.services:
        service.close()
    cache.clear()


@pytest.mark.django_db(transaction=True)
def test_a_day(play: Play) -> None:
    kept, deleted = play.tenants
    play.serve(0, 200)
    play.flush()
    play.put_rules(kept, NOON)
    for number in range(2):
        play.poll(number)
    play.serve(200, 400)
    assert play.admin.delete(f"/config/tenants/{deleted}").status_code == 200
    for number, gateway in enumerate(play.gateways):
        play.poll(number)
        with pytest.raises(KeyError):
            gateway.handle("", deleted, read("sales.orders", 1))
    play.tenants.remove(deleted)
    play.serve(400, STEPS)
    play.flush()

    statuses = sum((counted.statuses for counted in play.counted.values()), Counter[str]())
    assert statuses.keys() == {"HIT", "MISS", "BYPASS", "PASSTHROUGH", "BLOCKED", "AUTH_ERROR"}
    assert ("people", "HIT") in play.counted[kept].rules
    assert ("people", "HIT") not in play.counted[deleted].rules
    play.assert_no_hit_against_a_marker(kept)
    call_command("rebuild", verbosity=0)
    play.assert_summaries()


@pytest.mark.django_db(transaction=True)
def test_a_worker_is_killed_while_the_day_is_served(
    play: Play,
    s3_url: str,  # noqa: F811
    settings: Any,
) -> None:
    use_store(settings, s3_url)
    arguments = (str(connection.settings_dict["NAME"]), s3_url)
    with (
        Child("tests.analytics.waiting_worker", *arguments) as killed,
        Child("tests.analytics.waiting_worker", *arguments) as worker,
    ):
        read_until(killed, "ready")
        read_until(worker, "ready")
        play.serve(0, 100)
        play.flush()
        assert pending_days() == [DAY.date()] * 2
        killed.send("queue")
        # One or both are in a build of the first half.
        read_until(killed, "waiting")
        play.serve(100, 200)
        killed.kill()
        play.flush()
        worker.send("go")
        build_pending(worker)
    play.assert_summaries()


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_must_invalidate_and_cannot_is_rolled_back(play: Play) -> None:
    tenant = play.tenants[0]
    play.warehouse.tenant = tenant
    # An owner removes the rules. The Gateway has not polled, and cannot record that they fired.
    play.put_rules(tenant, [])
    _, token = play.tokens[tenant][0]
    answer = play.gateways[0].handle(token, tenant, write("sales.orders"))
    assert (answer.cache_status, answer.result) == ("INVALIDATION_ERROR", None)
    assert play.warehouse.versions[tenant, "sales.orders"] == 0
