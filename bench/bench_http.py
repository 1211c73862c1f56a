"""Requests per second of what is asked most, beside a bare DRF view that returns the same bytes.

The bare view is answered by the same server and the same middleware, without authentication and database.
"""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING

from bench import harness

if TYPE_CHECKING:
    from pathlib import Path


def main() -> None:
    with harness.environment() as directory:
        from tests import factories  # noqa: PLC0415  # needs Django

        world = factories.make_world()
        token = factories.sign_in(world.owner)
        with harness.granian() as port:
            rows = [
                compare(port, directory, "GET /users/{self}", f"/users/{world.owner.email}", token),
            ]
    harness.show("One granian worker, four kept-alive connections", harness.RATE_COLUMNS, rows)


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
