"""Measure administration with 100,000 tenants, 1,000,000 revisions and 1,000,000 markers.

Goals: GET of rules, with 304 and in full (100 rules), reaches at least 0.6 of the rate of a bare DRF view.
The cost of a poll of the manifest depends on the changes, not on the tenants. Lists stream in bounded memory.
A PUT of 1,000 rules takes at most 3 times its lint, and that lint at most 100 times parsing the JSON.

``BENCH_SCALE=0.01`` makes everything a hundred times smaller.
"""

from __future__ import annotations

import http.client
import json
import os
import time
import tracemalloc
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from bench import harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from uuid import UUID

    from tenantadmin.lib.core.structs import JsonStruct
    from tests.factories import World

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
TENANTS = int(100_000 * SCALE)
REVISIONS_PER_TENANT = 10
MARKERS_PER_TENANT = 10
#: Rounds of a comparison. An odd number, so that there is a median round.
ROUNDS = 5

_TENANTS = """
    INSERT INTO accounts_tenant (id, account_id, name, name_key, created_at, modified_at)
    SELECT gen_random_uuid(), %s, 'Tenant ' || n, 'tenant ' || n, moment, moment
    FROM (
        SELECT n,
            date_trunc('milliseconds', now()) - interval '30 days' + n * interval '20 milliseconds' AS moment
        FROM generate_series(1, %s) AS n
    ) AS numbered
"""
_CONFIGS = """
    INSERT INTO accounts_tenantconfig (tenant_id, document, seq, modified_at)
    SELECT id, jsonb_build_object('tenantName', name, 'fqdns', '[]'::jsonb), 0, modified_at
    FROM accounts_tenant ON CONFLICT DO NOTHING
"""
_RULESETS = """
    INSERT INTO rules_ruleset (tenant_id, rules, seq, cache_bust, modified_at)
    SELECT id, '[]', 0, lpad(to_hex(1), 20, '0'), modified_at FROM accounts_tenant ON CONFLICT DO NOTHING
"""
_REVISIONS = """
    INSERT INTO accounts_revision (
        kind, tenant_id, account_id, seq, action, "user", changed_at, summary, document
    )
    SELECT 'config', id, account_id, n, 'update', 'u' || n || '@example.org',
        modified_at + n * interval '1 hour', '{"changedFields": 1}', '{"tenantName": "x"}'
    FROM accounts_tenant CROSS JOIN generate_series(1, %s) AS n
"""
_MARKERS = """
    INSERT INTO rules_marker (tenant_id, marker_id, target_rule_id, ttl_seconds, invalidated_at, expires_at,
        created_at, metadata, invalidated_by)
    SELECT id, 'm' || n, 'r' || n %% 3, 86400, modified_at, modified_at + interval '1 day', modified_at,
        '{}', '{}'
    FROM accounts_tenant CROSS JOIN generate_series(1, %s) AS n
"""


def main() -> None:
    with harness.environment() as directory:
        from tests import factories  # noqa: PLC0415  # needs Django

        world = factories.make_world()
        started = time.perf_counter()
        fill(world.account.pk)
        harness.console.print(
            f"{TENANTS:,} tenants, {TENANTS * REVISIONS_PER_TENANT:,} revisions and "
            f"{TENANTS * MARKERS_PER_TENANT:,} markers in {time.perf_counter() - started:.0f} s"
        )
        write_rules(world.tenant.pk, 100)
        measure_requests(directory, world)
        measure_memory(world)
        measure_writes(world)


def fill(account_id: UUID) -> None:
    """Insert all rows, as the service would have stored them."""
    from django.db import connection  # noqa: PLC0415  # needs Django

    with connection.cursor() as cursor:
        cursor.execute(_TENANTS, [account_id, TENANTS])
        cursor.execute(_CONFIGS)
        cursor.execute(_RULESETS)
        cursor.execute(_REVISIONS, [REVISIONS_PER_TENANT])
        cursor.execute(_MARKERS, [MARKERS_PER_TENANT])
        cursor.execute("VACUUM ANALYZE")


def rules_document(count: int, *, regexes: bool = False) -> dict[str, Any]:
    """Return a ruleset of realistic rules. With ``regexes``, each has its own regular expression."""
    return {
        "rules": [
            {
                "id": f"rule-{number}",
                "name": f"Reports {number}",
                "conditions": {
                    "tables": {"containsAny": [f"sales.orders_{number}", f"sales.items_{number}"]},
                    "statementType": "SELECT",
                    "userName": {"notIn": ["etl", "migration"]},
                    **(
                        {"standardizedSql": {"regex": rf"(?i)from\s+sales\.orders_{number}\b.*where"}}
                        if regexes
                        else {}
                    ),
                },
                "ttlSeconds": 3600,
            }
            for number in range(count)
        ]
    }


def write_rules(tenant_id: UUID, count: int) -> None:
    from rules.write import write_ruleset  # noqa: PLC0415  # needs Django

    write_ruleset(tenant_id=tenant_id, document=rules_document(count), actor="bench@example.org")


def measure_requests(directory: Path, world: World) -> None:
    """Measure the most frequent requests of Gateways and dashboards, through granian."""
    from tests import factories  # noqa: PLC0415  # needs Django

    token = factories.sign_in(world.owner)
    wildcard = factories.pat_token(world.platform_admin, "config:read", tenants=["*"])
    rules = f"/config/tenants/{world.tenant.pk}/rules"
    with harness.granian() as port:
        current = Caller(port, token).get(rules)
        (directory / "bare" / "rules.json").write_bytes(current.body)
        (directory / "bare" / "nothing.json").write_bytes(b"null")
        rows = [
            compare(port, "GET rules, 304", rules, token, "nothing", etag=current.etag),
            compare(port, "GET rules, 100 rules", rules, token, "rules"),
        ]
        harness.show(
            "One granian worker, four kept-alive connections",
            ["request", "real /s", "bare /s", "ratio", "p50 ms", "p95 ms"],
            rows,
        )
        gateway = Caller(port, wildcard)
        manifest = gateway.get("/config/tenants/manifest")
        since = json.loads(manifest.body)["generatedAt"]
        history = "/config/history"
        second = json.loads(gateway.get(history).body)["_links"]["next"]["href"]
        rows = [
            timed("manifest, whole", lambda: gateway.get("/config/tenants/manifest")),
            timed(
                "manifest, since: no change", lambda: gateway.get(f"/config/tenants/manifest?since={since}")
            ),
            timed("list of all tenants", lambda: gateway.get("/config/tenants")),
            timed("history, first page", lambda: gateway.get(history)),
            timed("history, second page", lambda: gateway.get(second)),
            timed("history of one user", lambda: gateway.get(f"{history}?userId=u3@example.org")),
            timed("history of a member", lambda: Caller(port, token).get(history)),
        ]
        write_rules(world.tenant.pk, 100)
        rows.append(
            timed(
                "manifest, since: one change", lambda: gateway.get(f"/config/tenants/manifest?since={since}")
            )
        )
        harness.show("Single requests", ["request", "ms", "KiB"], rows)


class Answer:
    """The body and the ETag of a response."""

    def __init__(self, body: bytes, etag: str) -> None:
        self.body = body
        self.etag = etag


class Caller:
    """An API client with one connection."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> Answer:
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path} answered {answer.status}: {body.decode()}")
        return Answer(body, answer.headers.get("ETag", ""))


def compare(
    port: int, title: str, path: str, token: str, bare_name: str, *, etag: str | None = None
) -> list[object]:
    """Measure a path and the bare view in turn. Return the row of the round with the median ratio."""
    headers = {"Authorization": f"Bearer {token}", **({"If-None-Match": etag} if etag else {})}
    bare_request, request = harness.get_request(f"/bare/{bare_name}"), harness.get_request(path, headers)
    rounds = []
    for _ in range(ROUNDS):
        bare = harness.measure_rate(port, bare_request, seconds=2)
        real = harness.measure_rate(port, request, expect=304 if etag else 200, seconds=2)
        rounds.append((real.per_second / bare.per_second, real, bare))
    rounds.sort(key=itemgetter(0))
    ratio, real, bare = rounds[ROUNDS // 2]
    return [title, real.per_second, bare.per_second, ratio, real.p50_ms, real.p95_ms]


def timed(title: str, send: Callable[[], Answer], *, repeat: int = 5) -> list[object]:
    """Return a row with the best time of several requests, and the size of the response."""
    best, answer = float("inf"), send()
    for _ in range(repeat):
        started = time.perf_counter()
        answer = send()
        best = min(best, time.perf_counter() - started)
    return [title, best * 1000, len(answer.body) / 1024]


def measure_memory(world: World) -> None:
    """Measure the peak memory of the longest lists while they are streamed."""
    from accounts.access.rights import authenticate_token  # noqa: PLC0415  # needs Django
    from accounts.api.tenants import manifest_items, tenant_items  # noqa: PLC0415
    from accounts.tenants.listing import ManifestQuery, list_tenants, read_manifest  # noqa: PLC0415
    from tenantadmin.lib.http.hal import ItemList, links  # noqa: PLC0415
    from tenantadmin.lib.http.streaming import stream_links  # noqa: PLC0415
    from tests import factories  # noqa: PLC0415

    wildcard = factories.pat_token(world.platform_admin, "config:read", tenants=["*"])
    caller = authenticate_token(wildcard)
    lists: dict[str, Callable[[], Iterable[JsonStruct]]] = {
        "list of all tenants": lambda: tenant_items(list_tenants(caller)),
        "manifest, whole": lambda: manifest_items(read_manifest(caller, ManifestQuery()).rows),
    }
    rows = []
    for title, items in lists.items():
        tracemalloc.start()
        answer = stream_links(ItemList(links=links(self_href="/", parent="/")), items())
        size = sum(len(chunk) for chunk in answer)
        rows.append([title, size / 2**20, tracemalloc.get_traced_memory()[1] / 2**20])
        tracemalloc.stop()
    harness.show("Streaming", ["list", "MiB sent", "peak MiB"], rows)


def measure_writes(world: World) -> None:
    """Measure the lint of rules compared to parsing them, and the whole PUT compared to the lint."""
    from django.test import Client  # noqa: PLC0415  # needs Django

    from accounts.models import Account  # noqa: PLC0415  # needs Django
    from rules.lint import lint_ruleset  # noqa: PLC0415
    from tests import factories  # noqa: PLC0415  # needs Django

    Account.objects.filter(pk=world.account.pk).update(plan="enterprise")
    headers = {"Authorization": f"Bearer {factories.sign_in(world.owner)}"}
    client = Client(headers=headers, SERVER_NAME="127.0.0.1")
    path = f"/config/tenants/{world.tenant.pk}/rules"
    rows = []
    for count, regexes in ((250, False), (500, False), (1000, False), (2000, False), (1000, True)):
        text = json.dumps(rules_document(count, regexes=regexes))
        document = json.loads(text)

        def put(text: str = text) -> None:
            answer = client.put(path, text, content_type="application/json")
            assert answer.status_code == 200, answer.content[:500]

        # Parsing and lint never wait, and processor time does not include that of other programs.
        parse, lint = best_of(
            partial(json.loads, text), partial(lint_ruleset, document), clock=time.process_time
        )
        whole, lint_wall = best_of(put, partial(lint_ruleset, document), clock=time.perf_counter)
        title = f"{count:,} rules" + (", each with a pattern" if regexes else "")
        rows.append([title, parse, lint, lint / parse, whole, whole / lint_wall])
    harness.show(
        "Writing rules", ["ruleset", "json.loads ms", "lint ms", "lint / parse", "PUT ms", "PUT / lint"], rows
    )


def best_of(*works: Callable[[], object], clock: Callable[[], float], repeat: int = 9) -> list[float]:
    """Return the best time of each work in ms. The works run in turn."""
    best = [float("inf")] * len(works)
    for _ in range(repeat):
        for index, work in enumerate(works):
            started = clock()
            work()
            best[index] = min(best[index], clock() - started)
    return [seconds * 1000 for seconds in best]


if __name__ == "__main__":
    main()
