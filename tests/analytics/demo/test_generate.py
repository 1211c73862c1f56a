"""Tests of the generated logs of the demo: complete, coherent, and the same every time."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from analytics.demo.generate import Hour, generate
from analytics.demo.logs import read_demo
from analytics.demo.profile import PROFILE_DAYS, Profile
from logs.columns import CACHE_STATUSES, COLUMNS, SqlType
from logs.layout import HOUR_MS
from tests.analytics.demo.coherence import check_coherence

TENANT = "6c0e7b5e-3a4f-4f1e-9a53-0d7a54a3a001"
MONDAY = date(2026, 10, 19)
FIRST_MS = 1_792_368_000_000
PYTHON_TYPES = {SqlType.VARCHAR: str, SqlType.BIGINT: int, SqlType.INTEGER: int, SqlType.BOOLEAN: bool}
ALL = read_demo().profiles
RETAIL = ALL[0]
PROFILES = pytest.mark.parametrize("profile", ALL, ids=lambda profile: profile.name)


def run(profile: Profile, *, days: int = 7, entries: int = 6_000, seed: int = 1) -> list[Hour]:
    return list(generate(profile, tenant_id=TENANT, first_day=MONDAY, days=days, entries=entries, seed=seed))


@pytest.fixture(scope="module")
def weeks() -> dict[str, list[Hour]]:
    """A week of each tenant, by its name."""
    return {profile.name: run(profile) for profile in ALL}


@pytest.mark.slow
@PROFILES
def test_the_month_is_complete_and_has_every_status_user_and_rule(profile: Profile) -> None:
    statuses: Counter[str] = Counter()
    users, rules = set(), set()
    starts = []
    for hour in generate(
        profile, tenant_id=TENANT, first_day=MONDAY, days=PROFILE_DAYS, entries=profile.entries
    ):
        starts.append(hour.start)
        assert hour.entries
        for entry in hour.entries:
            statuses[entry["cacheStatus"]] += 1
            users.add(entry["userName"])
            rules.add(entry["matchedRule"])
    assert starts == [FIRST_MS + number * HOUR_MS for number in range(PROFILE_DAYS * 24)]
    assert set(statuses) == set(CACHE_STATUSES)
    assert profile.entries <= statuses.total() <= profile.entries * 1.05
    assert users == {None, *(consumer.name for consumer in profile.consumers)}
    published = profile.publications(MONDAY)
    assert rules == {None, *(rule["id"] for ruleset in published for rule in ruleset.rules)}


def test_all_tenants_together_have_a_hundred_thousand_entries_and_sixty_statements() -> None:
    assert sum(profile.entries for profile in ALL) >= 100_000
    assert len({statement.sql for profile in ALL for statement in profile.statements}) >= 60
    assert all(len(profile.consumers) >= 25 for profile in ALL)


@PROFILES
def test_rules_cache_and_markers_explain_every_entry(profile: Profile, weeks: dict[str, list[Hour]]) -> None:
    check_coherence(profile, weeks[profile.name])


@given(
    profile=st.sampled_from(ALL),
    seed=st.integers(0, 2**32),
    days=st.integers(1, 2),
    entries=st.integers(0, 600),
)
@settings(max_examples=15, deadline=None)
def test_every_seed_is_coherent(profile: Profile, seed: int, days: int, entries: int) -> None:
    hours = run(profile, days=days, entries=entries, seed=seed)
    assert sum(len(hour.entries) for hour in hours) >= entries
    check_coherence(profile, hours)


def test_a_mistake_changes_the_rules_and_leaves_the_cache_behind_twice() -> None:
    mistake = RETAIL.mistake
    assert mistake is not None
    profile = replace(RETAIL, mistake=replace(mistake, published=600, restored=1_200))
    hours = run(profile, days=1)
    check_coherence(profile, hours)
    entries = [entry for hour in hours for entry in hour.entries]
    decided = [entry for entry in entries if entry["matchedRule"]]
    assert Counter(entry["ruleVersion"] for entry in decided).keys() == {"1", "2", "3"}
    assert {entry["ruleVersion"] for entry in decided if entry["matchedRule"] == "month-end"} == {"2"}
    keys: dict[str, set[str]] = {}
    for entry in decided:
        if entry["cacheKey"]:
            keys.setdefault(entry["ruleVersion"], set()).add(entry["cacheKey"])
    assert all(keys.values())
    assert not keys["1"] & keys["3"]


@PROFILES
def test_misses_have_all_reasons(profile: Profile, weeks: dict[str, list[Hour]]) -> None:
    reasons = {
        entry["missReason"]
        for hour in weeks[profile.name]
        for entry in hour.entries
        if entry["cacheStatus"] == "MISS"
    }
    assert reasons == {None, "no-cache-entry", "ttl-expired", "invalidation-marker"}


def test_entries_have_the_columns_of_the_log_with_their_types(weeks: dict[str, list[Hour]]) -> None:
    names = [column.name for column in COLUMNS]
    names_with_values = set()
    for entry in (entry for hours in weeks.values() for hour in hours for entry in hour.entries):
        assert list(entry) == names
        for column in COLUMNS:
            value = entry[column.name]
            if value is None:
                assert not column.never_null
            else:
                names_with_values.add(column.name)
                assert type(value) is PYTHON_TYPES[column.type]
                assert not column.json_text or json.loads(str(value))
    assert names_with_values == set(names)


@PROFILES
def test_entries_are_in_their_hour_in_order_with_distinct_ids(
    profile: Profile, weeks: dict[str, list[Hour]]
) -> None:
    ids: set[str] = set()
    for hour in weeks[profile.name]:
        times = [entry["timestamp"] for entry in hour.entries]
        assert times == sorted(times)
        assert all(hour.start <= time < hour.start + HOUR_MS for time in times)
        ids.update(entry["logId"] for entry in hour.entries)
    assert len(ids) == sum(len(hour.entries) for hour in weeks[profile.name])


@PROFILES
def test_only_statements_have_sql_and_only_the_unauthenticated_have_no_name(
    profile: Profile, weeks: dict[str, list[Hour]]
) -> None:
    for entry in (entry for hour in weeks[profile.name] for entry in hour.entries):
        has_sql = entry["cacheStatus"] not in {"TELEMETRY", "AUTH_ERROR", "EXECUTOR"}
        assert (entry["standardizedSql"] is not None) is has_sql
        assert (entry["queryHash"] is not None) is has_sql
        assert (entry["userName"] is None) is (entry["cacheStatus"] == "AUTH_ERROR")
        assert entry["hasParameters"] or entry["parameterValues"] is None


@PROFILES
def test_some_measurements_are_missing(profile: Profile, weeks: dict[str, list[Hour]]) -> None:
    misses = [
        entry
        for hour in weeks[profile.name]
        for entry in hour.entries
        if entry["cacheStatus"] in {"MISS", "BYPASS", "PASSTHROUGH"}
    ]
    gaps = {
        "responseSize -1": sum(entry["responseSize"] == -1 for entry in misses),
        "responseSize 0": sum(entry["responseSize"] == 0 for entry in misses),
        "responseTimeMs": sum(entry["responseTimeMs"] == 0 for entry in misses),
        "warehouseExecutionTimeMs": sum(entry["warehouseExecutionTimeMs"] is None for entry in misses),
        "requestSize": sum(entry["requestSize"] is None for entry in misses),
    }
    assert all(0 < count < len(misses) / 10 for count in gaps.values()), gaps


@PROFILES
def test_nights_and_weekends_are_quieter(profile: Profile, weeks: dict[str, list[Hour]]) -> None:
    counts = [len(hour.entries) for hour in weeks[profile.name]]
    days = [sum(counts[day * 24 : day * 24 + 24]) for day in range(7)]
    assert max(days[5:]) < min(days[:5])
    assert counts[3] * 3 < counts[10]


def test_only_equal_seeds_give_equal_entries() -> None:
    assert run(RETAIL, days=1, entries=300) == run(RETAIL, days=1, entries=300)
    assert run(RETAIL, days=1, entries=300) != run(RETAIL, days=1, entries=300, seed=2)


@PROFILES
def test_statements_have_no_literals_and_name_their_tables(profile: Profile) -> None:
    literal = re.compile(r"'|\b\d")
    for statement in profile.statements:
        assert not literal.search(statement.sql)
        assert statement.personas
        assert statement.tables or statement.kind == "DROP"
    assert len({statement.sql for statement in profile.statements}) == len(profile.statements)


def test_statements_are_classified_by_their_text() -> None:
    by_kind = {statement.kind: statement for profile in ALL for statement in profile.statements}
    flags = {
        kind: (statement.is_read_only, statement.is_data_change, statement.is_ddl)
        for kind, statement in by_kind.items()
    }
    assert flags == {
        "SELECT": (True, False, False),
        "INSERT": (False, True, False),
        "UPDATE": (False, True, False),
        "DELETE": (False, True, False),
        "MERGE": (False, True, False),
        "CREATE": (False, False, True),
        "ALTER": (False, False, True),
        "DROP": (False, False, True),
    }
    assert by_kind["MERGE"].tables == ("catalog.products", "staging.products")
