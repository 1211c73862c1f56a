"""The replay in SQL against the judge: every count, for random rulesets and streams.

``REPLAY_EXAMPLES=500`` sets another number of streams than `make test-slow` compares, ``REPLAY_SEED=1000``
the seed of the first.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from accounts.tenants.pricing import Pricing
from analytics.replay.load import Gateway, Job, Marker, Ruleset
from analytics.replay.result import Caveat
from analytics.replay.words import describe_caveat
from logs.layout import DAY_MS
from rules.language import Action, read_rules
from rules.tables.warehouse import WarehouseTables
from tests.analytics.replay.billing import expected_billed
from tests.analytics.replay.judge import Judgement, judge
from tests.analytics.replay.streams import (
    DAYS,
    START,
    make_row,
    random_draft,
    random_rows,
    random_rules,
    run_replay,
    write_days,
)
from tests.analytics.savings.logs import random_prices

if TYPE_CHECKING:
    from rules.language import Rule
    from tests.analytics.replay.streams import Row

EXAMPLES = int(os.environ.get("REPLAY_EXAMPLES", "40"))

SEED = int(os.environ.get("REPLAY_SEED", "0"))

PARTS = 4

REASONS = ("no-cache-entry", "ttl-expired", "invalidation-marker")

SIMPLE = (
    *("requests", "misses", "holds", "bypassed", "blocked", "passed", "errors", "invalidationErrors"),
    *("staleHits", "revalidations", "spentMs", "hitBytes", "fired", "markers"),
)

WINDOW = DAYS[1]

ROOT = Path(__file__).parents[3]

COUNTED = {WINDOW.isoformat()}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.fixture
def run(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> Callable[..., Any]:
    """Replay rows of some days, the first one by default, under rules that were in force."""

    def replay_rows(
        rows: Sequence[Row], rules: list[dict[str, Any]], *days: date, current: Any = None, **options: Any
    ) -> dict[str, Any]:
        files = write_days(rows, tmp_path / str(len(list(tmp_path.iterdir()))))
        first, *_, last = days * 2 or (DAYS[0], DAYS[0])
        against = read_rules(rules if current is None else current)
        return run_replay(connection, Job(files, first, last, read_rules(rules), against, **options))

    return replay_rows


def expected_counts(
    judgements: Sequence[Judgement], ids: Sequence[str | None], position: float | None
) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for rule_id in ids:
        counts.update(judgements[0].counts.get(rule_id, {}))

    def bounds(name: str, highs: Sequence[Mapping[str | None, int]]) -> dict[str, int | None]:
        """Return the bounds of a sum over the rules. ``highs`` has the most that each rule may reach."""
        low = min(sum(j.counts[i][name] for i in ids if i in j.counts) for j in judgements)
        high = max(sum(high.get(i, 0) for i in ids) for high in highs)
        likely = None if position is None else int(low + position * (high - low) + 0.5)
        return {"low": low, "likely": likely, "high": high}

    return {
        **{name: counts[name] for name in SIMPLE},
        "hits": bounds("hits", [j.high_hits for j in judgements]),
        "savedMs": bounds("savedMs", [j.high_saved for j in judgements]),
        "missReasons": {reason: counts[reason] for reason in REASONS},
        "risk": {"low": counts["riskLow"], "high": counts["riskHigh"]},
    }


def expected_ruleset(
    judgements: Sequence[Judgement], rules: Sequence[Rule], position: float | None
) -> dict[str, Any]:
    ids: list[str | None] = [*(rule.id for rule in rules), None]
    return {
        "total": expected_counts(judgements, ids, position),
        "rules": [{"ruleId": rule_id, **expected_counts(judgements, [rule_id], position)} for rule_id in ids],
    }


def learned(
    judgement: Judgement, rules: Sequence[Rule], in_force: Sequence[tuple[int, Sequence[Rule]]]
) -> dict[str, bool | None]:
    cache_rules = {rule.id for rule in rules if rule.action is Action.CACHE}
    rows = [request.row for request in judgement.requests if request.row["matchedRule"] in cache_rules]
    nocache = [row for row in rows if row["cacheOverride"] == "nocache"]
    random_ = [row for row in rows if row["hasNonDeterministicFunctions"] and row["cacheOverride"] != "cache"]
    result: dict[str, bool | None] = {}
    for name, chosen in (("nocache", nocache), ("nonDeterministic", random_)):
        bypassed = sum(row["cacheStatus"] == "BYPASS" for row in chosen)
        share = bypassed / len(chosen) if chosen else 0.5
        result[name] = True if share >= 0.99 else False if share <= 0.01 else None
    share = share_per_user(judgement, in_force)
    result["keysPerUser"] = True if share >= 0.99 else False if share <= 0.01 else None
    return result


def share_per_user(judgement: Judgement, in_force: Sequence[tuple[int, Sequence[Rule]]]) -> float:
    """Of the results that several users asked for, the share whose cache keys no two of them share."""
    results: dict[Any, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for request in judgement.requests:
        row = request.row
        if None in (row["cacheKey"], row["userName"], row["matchedRule"]):
            continue
        applied = in_force[0][1]
        for start, rules in in_force[1:]:
            if start <= request.at:
                applied = rules
        if not any(rule.id == row["matchedRule"] and rule.vary_by for rule in applied):
            users = results[row["matchedRule"], request.restart, request.kind, request.identity]
            users[row["userName"]].add(row["cacheKey"])
    shared = [users for users in results.values() if len(users) > 1]
    apart = [users for users in shared if sum(map(len, users.values())) == len(set().union(*users.values()))]
    return len(apart) / len(shared) if shared else 0.5


def test_a_log_in_parts_has_every_count_too(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large log is read, played and joined in parts."""
    for module in ("load", "play"):
        monkeypatch.setattr(f"analytics.replay.{module}.AT_A_TIME", 7)
    for seed in range(3):
        compare(random.Random(seed), connection, tmp_path / str(seed))  # noqa: S311


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_count_is_the_judges(part: int, connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    for seed in range(SEED + part, SEED + EXAMPLES, PARTS):
        compare(random.Random(seed), connection, tmp_path / str(seed))  # noqa: S311


def compare(chance: random.Random, connection: duckdb.DuckDBPyConnection, directory: Path) -> None:
    now, other = random_rules(chance), random_rules(chance)
    # Most requests are decided as before, or few.
    draft = random_draft(chance, now) if chance.random() < 0.6 else other
    subject, current, earlier = map(read_rules, (draft, now, random_rules(chance)))
    rows = random_rows(chance, chance.choice([5, 30, 120]))
    changes = sorted(START + chance.randrange(2 * DAY_MS) for _ in range(chance.randint(0, 2)))
    markers = [
        (f"r{chance.randrange(4)}", START + DAY_MS * chance.randint(0, 1) + chance.randrange(60_000))
        for _ in range(chance.randint(0, 4))
    ]
    given = Gateway(
        chance.choice([None, True, False]),
        chance.choice([None, None, True, False]),
        chance.choice([None, None, None, True, False]),
    )
    in_force = [(0, earlier), (START + DAY_MS + chance.randrange(30_000), current)]
    if chance.random() < 0.5:
        in_force = [(0, current)]
    # A restart is where the ruleset in force changes, as in the service.
    changes += [start for start, _ in in_force[1:]]
    # Every column is filled once on each day: no day is left out.
    rows += [make_row(at=day * DAY_MS, **FILLED) for day in (0, 1)]
    files = write_days(rows, directory)
    prices = random_prices(chance, WINDOW, WINDOW)
    job = Job(
        files,
        WINDOW,
        WINDOW,
        subject=subject,
        current=current,
        in_force=[Ruleset(start, rules) for start, rules in in_force],
        changes=changes,
        markers=[Marker(*marker) for marker in markers],
        gateway=given,
        pricing=Pricing.of(prices),
    )

    result = run_replay(connection, job)

    stored = sorted(rows, key=lambda row: (row["day"], row["timestamp"] or 0, row["logId"] or ""))

    def judged(rulesets: Sequence[tuple[int, Sequence[Rule]]], gateway: Sequence[bool]) -> Judgement:
        return judge(
            stored,
            rules=(),
            rulesets=rulesets,
            counted=COUNTED,
            changes=changes,
            markers=markers,
            nocache=gateway[0],
            non_deterministic=gateway[1],
            keys_per_user=gateway[2],
        )

    first = judged([(0, current)], (True, True, False))
    gateway = learned(first, current, in_force)
    gateway = {
        "nocache": gateway["nocache"] if given.nocache is None else given.nocache,
        "nonDeterministic": (
            gateway["nonDeterministic"] if given.non_deterministic is None else given.non_deterministic
        ),
        "keysPerUser": gateway["keysPerUser"] if given.keys_per_user is None else given.keys_per_user,
    }
    declines = [gateway["nocache"], gateway["nonDeterministic"]]
    variants = [
        (*flags, gateway["keysPerUser"] is True)
        for flags in product(*((True, False) if flag is None else (flag,) for flag in declines))
    ]
    judgements = [judged([(0, subject)], variant) for variant in variants]
    against = [judged([(0, current)], variant) for variant in variants]
    assert result["gateway"] == gateway
    # Of the current rules where they have one, for both.
    position = next((one[0].position for one in (against, judgements) if one[0].position is not None), None)
    assert {name: result[name] for name in ("total", "rules")} == expected_ruleset(
        judgements, subject, position
    )
    assert result["against"] == expected_ruleset(against, current, position)
    assert result["billed"] == expected_billed(judgements, against, stored, prices, [WINDOW])
    assert result["rows"] == {
        "outside": first.outside,
        "decidable": sum(request.counted for request in first.requests),
        **{
            kind: sum(request.counted and request.kind == kind for request in first.requests)
            for kind in ("exact", "known", "open")
        },
    }
    moved = Counter(
        (old.status, new.status)
        for old, new in zip(against[0].requests, judgements[0].requests, strict=True)
        if new.counted and old.status != new.status
    )
    # A request that hidden literals may make a hit has a row without a count.
    assert {(row["from"], row["to"]): row["count"] for row in result["moved"] if row["count"]} == moved
    check_calibration(result["calibration"], judged(in_force, variants[0]))


FILLED = {
    "isReadOnly": True,
    "isDataChange": False,
    "userName": "ann",
    "tables": "[]",
    "clientIp": "10.0.0.1",
    "cacheOverride": "cache",
    "hasNonDeterministicFunctions": False,
}


def test_requests_that_end_differently_agree_with_the_hits(run: Callable[..., Any]) -> None:
    """One of three requests whose literals the log hides is a miss for certain."""
    text = "SELECT a FROM t WHERE b = ?"
    hidden = {"standardizedSql": text, "cacheStatus": "PASSTHROUGH", "isReadOnly": True}
    rows = [make_row(at=DAY_MS + number, parameterValues=None, **hidden) for number in (0, 5, 10_000)]
    cached = [{"id": "c", "conditions": {"isReadOnly": True}, "ttlSeconds": 600}]
    result = run(rows, cached, WINDOW, current=[])
    assert result["total"]["hits"] == {"low": 0, "likely": None, "high": 2}
    assert [(row["from"], row["to"], row["count"], row["bounds"]) for row in result["moved"]] == [
        ("PASSTHROUGH", "MISS", 3, {"low": 1, "likely": None, "high": 3}),
        ("PASSTHROUGH", "HIT", 0, {"low": 0, "likely": None, "high": 2}),
    ]


READS = {"id": "c", "conditions": {"isReadOnly": True}, "ttlSeconds": 600}


@pytest.mark.parametrize(
    ("draft", "hits", "moved"),
    [
        ([{"id": "a", "action": "bypass", "conditions": {"userName": "eve"}}, READS], 2, {}),
        # The statements of ann and bob have one hash, so bob got what was stored for ann.
        (
            [{"id": "a", "action": "bypass", "conditions": {"userName": "ann"}}, READS],
            1,
            {("MISS", "BYPASS"): 1, ("HIT", "MISS"): 1},
        ),
        ([READS | {"ttlSeconds": 1}], 1, {("HIT", "MISS"): 1}),
        (
            [
                {
                    "id": "w",
                    "action": "invalidate",
                    "conditions": {"isDataChange": True},
                    "invalidateRules": ["c"],
                },
                READS,
            ],
            1,
            {("PASSTHROUGH", "BYPASS"): 1, ("HIT", "MISS"): 1},
        ),
    ],
)
def test_a_draft_also_changes_what_requests_get_that_are_decided_as_before(
    run: Callable[..., Any], draft: Any, hits: int, moved: Any
) -> None:
    same = {"cacheKey": "k", "queryHash": "h", "isReadOnly": True, "isDataChange": False}
    other = same | {"standardizedSql": "SELECT 3", "queryHash": "i"}
    rows = [
        make_row(at=at, **fields)
        for at, fields in (
            (0, same | {"standardizedSql": "SELECT ? AS a", "userName": "ann"}),
            (2_000, same | {"standardizedSql": "SELECT ? AS b", "userName": "bob"}),
            (1_000, {"standardizedSql": "UPDATE t SET a = 1", "isDataChange": True}),
            (1_500, other),
            (1_600, other),
        )
    ]
    result = run(rows, draft, current=[READS])
    assert {(row["from"], row["to"]): row["count"] for row in result["moved"]} == moved
    assert next(rule["hits"]["low"] for rule in result["rules"] if rule["ruleId"] == "c") == hits
    assert result["total"] == run(rows, draft)["total"]


def check_calibration(calibration: dict[str, Any], judgement: Judgement) -> None:
    counted = [request for request in judgement.requests if request.counted]
    pairs = Counter((request.row["cacheStatus"], request.status) for request in counted)
    equal = sum(count for (logged, replayed), count in pairs.items() if logged == replayed)
    assert (calibration["rows"], calibration["equal"]) == (len(counted), equal)
    is_request = {"HIT", "MISS", "BYPASS", "PASSTHROUGH"}
    assert calibration["requests"] == {
        "logged": sum(request.row["cacheStatus"] in is_request for request in counted),
        "replayed": sum(request.status in is_request for request in counted),
    }
    causes: Counter[tuple[str, str]] = Counter()
    for cause in calibration["causes"]:
        causes[cause["logged"], cause["replayed"]] += cause["count"]
    assert causes == Counter({pair: count for pair, count in pairs.items() if pair[0] != pair[1]})
    for name, status in (("hits", "HIT"), ("misses", "MISS")):
        logged = Counter(r.row["matchedRule"] for r in counted if r.row["cacheStatus"] == status)
        replayed = Counter(r.decision.rule_id for r in counted if r.status == status)
        found = {row["ruleId"]: row[name] for row in calibration["rules"]}
        assert {key: value["logged"] for key, value in found.items() if value["logged"]} == {
            key: value for key, value in logged.items() if key is not None
        }
        assert {key: value["replayed"] for key, value in found.items() if value["replayed"]} == {
            key: value for key, value in replayed.items() if key is not None
        }


def test_the_streams_have_every_count() -> None:
    """What no stream has would be compared for nothing."""
    total: Counter[str] = Counter()
    for seed in range(40):
        chance = random.Random(seed)  # noqa: S311
        rules = read_rules(random_rules(chance))
        judgement = judge(
            random_rows(chance, 120), rules=rules, counted=COUNTED, nocache=False, non_deterministic=False
        )
        total.update(judgement.total())
        total["above"] += sum(judgement.high_hits.values()) - judgement.total()["hits"]
        total["positions"] += len(judgement.positions)
    assert {name: count for name, count in total.items() if count < 10} == {}
    assert {*SIMPLE, *REASONS, "hits", "savedMs", "riskLow", "riskHigh"} <= total.keys()


def test_differences_in_the_cache_have_their_causes(run: Callable[..., Any]) -> None:
    rows = [
        make_row(at=at, cacheStatus=status, standardizedSql=statement, logId=f"{number}", matchedRule="r")
        | {"warehouseExecutionTimeMs": 100}
        for number, (at, status, statement) in enumerate(
            [
                (0, "HIT", "SELECT 1"),
                (0, "MISS", "SELECT 2"),
                (500, "MISS", "SELECT 2"),
                (600, "MISS", "SELECT 2"),
                (0, "MISS", "SELECT 3"),
                (5_000, "HOLD", "SELECT 3"),
                (5_000, "MISS", "SELECT 3"),
            ]
        )
    ]
    result = run(rows, [{"id": "r", "ttlSeconds": 1}])
    assert [tuple(cause.values()) for cause in result["calibration"]["causes"]] == [
        ("HIT", "MISS", 1, "cached-before"),
        ("HOLD", "MISS", 1, "same-millisecond"),
        ("MISS", "HIT", 1, "differed-before"),
        ("MISS", "HIT", 1, "other-cache-state"),
        ("MISS", "HOLD", 1, "differed-before"),
    ]


@pytest.mark.parametrize(
    ("statuses", "misses", "why"),
    [
        (["MISS", "MISS", "HOLD"], 2, "gateway-never-stale"),
        (["HIT", "MISS", "HOLD"], 1, "stale-result"),
        (["ERROR", "MISS", "HOLD"], 1, "gateway-never-stale"),
    ],
)
def test_a_gateway_that_never_serves_stale_results_is_a_cause_by_itself(
    run: Callable[..., Any], statuses: list[str], misses: int, why: str
) -> None:
    rows = [
        make_row(at=at, cacheStatus=status, standardizedSql=f"SELECT {number}", matchedRule="r")
        for number, asked_again in enumerate(statuses)
        for at, status in ((0, "MISS"), (5_000, asked_again))
    ]
    result = run(rows, [{"id": "r", "ttlSeconds": 1, "staleWhileRevalidate": 60}])
    causes = {cause["logged"]: (cause["count"], cause["why"]) for cause in result["calibration"]["causes"]}
    assert (causes["MISS"], causes["HOLD"]) == ((misses, why), (1, why))


@pytest.mark.parametrize("code", Caveat)
def test_each_caveat_has_words(code: Caveat) -> None:
    assert f"`{code}`" in (ROOT / "docs/replay.md").read_text()
    assert describe_caveat(code) != code


def test_days_without_data_or_with_a_column_of_nulls_are_left_out(run: Callable[..., Any]) -> None:
    rows = [
        make_row(at=0, userName="ann"),
        make_row(at=DAY_MS, cacheStatus="SPOOFED", userName="ann"),
        make_row(at=DAY_MS),
    ]
    result = run(rows, [{"id": "r", "conditions": {"userName": {"exists": True}}}], DAYS[0], DAYS[2])
    assert result["window"] == {
        "from": "2026-03-01",
        "to": "2026-03-03",
        "warmupDays": 1,
        "daysLeftOut": ["2026-03-02", "2026-03-03"],
        "emptyColumns": {"2026-03-02": ["userName"]},
    }
    assert result["rows"] == {"decidable": 1, "outside": 0, "exact": 1, "known": 0, "open": 0}
    assert result["total"]["misses"] == 1
    assert result["caveats"] == ["writes-past-gateway-invisible", "days-left-out", "cold-start"]


def test_a_day_is_kept_on_which_no_request_has_an_optional_column_that_the_log_has(
    run: Callable[..., Any],
) -> None:
    rules = [{"id": "r", "action": "bypass", "conditions": {"cacheOverride": {"ne": "nocache"}}}]
    rows = [make_row(at=0), make_row(at=DAY_MS, cacheOverride="nocache"), make_row(at=2 * DAY_MS)]
    result = run(rows, rules, DAYS[0], DAYS[2])
    # The log of the first day may be older than the column.
    assert result["window"]["emptyColumns"] == {"2026-03-01": ["cacheOverride"]}
    assert (result["total"]["passed"], result["total"]["bypassed"]) == (1, 1)


def test_a_day_of_several_files_is_one_day(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rules = read_rules([{"id": "r", "conditions": {"userName": {"exists": True}}}])
    # The first file alone lacks a column that the rules read.
    rows = [make_row(at=0), make_row(at=5_000, userName="ann"), make_row(at=9_000, userName="ann")]
    (whole,) = write_days(rows, tmp_path / "whole")
    parts = [file for at in range(3) for file in write_days(rows[at : at + 1], tmp_path / str(at))]
    one, several = (
        run_replay(connection, Job(files, DAYS[0], DAYS[0], rules, rules)) for files in ([whole], parts)
    )
    assert several == one
    assert several["rows"]["decidable"] == 3


def test_a_replay_without_any_data_counts_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    rules = read_rules([{"id": "r", "conditions": {"tables": {"containsAny": ["a"]}}}])
    result = run_replay(connection, Job([], DAYS[0], DAYS[0], rules, ()))
    assert result["window"]["daysLeftOut"] == ["2026-03-01"]
    assert result["total"]["requests"] == 0
    assert (result["calibration"]["share"], result["calibration"]["grade"]) == (None, "poor")


def test_the_cost_of_publishing_is_the_misses_of_a_cold_cache(run: Callable[..., Any]) -> None:
    hour = DAY_MS // 24
    rows = [
        make_row(at=at, standardizedSql=statement, warehouseExecutionTimeMs=ms)
        for at, statement, ms in (
            (0, "SELECT 1", 300),
            (hour - 1, "SELECT 1", None),
            (hour, "SELECT 2", 500),
            (2 * hour, "SELECT 2", None),
            (4 * hour - 1, "SELECT 2", None),
        )
    ]
    cost = run(rows, [{"id": "r", "ttlSeconds": 86_400}], hour=3)["publishCost"]
    extra = [(row["hour"], row["extraMisses"], row["extraMs"]) for row in cost["byHour"]]
    assert extra == [(n, 1, 500) if n in {2, 3} else (n, 0, 0) for n in range(24)]
    assert cost["best"] == {"hour": 0, "extraMisses": 0, "extraMs": 0}
    assert cost["now"] == {"hour": 3, "extraMisses": 1, "extraMs": 500}


SHARED: dict[str, Any] = {"id": "c", "name": "Customers", "conditions": {"isReadOnly": True}, "varyBy": []}

OWN = SHARED | {"varyBy": ["userName"]}

#: The first two depend on the user: one by a function, one by a table.
STATEMENTS = {"SELECT current_user()": "[]", "SELECT a FROM own": '["s.own"]', "SELECT b FROM t": '["s.t"]'}


@pytest.mark.parametrize(
    ("subject", "current", "ended", "begun"),
    [
        (OWN, SHARED, True, False),
        (SHARED, OWN, False, True),
        # A leak that stays neither ends nor begins.
        (SHARED | {"ttlSeconds": 10}, SHARED, False, False),
    ],
)
def test_a_leak_ends_where_results_vary_by_user_and_begins_where_they_are_shared(
    run: Callable[..., Any], subject: Any, current: Any, *, ended: bool, begun: bool
) -> None:
    """Three users send all requests for one statement, two those for the others."""
    rows = [
        make_row(
            at=DAY_MS + 10_000 * number + place,
            standardizedSql=text,
            tables=tables,
            isReadOnly=True,
            warehouseExecutionTimeMs=100,
            userName=name,
        )
        for place, name in enumerate(("ann", "bob", "cem"))
        for number, (text, tables) in enumerate(STATEMENTS.items())
        if name != "cem" or "own" in text
    ]
    tables = WarehouseTables(per_user=("S.OWN",))
    leak = {"ruleId": "c", "ruleName": "Customers", "statements": 2, "users": 3, "words": ("current_user()",)}
    assert run(rows, [subject], WINDOW, current=[current], tables=tables)["leaks"] == {
        "ended": [leak] * ended,
        "begun": [leak] * begun,
    }


@pytest.mark.parametrize(
    ("rule", "tables", "has_caveat"),
    [(SHARED, '["t"]', True), (SHARED, '["s.t"]', False), (OWN, '["t"]', False)],
)
def test_results_of_a_table_without_a_schema_have_a_caveat_where_users_share_them(
    run: Callable[..., Any], rule: dict[str, Any], tables: str, *, has_caveat: bool
) -> None:
    """Sessions with other search paths read another table."""
    read = {"standardizedSql": "SELECT a FROM t", "tables": tables, "isReadOnly": True}
    rows = [make_row(at=DAY_MS + at, userName=name, **read) for at, name in enumerate(("ann", "bob"))]
    assert ("tables-without-schema" in run(rows, [rule], WINDOW)["caveats"]) is has_caveat


@pytest.mark.parametrize(
    ("vary_by", "asked", "has_caveat"),
    [
        ([], "SELECT a FROM s.t", True),
        (["sessionId"], "SELECT a FROM s.t", False),
        ([], "SELECT b FROM s.t", False),
    ],
)
def test_results_that_other_sessions_are_served_have_a_caveat(
    run: Callable[..., Any], vary_by: list[str], asked: str, *, has_caveat: bool
) -> None:
    """The key has the time zone of a session, which the log does not show."""
    read = {"tables": '["s.t"]', "isReadOnly": True, "parameterValues": "[]"}
    rows = [
        make_row(at=DAY_MS, sessionId="one", standardizedSql="SELECT a FROM s.t", **read),
        make_row(at=DAY_MS + 1, sessionId="other", standardizedSql=asked, **read),
    ]
    rule = SHARED | {"varyBy": vary_by}
    assert ("session-settings-invisible" in run(rows, [rule], WINDOW)["caveats"]) is has_caveat
