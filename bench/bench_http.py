"""Requests per second of what is asked most, and what others notice of a thousand slow clients.

The bare view is a DRF view that returns the same bytes by the same server and middleware, without
authentication and database. A slow client sends the headers of a request and one byte of its body.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import statistics
import time
from typing import TYPE_CHECKING

from bench import harness

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests import factories

SLOW_CLIENTS = 1000
ROUNDS = 3
FRONT_ROUNDS = 7
_DECLARED = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"
_CHUNKED = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"


def main() -> None:
    with harness.environment() as directory:
        from tests import factories  # noqa: PLC0415  # needs Django

        world = factories.make_world()
        token = factories.sign_in(world.owner)
        with harness.granian() as port:
            rows = [
                compare(port, directory, "GET /users/{self}", f"/users/{world.owner.email}", token),
            ]
        with harness.granian() as port, harness.granian_wsgi() as wsgi_port:
            fronts = compare_fronts(port, wsgi_port, world, token)
        with harness.granian(workers=2, threads=32) as port:
            path = f"/users/{world.owner.email}"
            slow = compare_slow(port, path, {"Authorization": f"Bearer {token}"})
    harness.show("One granian worker, four kept-alive connections", harness.RATE_COLUMNS, rows)
    harness.show(
        "The front beside granian's own WSGI, one worker each, in turn",
        ["request", "front /s", "WSGI /s", "ratio"],
        fronts,
    )
    harness.show(
        f"{SLOW_CLIENTS:,} slow clients of one address, two granian workers, one other client (medians)",
        ["request", "calm p50 ms", "slow p50 ms", "calm p95 ms", "slow p95 ms", "ratio of p95"],
        [slow],
    )


def compare_fronts(front: int, wsgi: int, world: factories.World, token: str) -> list[list[object]]:
    """Send the same requests to both ports in turn. Return a row per request, with medians."""
    headers = {"Authorization": f"Bearer {token}"}
    rules = f"/config/tenants/{world.tenant.id}/rules"
    connection = http.client.HTTPConnection("127.0.0.1", front)
    connection.request("GET", rules, headers=headers)
    response = connection.getresponse()
    response.read()
    requests = {
        "the bare view": (harness.get_request("/bare/body"), 200),
        "GET /users/{self}": (harness.get_request(f"/users/{world.owner.email}", headers), 200),
        "rules by entity tag": (
            harness.get_request(rules, {**headers, "If-None-Match": response.headers["ETag"]}),
            304,
        ),
    }
    rows: list[list[object]] = []
    for title, (request, expected) in requests.items():
        pairs = []
        for _ in range(FRONT_ROUNDS):
            of_front, of_wsgi = (
                harness.measure_rate(port, request, expect=expected, seconds=2).per_second
                for port in (front, wsgi)
            )
            pairs.append((of_front, of_wsgi))
        ratio = statistics.median(of_front / of_wsgi for of_front, of_wsgi in pairs)
        rows.append([title, *(statistics.median(rates) for rates in zip(*pairs, strict=True)), ratio])
    return rows


def compare_slow(port: int, path: str, headers: dict[str, str]) -> list[object]:
    """Send requests one after the other without and with slow clients, in turns; return a row."""
    rounds = []
    for _ in range(ROUNDS):
        calm = ask_repeatedly(port, path, headers)
        with contextlib.ExitStack() as stack:
            for number in range(SLOW_CLIENTS):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                connection.sendall(_CHUNKED if number % 2 else _DECLARED)
            rounds.append((calm, ask_repeatedly(port, path, headers)))
        time.sleep(1)
    p50 = [statistics.median(quantile(part[of], 0.5) for part in rounds) for of in (0, 1)]
    p95 = [statistics.median(quantile(part[of], 0.95) for part in rounds) for of in (0, 1)]
    ratio = statistics.median(quantile(slow, 0.95) / quantile(calm, 0.95) for calm, slow in rounds)
    return ["GET /users/{self}", *p50, *p95, ratio]


def ask_repeatedly(port: int, path: str, headers: dict[str, str], *, seconds: float = 3.0) -> list[float]:
    """Return the milliseconds of each request, sorted. Each has a connection of its own."""
    times = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path, headers=headers)
        connection.getresponse().read()
        connection.close()
        times.append((time.perf_counter() - started) * 1000)
    return sorted(times)


def quantile(values: Sequence[float], share: float) -> float:
    return values[int(len(values) * share)]


def compare(port: int, directory: Path, title: str, path: str, token: str) -> list[object]:
    """Measure an authenticated address and the bare view of its body; return a row of the table."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path} answered {answer.status}: {body.decode()}")
    (directory / "bare" / "body.json").write_bytes(body)
    real_request = harness.get_request(path, {"Authorization": f"Bearer {token}"})
    return harness.compare_rates(port, title, real=real_request, bare=harness.get_request("/bare/body"))


if __name__ == "__main__":
    main()
