"""The judge itself, by cases made by hand: one for each sentence of the definition of a replay."""

from __future__ import annotations

from typing import Any

import pytest

from logs.layout import DAY_MS
from rules.language import read_rules
from tests.analytics.replay.judge import Judgement, judge
from tests.analytics.replay.streams import DAYS, START, make_row

FIRST = DAYS[0].isoformat()
CACHE = {"id": "c", "conditions": {"isReadOnly": True}, "ttlSeconds": 10}
FIRE = {"id": "f", "conditions": {"isDataChange": True}, "invalidateRules": ["c"]}


def read(at: int, **fields: Any) -> dict[str, Any]:
    """A read that took 100 ms in the warehouse. Its literals are not hidden."""
    return make_row(at=at, **{"isReadOnly": True, "warehouseExecutionTimeMs": 100} | fields)


def write(at: int, **fields: Any) -> dict[str, Any]:
    values = {
        "standardizedSql": "UPDATE t SET a = 1",
        "isDataChange": True,
        "cacheStatus": "BYPASS",
        "warehouseExecutionTimeMs": 50,
    }
    return make_row(at=at, **values | fields)


def run(rows: list[dict[str, Any]], *rules: dict[str, Any], **options: Any) -> Judgement:
    options.setdefault("counted", {FIRST})
    return judge(rows, rules=read_rules(rules or (CACHE, FIRE)), **options)


def statuses(judgement: Judgement) -> list[str]:
    return [f"{request.status}{' stale' * request.is_stale}" for request in judgement.requests]


def reasons(judgement: Judgement) -> list[str | None]:
    return [request.reason for request in judgement.requests]


def test_rows_are_decided_by_time_then_log_id_then_as_stored() -> None:
    rows = [
        read(5, logId="b", responseSize=1),
        read(5, logId=None, responseSize=2),
        read(5, logId="", responseSize=3),
        read(1, logId="z", responseSize=4),
    ]
    sizes = [request.row["responseSize"] for request in run(rows).requests]
    assert sizes == [4, 2, 3, 1]


@pytest.mark.parametrize(
    "fields",
    [
        {"timestamp": None},
        {"standardizedSql": None},
        {"cacheStatus": None},
        *({"cacheStatus": status} for status in ("SPOOFED", "TELEMETRY", "AUTH_ERROR", "EXECUTOR")),
    ],
)
def test_other_rows_are_only_counted(fields: dict[str, Any]) -> None:
    judgement = run([read(0, **fields)])
    assert (judgement.requests, judgement.outside, dict(judgement.counts)) == ([], 1, {})


def test_warm_up_days_fill_the_cache_and_are_not_counted() -> None:
    rows = [read(DAY_MS - 500), read(DAY_MS), read(DAY_MS - 1, cacheStatus="SPOOFED")]
    judgement = run(rows, counted={DAYS[1].isoformat()})
    assert statuses(judgement) == ["MISS", "HIT"]
    assert judgement.outside == 0
    assert judgement.counts["c"]["requests"] == judgement.counts["c"]["hits"] == 1
    assert judgement.counts["c"]["misses"] == 0


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ({"id": "r", "conditions": {"isReadOnly": False}}, "PASSTHROUGH"),
        ({"id": "r", "action": "deny"}, "BLOCKED"),
        ({"id": "r", "action": "bypass"}, "BYPASS"),
        ({"id": "r", "action": "invalidate", "invalidateRules": ["r"]}, "BYPASS"),
        ({"id": "r"}, "MISS"),
    ],
)
def test_the_action_gives_the_status(rule: dict[str, Any], status: str) -> None:
    assert statuses(run([read(0)], rule)) == [status]
    failing = "BLOCKED" if status == "BLOCKED" else "ERROR"
    assert statuses(run([read(0, cacheStatus="ERROR")], rule)) == [failing]


def test_a_failing_row_stores_nothing_and_fires_nothing() -> None:
    rows = [
        read(0, cacheStatus="ERROR"),
        read(1000),
        write(2000, cacheStatus="ERROR"),
        read(3000),
        read(4000, cacheStatus="ERROR"),
    ]
    judgement = run(rows)
    assert statuses(judgement) == ["ERROR", "MISS", "ERROR", "HIT", "HIT"]
    assert judgement.counts["f"]["fired"] == 0


def test_invalidation_errors_stay_where_a_rule_that_would_fire_requires_its_markers() -> None:
    rows = [read(0), write(1000, cacheStatus="INVALIDATION_ERROR"), read(2000)]
    assert statuses(run(rows)) == ["MISS", "BYPASS", "HIT"]
    required = FIRE | {"requireInvalidation": True}
    judgement = run(rows, CACHE, required)
    assert statuses(judgement) == ["MISS", "INVALIDATION_ERROR", "HIT"]
    assert judgement.counts["f"]["fired"] == 0
    deny = {"id": "d", "action": "deny", "conditions": {"isDataChange": True}}
    assert statuses(run(rows, deny, required, CACHE)) == ["MISS", "BLOCKED", "HIT"]


def test_means_are_of_executed_rows_with_a_time_rounded_down() -> None:
    rows = [
        read(0, warehouseExecutionTimeMs=4),
        read(20_000, warehouseExecutionTimeMs=7, cacheStatus="BYPASS"),
        read(40_000, warehouseExecutionTimeMs=-9),
        read(60_000, warehouseExecutionTimeMs=None),
        read(80_000, warehouseExecutionTimeMs=1000, cacheStatus="HIT"),
        read(81_000, warehouseExecutionTimeMs=1000, cacheStatus="HOLD"),
    ]
    judgement = run(rows)
    assert [request.work for request in judgement.requests] == [4, 7, 5, 5, 5, 5]
    assert [request.mean for request in judgement.requests] == [5] * 6
    counts = judgement.counts["c"]
    assert (counts["savedMs"], counts["spentMs"]) == (5, 4 + 7 + 5 + 5 + 5)


def test_a_statement_without_times_takes_none() -> None:
    rows = [read(0, warehouseExecutionTimeMs=None), read(0, warehouseExecutionTimeMs=None)]
    assert statuses(run(rows)) == ["MISS", "HIT"]


@pytest.mark.parametrize(("at", "status"), [(99, "HOLD"), (100, "HIT"), (10_099, "HIT"), (10_100, "MISS")])
def test_an_entry_is_fresh_from_its_birth_to_its_end(at: int, status: str) -> None:
    assert statuses(run([read(0), read(at)])) == ["MISS", status]


def test_a_longer_ttl_also_makes_hits_misses() -> None:
    rows = [read(0), read(15_000), read(24_000)]
    assert statuses(run(rows, CACHE)) == ["MISS", "MISS", "HIT"]
    assert statuses(run(rows, {**CACHE, "ttlSeconds": 20})) == ["MISS", "HIT", "MISS"]


def test_markers_end_entries_that_were_born_strictly_before() -> None:
    # Born at 100; markers at 100, 101 and 300.
    for written_at, seen_at, status in (
        (50, 200, "HIT"),
        (51, 200, "MISS"),
        (250, 299, "HIT"),
        (250, 300, "MISS"),
    ):
        rows = [read(0), write(written_at), read(seen_at)]
        judgement = run(sorted(rows, key=lambda row: row["timestamp"]))
        assert judgement.requests[-1].status == status, written_at


def test_markers_made_by_hand_come_on_top_and_are_of_one_rule() -> None:
    rows = [read(0), read(200)]
    assert statuses(run(rows, markers=[("c", START + 150)])) == ["MISS", "MISS"]
    assert statuses(run(rows, markers=[("f", START + 150)])) == ["MISS", "HIT"]
    assert run(rows, markers=[("c", START + 150)]).counts["c"]["markers"] == 0


def test_miss_reasons() -> None:
    rows = [read(0), read(200), read(10_150), read(10_300)]
    # The second entry has ended and is marked: the end counts.
    judgement = run(rows, markers=[("c", START + 150), ("c", START + 10_300)])
    assert statuses(judgement) == ["MISS", "MISS", "HIT", "MISS"]
    assert reasons(judgement) == ["no-cache-entry", "invalidation-marker", None, "ttl-expired"]


def test_the_gateway_declines_by_itself_if_it_does() -> None:
    rows = [
        read(0, cacheOverride="nocache"),
        read(1, hasNonDeterministicFunctions=True),
        read(2, hasNonDeterministicFunctions=True, cacheOverride="cache"),
    ]
    assert statuses(run(rows)) == ["BYPASS", "BYPASS", "MISS"]
    assert statuses(run(rows, nocache=False)) == ["MISS", "BYPASS", "HOLD"]
    assert statuses(run(rows, non_deterministic=False)) == ["BYPASS", "MISS", "HOLD"]
    assert statuses(run([row | {"cacheStatus": "ERROR"} for row in rows])) == ["ERROR", "ERROR", "ERROR"]


def test_restarts_leave_the_cache_behind() -> None:
    rows = [read(0), read(1000), read(2000)]
    assert statuses(run(rows, changes=[START + 1000])) == ["MISS", "MISS", "HIT"]
    versions = [1, 2, 1, 2, None, 3]
    judgement = run([read(1000 * n, cacheKeyVersion=version) for n, version in enumerate(versions)])
    assert [request.restart for request in judgement.requests] == [0, 1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("statement", "values", "kind"),
    [
        ("SELECT 1", None, "exact"),
        ("SELECT 1", "[]", "exact"),
        ("SELECT ?", "[1]", "exact"),
        ("SELECT ?, %s, %(a)s, $12, :b, @c", "[1,2,3,4,5,6]", "exact"),
        ("SELECT :é", '{"é": 1}', "exact"),
        ("SELECT ?", None, "open"),
        ("SELECT ?", "[1, 2]", "open"),
        ("SELECT ?", "[", "open"),
        ("SELECT ?", "3", "open"),
    ],
)
def test_a_row_is_exact_if_it_has_as_many_values_as_placeholders(
    statement: str, values: str | None, kind: str
) -> None:
    row = read(0, standardizedSql=statement, parameterValues=values)
    assert run([row]).requests[0].kind == kind
    known = "known" if kind == "open" else kind
    assert run([row | {"cacheKey": "k", "queryHash": "h"}]).requests[0].kind == known


def test_no_row_of_a_statement_is_exact_if_some_values_have_two_hashes() -> None:
    keyed = [read(n, cacheKey="k", queryHash=f"h{n}") for n in range(2)]
    other = read(2, parameterValues="[]")
    assert [request.kind for request in run([*keyed, other]).requests] == ["known", "known", "open"]
    unkeyed = [row | {"cacheKey": None} for row in keyed]
    assert {request.kind for request in run(unkeyed).requests} == {"exact"}


def test_open_rows_are_unlike_any_other() -> None:
    rows = [read(n * 1000, standardizedSql="SELECT ?") for n in range(3)]
    judgement = run(rows)
    assert statuses(judgement) == ["MISS"] * 3
    # They may be one result.
    assert judgement.high_hits["c"] == 2
    assert judgement.high_saved["c"] == 200


STALE = CACHE | {"staleWhileRevalidate": 5}


def test_stale_results_are_served_while_one_request_revalidates() -> None:
    at = 10_100  # the end of the entry that was born at 100
    rows = [read(t) for t in (0, at, at + 50, at + 100, at + 4999)]
    judgement = run(rows, STALE)
    assert statuses(judgement) == ["MISS", "HIT stale", "HIT stale", "HIT", "HIT"]
    assert judgement.counts["c"]["revalidations"] == 1
    assert judgement.counts["c"]["spentMs"] == 200


def test_a_stale_window_ends() -> None:
    assert statuses(run([read(0), read(15_099)], STALE)) == ["MISS", "HIT stale"]
    judgement = run([read(0), read(15_100)], STALE)
    assert (statuses(judgement), reasons(judgement)[1]) == (["MISS", "MISS"], "ttl-expired")
    # The window ends while the revalidation is under way.
    slow = read(15_000, warehouseExecutionTimeMs=500)
    assert statuses(run([read(0), slow, read(15_099), read(15_100)], STALE)) == [
        *("MISS", "HIT stale", "HIT stale", "HOLD")
    ]


def test_a_marker_ends_the_stale_window() -> None:
    assert statuses(run([read(0), read(11_000)], STALE, markers=[("c", START + 10_500)])) == ["MISS", "MISS"]


def test_a_failing_row_does_not_revalidate() -> None:
    rows = [read(0), read(10_200, cacheStatus="ERROR"), read(10_400)]
    judgement = run(rows, STALE)
    assert statuses(judgement) == ["MISS", "HIT stale", "HIT stale"]
    assert judgement.counts["c"]["revalidations"] == 1


def test_risk_is_high_if_the_change_was_during_the_execution_and_low_if_later() -> None:
    tables = {"tables": '["\\"Sales\\".orders", "b"]'}
    # The entry starts at 0 and is born at 100. Each change takes 50 ms.
    for written_at, low, high in ((-51, 0, 0), (-50, 0, 0), (-49, 0, 1), (50, 0, 1), (51, 1, 1), (151, 0, 0)):
        change = write(
            1000 + written_at, standardizedSql="UPDATE sales.orders SET a = 1", tables='["sales.orders"]'
        )
        rows = sorted([read(1000, **tables), change, read(1200, **tables)], key=lambda row: row["timestamp"])
        counts = run(rows, CACHE).counts["c"]
        assert (counts["riskLow"], counts["riskHigh"]) == (low, high), written_at


@pytest.mark.parametrize(
    ("fields", "risk"),
    [
        ({}, 1),
        ({"isDataChange": None, "isDDL": True}, 1),
        ({"isDataChange": False}, 0),
        ({"cacheStatus": "ERROR"}, 0),
        # It changes a, and only reads b.
        ({"standardizedSql": "INSERT INTO a SELECT * FROM b", "tables": '["a", "b"]'}, 0),
        # The target is none of its tables, so each of them may be.
        ({"standardizedSql": "INSERT INTO c SELECT * FROM b", "tables": '["a", "b"]'}, 1),
        ({"standardizedSql": "CALL b()"}, 1),
    ],
)
def test_statements_that_change_a_table(fields: dict[str, Any], risk: int) -> None:
    change = write(200, **{"standardizedSql": "DELETE FROM `B` WHERE x", "tables": '["b"]'} | fields)
    rows = [read(0, tables='["b"]'), change, read(300, tables='["b"]')]
    assert run(rows, CACHE).counts["c"]["riskLow"] == risk


def test_refused_rows_change_nothing() -> None:
    rows = [read(0, tables='["t"]'), write(200, tables='["t"]'), read(300, tables='["t"]')]
    deny = {"id": "d", "action": "deny", "conditions": {"isDataChange": True}}
    assert run(rows, CACHE).counts["c"]["riskLow"] == 1
    assert run(rows, CACHE, deny).counts["c"]["riskLow"] == 0


def test_bounds_subtract_certain_misses() -> None:
    hidden = {"standardizedSql": "SELECT ?"}
    known = [read(t, **hidden, cacheKey="k", queryHash=f"h{t}") for t in (0, 1000, 2000)]
    opened = [read(t, **hidden) for t in (500, 11_000)]
    rows = sorted([*known, *opened], key=lambda row: row["timestamp"])
    # Three misses of known rows; merged, the open rows miss twice.
    assert run(rows).high_hits["c"] == 2
    assert run(rows[1:]).high_hits["c"] == 2


def test_with_stale_results_only_certain_misses_count() -> None:
    hidden = {"standardizedSql": "SELECT ?"}
    # Each takes 100 ms: certain are the first, and those 15,100 ms after the one before.
    rows = [read(t, **hidden) for t in (0, 15_099, 30_199, 30_250, 30_400)]
    assert run(rows, STALE).high_hits["c"] == 3
    # A marker between the end of the execution before and the request makes one more certain.
    assert run(rows, STALE, markers=[("c", START + 30_400)]).high_hits["c"] == 2


def test_the_likely_position_is_the_median_of_keyed_groups() -> None:
    rows = []
    for number, hashes in enumerate(["aaaa", "abab", "abcd"]):
        for position, letter in enumerate(hashes):
            rows.append(
                read(
                    1000 * position + number,
                    standardizedSql=f"SELECT ?, {number}",
                    cacheKey="k",
                    queryHash=f"{number}{letter}",
                )
            )
    ordered = sorted(rows, key=lambda row: row["timestamp"])
    # Merged, each group would have three hits; with its keys it has 3, 2 and 0.
    assert run(ordered).position == pytest.approx(2 / 3)
    few = [row for row in ordered if "2" not in row["standardizedSql"]]
    assert run(few).position is None


def test_results_are_kept_apart_by_the_columns_of_the_rule() -> None:
    rule = CACHE | {"varyBy": ["userName", "host"]}
    requests = [("ann", "x"), ("bob", "x"), ("ann", "y"), ("ann", "x"), ("x", "ann"), ("bob", "x")]
    rows = [read(1000 * n, userName=user, host=host) for n, (user, host) in enumerate(requests)]
    assert statuses(run(rows, rule)) == ["MISS", "MISS", "MISS", "HIT", "MISS", "HIT"]
    assert statuses(run(rows, CACHE | {"varyBy": []})) == ["MISS"] + ["HIT"] * 5


def test_a_row_with_a_null_among_the_columns_does_without_the_cache() -> None:
    rule = CACHE | {"varyBy": ["userName", "host"]}
    rows = [read(0, userName="ann"), read(1, host="x"), read(2, host="x", cacheStatus="ERROR")]
    assert statuses(run(rows, rule)) == ["BYPASS", "BYPASS", "ERROR"]
    assert statuses(run([read(0, userName="", host="")], rule)) == ["MISS"]


def test_a_rule_varies_as_it_said_at_the_time() -> None:
    then, now = (read_rules([CACHE | {"varyBy": columns}]) for columns in ([], ["userName"]))
    rows = [read(1000 * n, userName=user) for n, user in enumerate(["ann", "bob", "ann", "bob", "ann"])]
    judgement = run(rows, rulesets=[(0, then), (START + 2000, now)], changes=[START + 2000])
    assert statuses(judgement) == ["MISS", "HIT", "MISS", "MISS", "HIT"]


def test_a_gateway_that_keeps_users_apart_does_so_where_the_rule_does_not_vary() -> None:
    rows = [read(1000 * n, userName=user) for n, user in enumerate(["ann", "bob", "ann", None])]
    for rule in (CACHE, CACHE | {"varyBy": []}):
        assert statuses(run(rows, rule, keys_per_user=True)) == ["MISS", "MISS", "HIT", "BYPASS"]
    by_operation = [row | {"operationType": "QUERY"} for row in rows]
    varying = CACHE | {"varyBy": ["operationType"]}
    assert statuses(run(by_operation, varying, keys_per_user=True)) == ["MISS", "HIT", "HIT", "HIT"]


def test_bounds_keep_open_rows_of_different_users_apart() -> None:
    hidden = {"standardizedSql": "SELECT ?"}
    rows = [read(1000 * n, userName=user, **hidden) for n, user in enumerate(["ann", "bob", "ann"])]
    for rule in (CACHE, CACHE | {"staleWhileRevalidate": 5}):
        assert run(rows, rule).high_hits["c"] == 2
        assert run(rows, rule | {"varyBy": ["userName"]}).high_hits["c"] == 1
