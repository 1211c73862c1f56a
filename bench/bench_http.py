"""What is asked most, beside a bare view; one client beside a thousand slow ones; and writes of rules.

The bare view is a DRF view of the same server and middleware that sends the same JSON from memory, without
authentication and database. A slow client sends the headers of a request and one byte of its body.
"""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import time
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management import call_command
from django.test import Client

from accounts.models import Account
from bench import raw_logs
from bench.harness import Caller, Compared, granian, measure_rate, medians_in_turn, p95, show, time_of
from rules.lint import lint_ruleset
from rules.write import write_ruleset
from tests import factories

_DAY = date(2026, 3, 1)
_DECLARED = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"
_CHUNKED = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"


def main(
    directory: Path, *, entries: int = 20_000, seconds: int = 2, rounds: int = 5, slow: int = 1000
) -> None:
    world = factories.make_world()
    Account.objects.update(plan="enterprise")
    token = factories.sign_in(world.owner)
    reader = factories.pat_token(world.owner, "analytics:read", tenants=[str(world.tenant.pk)])
    write_rules(world.tenant.pk, 100)
    raw_logs.write_ndjson(directory / "objects", tenant=world.tenant.pk, day=_DAY, entries=entries)
    call_command("rebuild", tenant=world.tenant.pk)
    rules = f"/config/tenants/{world.tenant.pk}/rules"
    user = f"/users/{world.owner.email}"
    day = f"/tenants/{world.tenant.pk}/summaries/{_DAY:%Y/%m/%d}"
    with granian() as port:
        compare = partial(beside_bare_view, port, directory, seconds=seconds, rounds=rounds)
        rows = [
            compare("poll of the rules (304)", rules, token, is_poll=True, goal=0.5),
            compare("100 rules", rules, token, goal=0.6),
            compare("a user", user, token, goal=0.45),
            compare(f"day document of {entries:,} entries", day, reader),
        ]
        stored = beside_rules(
            port,
            (rules, token),
            {
                f"day document of {entries:,} entries": (day, reader, 1.3),
                "month document": (f"/tenants/{world.tenant.pk}/summaries/{_DAY:%Y/%m}", reader, 1.3),
                "a user": (user, token, 2),
            },
            seconds=seconds,
            rounds=rounds,
        )
    show("Requests of one granian worker, four kept connections", "/s", rows)
    show("Time of the worker for a request", "ms", stored)
    with granian(workers=2, threads=32) as port:
        row = beside_slow_clients(Caller(port, token), port, user, clients=slow, rounds=rounds)
    show("p95 of a client beside slow clients of the same address, two workers", "ms", [row])
    show(
        "Rules of a ruleset: processor time of the lint, elapsed time of a PUT",
        "ms",
        writes(rules, token, rounds),
    )


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
    write_ruleset(tenant_id=tenant_id, document=rules_document(count), actor="bench@example.org")


def beside_bare_view(
    port: int,
    directory: Path,
    title: str,
    path: str,
    token: str,
    *,
    seconds: int,
    rounds: int,
    goal: float | None = None,
    is_poll: bool = False,
) -> Compared:
    """Compare requests per second, in turn. A poll asks with the current entity tag."""
    answer = Caller(port, token).get(path)
    bare = title.replace(" ", "-")
    (directory / f"bare/{bare}.json").write_bytes(b"null" if is_poll else answer.body)
    headers = {"Authorization": f"Bearer {token}", **({"If_None_Match": answer.etag} if is_poll else {})}
    pairs = [
        (
            measure_rate(port, path, seconds=seconds, status=304 if is_poll else 200, **headers),
            measure_rate(port, f"/bare/{bare}", seconds=seconds),
        )
        for _ in range(rounds)
    ]
    real, limit = (statistics.median(rates) for rates in zip(*pairs, strict=True))
    return Compared(title, real, "bare view", limit, goal)


def beside_rules(
    port: int,
    rules: tuple[str, str],
    works: Mapping[str, tuple[str, str, float]],
    *,
    seconds: int,
    rounds: int,
) -> list[Compared]:
    """Compare the time of other answers with the time of 100 rules, in turn.

    ``works`` has path, token and goal by title.
    """
    targets = [rules, *((path, token) for path, token, _ in works.values())]
    times = [
        [
            1000 / measure_rate(port, path, seconds=seconds, Authorization=f"Bearer {token}")
            for path, token in targets
        ]
        for _ in range(rounds)
    ]
    limit, *figures = map(statistics.median, zip(*times, strict=True))
    return [
        Compared(title, figure, "100 rules", limit, goal)
        for figure, (title, (_, _, goal)) in zip(figures, works.items(), strict=True)
    ]


def beside_slow_clients(caller: Caller, port: int, path: str, *, clients: int, rounds: int) -> Compared:
    """Compare the p95 of one client with and without slow clients, in turn."""
    calm: list[float] = []
    slowed: list[float] = []
    for _ in range(rounds):
        calm += [time_of(lambda: caller.get(path)) for _ in range(200)]
        with contextlib.ExitStack() as stack:
            for number in range(clients):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                connection.sendall(_CHUNKED if number % 2 else _DECLARED)
            slowed += [time_of(lambda: caller.get(path)) for _ in range(200)]
        time.sleep(1)
    return Compared(f"a user, {clients:,} slow clients", p95(slowed), "no slow client", p95(calm), 2)


def writes(path: str, token: str, rounds: int) -> list[Compared]:
    """Compare the lint with parsing the rules, and the whole PUT with the lint."""
    client = Client(headers={"Authorization": f"Bearer {token}"}, SERVER_NAME="127.0.0.1")
    rows = []
    for count, regexes in ((1000, False), (2000, False), (1000, True)):
        text = json.dumps(rules_document(count, regexes=regexes))
        document = json.loads(text)

        def put(text: str = text) -> None:
            answer = client.put(path, text, content_type="application/json")
            assert answer.status_code == 200, answer.content[:500]

        lint = partial(lint_ruleset, document)
        parsed, linted = medians_in_turn(
            partial(json.loads, text), lint, runs=rounds, clock=time.process_time
        )
        written, linted_in = medians_in_turn(put, lint, runs=rounds)
        title = f"{count:,} rules{', each with a pattern' if regexes else ''}"
        rows += [
            Compared(f"lint of {title}", linted, "json.loads", parsed, 100),
            Compared(f"PUT of {title}", written, "their lint", linted_in, 3),
        ]
    return rows
