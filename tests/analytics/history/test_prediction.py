"""A history without a Gateway predicts what the Gateway of the demo then logs under the same rules."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from analytics.assessments.assess import Order, import_history
from analytics.demo import generate
from analytics.demo.logs import read_demo
from analytics.demo.profile import Publication, make_call
from analytics.history.entries import Choices
from analytics.history.rows import Source
from logs.definitions import FAILED
from logs.layout import day_start_ms
from tenantadmin.lib.objectstore import default_store
from tests.analytics.history.assessing import replay
from tests.analytics.history.stream import Sent, as_databricks

if TYPE_CHECKING:
    from analytics.demo.profile import Call, Profile, Statement

pytestmark = pytest.mark.django_db(transaction=True)

FIRST, DAYS = date(2026, 3, 2), 4


@pytest.mark.parametrize("number", [0, 1])
def test_the_hits_of_the_demo_lie_within_the_bounds(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = read_demo().profiles[number]
    sent, logged = simulate(profile, monkeypatch)
    path = tmp_path / "history.json"
    path.write_bytes(as_databricks(sent))
    order = Order(files=[path], choices=Choices(source=Source.DATABRICKS), name="demo")
    tenant = import_history(default_store(), order, on_progress=lambda _what, _count: None)
    call_command("rebuild", f"--tenant={tenant}")
    run = replay(tenant, [dict(rule) for rule in rules_of(profile)], first=FIRST, last=sent[-1].at.date())
    assert run.result is not None
    hits = Counter(entry["matchedRule"] for entry in logged if entry["cacheStatus"] == "HIT")
    # No history has these: each is a result that was not stored, or not asked for.
    unseen = sum(entry["cacheStatus"] in FAILED or entry["cacheOverride"] == "nocache" for entry in logged)
    total = run.result["total"]["hits"]
    assert total["low"] < hits.total() < total["high"]
    for rule in run.result["rules"]:
        own = hits[rule["ruleId"]]
        assert rule["hits"]["low"] - unseen <= own <= rule["hits"]["high"] + unseen, rule
    # One rule asks whether values were sent beside the text, which the history hides.
    assert run.result["rows"]["open"] > len(sent) / 4


def rules_of(profile: Profile) -> tuple[Any, ...]:
    return profile.publications(FIRST)[-1].rules


def simulate(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Sent], list[dict[str, Any]]]:
    """Return the statements that the consumers of a demo send, and the log of its Gateway."""
    literals: dict[int, tuple[Call, tuple[Any, ...]]] = {}
    sent: list[Sent] = []
    handle = generate._Log._handle

    def make(statement: Statement, *, rng: Random, day: date) -> Call:
        before = rng.getstate()
        values = tuple(slot.fill(rng, day) for slot in statement.slots)
        rng.setstate(before)
        call = make_call(statement, rng=rng, day=day)
        literals[id(call)] = call, values
        return call

    def record(log: Any, arrival: Any) -> dict[str, Any]:
        entry = handle(log, arrival)
        if (call := arrival.call) is not None:
            statement = call.statement
            sent.append(
                Sent(
                    text=statement.sql,
                    values=None if statement.bound else literals[id(call)][1],
                    tables=statement.tables,
                    user=entry["userName"],
                    at=datetime.fromtimestamp(arrival.at / 1000, UTC),
                    ms=max(1, int(statement.ms * call.scale)),
                    kind=statement.kind,
                )
            )
        return entry

    monkeypatch.setattr(generate, "make_call", make)
    monkeypatch.setattr(generate._Log, "_handle", record)
    publication = Publication(1, day_start_ms(FIRST) - 1, rules_of(profile))
    hours = generate.generate(
        profile, tenant_id="t", first_day=FIRST, days=DAYS, entries=4000, publications=(publication,)
    )
    logged = [entry for hour in hours for entry in hour.entries]
    return sent, logged
