"""Exactly one message for each crossing, in random histories of numbers with workers that are killed.

A worker is killed before or after any of its statements to the database, or while it waits for an
answer. What it has not committed is lost.
"""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from analytics.models import AlertDelivery, AlertFiring
from tenantadmin.lib.core import outgoing
from tenantadmin.lib.core.outgoing import Answer
from tests.analytics.alerts.support import make_alert, read_number
from tests.killing import Killed, killed_at
from tests.sending import make_all_due, send_all, send_in_line

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db

#: ``ALERT_HISTORIES=2000`` tries others too.
HISTORIES: Final = int(os.environ.get("ALERT_HISTORIES", "60"))
PARTS: Final = 4
STEPS: Final = 6
THRESHOLD: Final = 5.0
CHANNEL: Final = {"type": "webhook", "url": "https://hooks.example.org/"}


class Stub:
    """A receiver that fails sometimes, and sometimes the worker is killed before it reads the answer."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.is_calm = False
        #: The types of messages by id.
        self.arrived: dict[str, str] = {}
        self.repeated = 0

    def post(self, url: str, *, body: bytes, headers: dict[str, str], **_: Any) -> Answer:
        identity, kind = headers["webhook-id"], json.loads(body)["type"]
        self.repeated += identity in self.arrived
        assert self.arrived.setdefault(identity, kind) == kind
        fate = 1.0 if self.is_calm else self.chance.random()
        if fate < 0.1:
            raise Killed
        return Answer(500 if fate < 0.3 else 200)


def crossings(numbers: list[float | None]) -> list[str]:
    """Return the types of the messages that a history of numbers must give."""
    kinds, fires = [], False
    for number in numbers:
        # A firing ends a tenth below the threshold.
        if number is not None and (number < 4.5 if fires else number >= THRESHOLD):
            fires = not fires
            kinds.append("alert.started" if fires else "alert.ended")
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_one_message_for_each_crossing(world: World, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # One message after the other, so that a history is the same in every run.
    send_in_line(monkeypatch)
    total = repeated = 0
    for seed in range(part, HISTORIES, PARTS):
        chance = random.Random(seed)  # noqa: S311
        stub = Stub(chance)
        monkeypatch.setattr(outgoing, "post", stub.post)
        alert = make_alert(world, threshold=THRESHOLD, channels=[CHANNEL])
        numbers: list[float | None] = [chance.choice([None, 0.0, 4.4, 4.9, 5.0, 9.0]) for _ in range(STEPS)]
        for number in numbers:
            for _ in range(chance.randrange(3)):
                with killed_at(chance.randrange(1, 9), before=chance.random() < 0.5):
                    read_number(alert, number)
            # Beat starts it again.
            read_number(alert, number)
            with killed_at(chance.randrange(1, 12), before=chance.random() < 0.5):
                send_all()
            if chance.random() < 0.5:
                make_all_due()
        stub.is_calm = True
        while AlertDelivery.objects.filter(state="queued").exists():
            make_all_due()
            send_all()
        expected = crossings(numbers)
        # Failures change the order of messages, and never their number.
        assert sorted(stub.arrived.values()) == sorted(expected), (seed, numbers)
        assert AlertFiring.objects.filter(alert=alert).count() == expected.count("alert.started")
        assert set(alert.deliveries.values_list("state", flat=True)) <= {"delivered"}
        total += len(expected)
        repeated += stub.repeated
    assert total > HISTORIES / PARTS
    assert repeated > 0
