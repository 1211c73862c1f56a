"""Measure if response times reveal secrets.

Compares in turn: requests for a sign-in link with known and unknown addresses; tokens that start like a real
one and others that do not. ``z`` is the mean difference between medians of small batches, in standard errors.
Below 3 it is noise, and over a network an attacker can measure much less precisely.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from typing import TYPE_CHECKING

from bench import harness

if TYPE_CHECKING:
    from collections.abc import Callable

_BATCHES = 60
_PER_BATCH = 8


def main() -> None:
    with harness.environment():
        from django.conf import settings  # noqa: PLC0415  # needs Django
        from django.test import Client  # noqa: PLC0415

        from accounts.access.credentials import create_refresh_token  # noqa: PLC0415
        from tests import factories  # noqa: PLC0415

        settings.MAGIC_LINK_EMAIL_LIMIT = settings.MAGIC_LINK_ADDRESS_LIMIT = "1000000 per minute"
        settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
        world = factories.make_world()
        _, token = create_refresh_token(user=world.owner)
        client = Client(headers={"host": "127.0.0.1"})

        def post(path: str, body: dict[str, str], *, expect: int) -> None:
            answer = client.post(path, json.dumps(body), content_type="application/json")
            assert answer.status_code == expect, answer.content

        def link(address: str) -> Callable[[], None]:
            return lambda: post("/auth/magic-link", {"email": address}, expect=202)

        def refresh(text: str) -> Callable[[], None]:
            body = {"grant_type": "refresh_token", "refresh_token": text}
            return lambda: post("/oauth/token", body, expect=401)

        rows = [
            compare("link: known, unknown address", link(world.owner.email), link("nobody@example.org")),
            compare(
                "token: right, wrong beginning", refresh(token[:-8] + "x" * 8), refresh("x" * len(token))
            ),
        ]
    harness.show("Milliseconds, median", ["request", "first", "second", "z"], rows)


def compare(title: str, first: Callable[[], None], second: Callable[[], None]) -> list[object]:
    """Measure two requests in alternating batches. Return a row of the table."""
    for call in (first, second):
        batch(call)
    pairs = [(batch(first), batch(second)) for _ in range(_BATCHES)]
    differences = [one - other for one, other in pairs]
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return [
        title,
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
        abs(statistics.fmean(differences)) / error,
    ]


def batch(call: Callable[[], None]) -> float:
    """Return the median time of one call in milliseconds."""
    times = []
    for _ in range(_PER_BATCH):
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
