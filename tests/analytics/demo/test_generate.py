"""Check that log entries could come from one Gateway with one cache. Uses only the entries and markers."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from accounts.serializers.tenants import WritableConfig
from analytics.demo.generate import GeneratedMarker, Hour, generate
from analytics.demo.logs import FOLDER, DemoDataError, read_demo
from analytics.demo.profile import PROFILE_DAYS, DaysAgo, MonthStart, Number, OneOf, Profile
from logs.columns import CACHE_STATUSES, COLUMNS, SqlType
from logs.layout import HOUR_MS
from rules.conditions.evaluate import read_request
from rules.language import Rule, read_rules
from rules.lint import lint_ruleset
from rules.match import decide
from rules.tables.warehouse import WarehouseTables
from tenantadmin.lib.core.timestamps import from_epoch_ms
from tests.analytics.advice.logs import Arrival, make_log
from tests.analytics.replay.judge import judge
from tests.analytics.replay.streams import DAYS, START, random_rules

#: Statuses that an entry may have instead of the one that the ruleset decides.
EXCEPTIONS = {"ERROR", "INVALIDATION_ERROR", "HOLD"}
WITHOUT_RULES = {"SPOOFED", "TELEMETRY", "EXECUTOR", "AUTH_ERROR"}


def check_coherence(profile: Profile, hours: Sequence[Hour]) -> None:
    """Assert that rules, cache and markers explain every entry. The hours are the first ones of a tenant."""
    entries = [entry for hour in hours for entry in hour.entries]
    rulesets = _Rulesets(profile, hours[0].start)
    markers = [marker for hour in hours for marker in hour.markers]
    _check_decisions(rulesets, entries)
    _check_markers(rulesets, entries, markers)
    _check_cache(entries, markers)


class _Rulesets:
    """The rulesets of a tenant whose logs begin at ``start`` (epoch ms)."""

    def __init__(self, profile: Profile, start: int) -> None:
        self._publications = [
            (published.at, str(published.seq), read_rules(published.rules))
            for published in profile.publications(from_epoch_ms(start).date())
        ]

    def in_force(self, entry: dict[str, Any]) -> tuple[str, tuple[Rule, ...]]:
        """Return the version and the rules that decide an entry."""
        return [(version, rules) for at, version, rules in self._publications if at <= entry["timestamp"]][-1]


def _check_decisions(rulesets: _Rulesets, entries: Iterable[dict[str, Any]]) -> None:
    for entry in entries:
        version, rules = rulesets.in_force(entry)
        if entry["cacheStatus"] in WITHOUT_RULES:
            assert entry["matchedRule"] is None
            continue
        decision = decide(rules, read_request(entry))
        assert entry["matchedRule"] == decision.rule_id
        assert entry["cacheStatus"] in {*decision.statuses, *EXCEPTIONS}
        if decision.rule_id:
            rule = next(rule for rule in rules if rule.id == decision.rule_id)
            assert entry["ruleVersion"] == version
            assert entry["matchedRuleName"] == rule.name
            if entry["cacheStatus"] in {"HIT", "MISS", "HOLD"}:
                assert entry["cacheTtlSeconds"] == rule.ttl_seconds
        if entry["cacheStatus"] == "INVALIDATION_ERROR":
            assert any(firing.required for firing in decision.fired)


def _check_markers(
    rulesets: _Rulesets, entries: Iterable[dict[str, Any]], markers: Iterable[GeneratedMarker]
) -> None:
    expected = []
    unmeasured = 0
    for entry in entries:
        if entry["cacheStatus"] == "BYPASS":
            fired = decide(rulesets.in_force(entry)[1], read_request(entry)).fired
            targets = [(target, firing.rule_id) for firing in fired for target in firing.targets]
            spent = entry["warehouseExecutionTimeMs"]
            if spent is None:
                unmeasured += len(targets)
            else:
                expected += [(target, entry["timestamp"] + spent, by) for target, by in targets]
    made = [(marker.target_rule_id, marker.at, marker.fired_rule_id) for marker in markers]
    assert len(made) == len(expected) + unmeasured
    assert set(expected) <= set(made)


def _check_cache(entries: Iterable[dict[str, Any]], markers: Iterable[GeneratedMarker]) -> None:
    cutoffs: dict[str, list[int]] = {}
    for marker in markers:
        cutoffs.setdefault(marker.target_rule_id, []).append(marker.at)
    stored: dict[str, tuple[int, int]] = {}
    for entry in entries:
        status, at, key = entry["cacheStatus"], entry["timestamp"], entry["cacheKey"]
        if status not in {"HIT", "MISS", "HOLD"}:
            assert status == "ERROR" or key is None
            if entry["standardizedSql"] and key is None:
                assert entry["queryHash"] == sha256(entry["standardizedSql"].encode()).hexdigest()
            continue
        born_at, expires_at = stored.get(key, (None, None))
        state = _cache_state(at, born_at, expires_at, cutoffs.get(entry["matchedRule"], []))
        if status == "HIT":
            assert born_at is not None
            assert state == "fresh"
            assert entry["cacheAgeSeconds"] == (at - born_at) // 1000
            assert entry["cacheExpiresAt"] == expires_at
            assert entry["warehouseExecutionTimeMs"] is None
        elif status == "HOLD":
            assert state == "in-flight"
            assert entry["cacheExpiresAt"] == expires_at
        else:
            assert state not in {"fresh", "in-flight"}
            assert entry["missReason"] in {state, None}
            ttl_ms = entry["cacheTtlSeconds"] * 1000
            stored[key] = (entry["cacheExpiresAt"] - ttl_ms, entry["cacheExpiresAt"])
            spent = entry["warehouseExecutionTimeMs"]
            assert spent is None or stored[key][0] == at + spent


def _cache_state(at: int, born_at: int | None, expires_at: int | None, cutoffs: Iterable[int]) -> str:
    if born_at is None or expires_at is None:
        return "no-cache-entry"
    if at < born_at:
        return "in-flight"
    if at >= expires_at:
        return "ttl-expired"
    return "invalidation-marker" if any(born_at < cutoff <= at for cutoff in cutoffs) else "fresh"


STATEMENTS = {"SELECT a FROM s.t WHERE b = ?": 3_000, "SELECT ? FROM s.t": 1_000, "UPDATE s.t SET a = ?": 400}
USERS = ("ann", "bob", "eve", None)


def arrivals(chance: random.Random) -> list[Arrival]:
    span, step = chance.choice([5_000, 60_000, 600_000]), chance.choice([1, 1_000])
    found = []
    for _ in range(60):
        statement = chance.choice([*list(STATEMENTS)[:2] * 3, *STATEMENTS])
        found.append(
            Arrival(
                at=chance.randrange(span) // step * step,
                statement=statement,
                tables=("sales.orders",),
                values=chance.choice(["[1]", "[2]"]),
                ms=STATEMENTS[statement],
                is_change=statement.startswith("UPDATE"),
                flags=(("userName", chance.choice(USERS)),),
            )
        )
    return found


def test_the_judge_of_the_replay_agrees_with_each_answer() -> None:
    seen: Counter[str] = Counter()
    for seed in range(120):
        chance = random.Random(seed)  # noqa: S311
        rulesets = [(0, random_rules(chance)), (START + chance.randrange(60_000), random_rules(chance))]
        log = make_log(arrivals(chance), *[(at - START, rules) for at, rules in rulesets])
        judgement = judge(
            log,
            rules=(),
            rulesets=[(at, read_rules(rules)) for at, rules in rulesets],
            changes=[rulesets[1][0]],
            counted={DAYS[0].isoformat()},
            nocache=False,
            non_deterministic=False,
        )
        expected = [(row["cacheStatus"], row["missReason"]) for row in log]
        assert [(request.status, request.reason) for request in judgement.requests] == expected, seed
        seen.update(status for status, _ in expected)
        seen["stale"] += judgement.total()["staleHits"]
        seen["invalidated"] += judgement.total()["invalidation-marker"]
        seen["expired"] += judgement.total()["ttl-expired"]
    assert all(count > 100 for count in seen.values()), seen
    assert seen.keys() >= {"HIT", "MISS", "HOLD", "BYPASS", "PASSTHROUGH", "BLOCKED"}


TENANT = "6c0e7b5e-3a4f-4f1e-9a53-0d7a54a3a001"
MONDAY = date(2026, 10, 19)
FIRST_MS = 1_792_368_000_000
PYTHON_TYPES = {SqlType.VARCHAR: str, SqlType.BIGINT: int, SqlType.INTEGER: int, SqlType.BOOLEAN: bool}
ALL = read_demo().profiles
RETAIL = ALL[0]


def test_drivers_send_what_real_ones_send() -> None:
    """Most of what psycopg sends is about the transaction. It is about no table, and is no request."""
    hours = generate(ALL[1], tenant_id="t", first_day=date(2026, 3, 2), days=1, entries=3_000)
    entries = [entry for hour in hours for entry in hour.entries]
    control = [entry for entry in entries if entry["cacheStatus"] == "SPOOFED"]
    assert 0.4 < len(control) / len(entries) < 0.67
    flags = ("isReadOnly", "isDataChange", "isDDL", "tableCount", "tables", "matchedRule")
    begins = {tuple(entry[name] for name in flags) for entry in control if entry["statementType"] == "BEGIN"}
    assert begins == {(False, False, False, 0, None, None)}
    answered = {entry["statusCode"] for entry in entries if entry["cacheStatus"] != "ERROR"}
    assert answered == {200}
    kinds = Counter(entry["statementType"] for entry in control)
    assert abs(kinds["BEGIN"] - kinds["COMMIT"] - kinds["ROLLBACK"]) <= 3


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
    # Beside what drivers send around the statements.
    assert profile.entries * 0.95 <= statuses.total() - statuses["SPOOFED"] <= profile.entries * 1.05
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


STATEMENT = """probes = ["SELECT 1"]
[[statements]]
sql = "SELECT a FROM s.t WHERE b = ?"
personas = ["dashboard", "analyst", "application", "loader", "operator"]
slots = [["number", 1, 9]]
ms = 10
size = 20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the data files, for tests that change one."""
    return shutil.copytree(FOLDER, tmp_path / "data")


def refusal(folder: Path) -> str:
    """Return the error message for the files. File names in it are relative to ``folder``."""
    with pytest.raises(DemoDataError) as caught:
        read_demo(folder)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("profile", read_demo().profiles, ids=lambda profile: profile.name)
def test_the_configuration_and_every_ruleset_are_valid(profile: Profile) -> None:
    assert WritableConfig(data=profile.config).is_valid()
    tables = WarehouseTables.of(profile.config)
    result = lint_ruleset({"rules": list(profile.rules)}, tables=tables)
    assert (result.errors, result.warnings) == ((), ())
    rulesets = [published.rules for published in profile.publications(date(2026, 3, 1))]
    rulesets += [advised.apply(profile.rules) for advised in profile.advice]
    if profile.draft is not None:
        rulesets.append((*profile.rules, profile.draft.rule))
    for rules in rulesets:
        assert lint_ruleset({"rules": list(rules)}).valid


def test_lint_refuses_the_rule_that_leaked_until_its_table_was_named() -> None:
    profile = read_demo().profiles[1]
    shared, cured = (published.rules for published in profile.publications(date(2026, 3, 1))[:2])
    tables = WarehouseTables.of(profile.config)
    assert "perUserTables" not in profile.first_config["warehouse"]
    assert lint_ruleset({"rules": list(shared)}).valid
    errors = lint_ruleset({"rules": list(shared)}, tables=tables).errors
    # Other rules could decide statements that also read the invoices, and would share them.
    assert {error.code for error in errors} == {"per-user-table-shared"}
    assert "billing" in {error.rule_id for error in errors}
    assert lint_ruleset({"rules": list(cured)}, tables=tables).valid


def test_every_folder_is_a_tenant_of_the_demo() -> None:
    assert set(read_demo().people.owner.tenants) == {path.name for path in FOLDER.iterdir() if path.is_dir()}


def test_a_statement_is_read_with_its_slots_and_on_one_line(folder: Path) -> None:
    (folder / "retail" / "statements.toml").write_text(
        STATEMENT.replace(
            '"SELECT a FROM s.t WHERE b = ?"', '"""\nSELECT a FROM s.t\n  WHERE b = ? AND c IN (?, ?, ?)"""'
        ).replace(
            '["number", 1, 9]',
            '["number", 1, 9], ["one_of", ["x", 2]], ["days_ago", 0, 3], ["month_start", 6]',
        )
    )
    (statement,) = read_demo(folder).profiles[0].statements
    assert statement.sql == "SELECT a FROM s.t WHERE b = ? AND c IN (?, ?, ?)"
    assert statement.slots == (Number(1, 9), OneOf(("x", 2)), DaysAgo(0, 3), MonthStart(6))
    assert (statement.ms, statement.size, statement.weight, statement.bound) == (10, 20, 1.0, False)


@pytest.mark.parametrize(
    ("right", "wrong", "message", "place"),
    [
        (
            '["number", 1, 9]',
            "",
            "'SELECT a FROM s.t WHERE b = ?' needs a slot for each '?', but has 0",
            "[0]",
        ),
        ('"number"', '"numbers"', "Invalid value 'numbers'", "[0].slots[0][0]"),
        ('"number", 1, 9', '"one_of", []', "Expected `array` of length >= 1", "[0].slots[0][1]"),
        ('"number", 1, 9', '"month_start", 0', "Expected `int` >= 1", "[0].slots[0][1]"),
        ("[[statements]]", "[[statements]]\nwait = 1", "Object contains unknown field `wait`", "[0]"),
        ("ms = 10", "", "Object missing required field `ms`", "[0]"),
        ('"operator"', '"robot"', "Invalid enum value 'robot'", "[0].personas[4]"),
    ],
)
def test_a_wrong_statement_is_named(folder: Path, right: str, wrong: str, message: str, place: str) -> None:
    assert right in STATEMENT
    (folder / "retail" / "statements.toml").write_text(STATEMENT.replace(right, wrong))
    assert refusal(folder) == f"retail: {message} - at `$.statements{place}`"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("demo.toml", b"[admin", "Expected ']'"),
        ("demo.toml", b'tenants = ["retail"]', "Object contains unknown field `tenants`"),
        ("retail/rules.json", b"{", "Input data was truncated"),
        ("retail/rules.json", b"[]", "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_file_is_named(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    assert refusal(folder).startswith(f"{name}: {message}")


@pytest.mark.parametrize("name", ["demo.toml", "terms.md", "product/rules.json", "product/statements.toml"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"/{name}'"):
        read_demo(folder)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("entries = 62_000", "entries = 'many'", "Expected `int`, got `str` - at `$.entries`"),
        ("restored = 33_675", "restored = 9", "a mistake is published, then restored, then a leak is"),
    ],
)
def test_a_wrong_profile_is_named(folder: Path, right: str, wrong: str, message: str) -> None:
    path = folder / "retail" / "profile.toml"
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    assert refusal(folder).startswith(f"retail: {message}")
