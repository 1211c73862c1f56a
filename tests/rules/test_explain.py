"""Explanations: outcomes, failed tests, distance, and the operation for an invented request."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.conditions.evaluate import ConditionTrace
from rules.explain import count_flips, explain
from rules.language import complete_rule, read_rules
from rules.write import write_ruleset
from tenantadmin.lib.core.serving import DISCONNECTION_KEY, Disconnection
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

REQUEST = {"statementType": "SELECT", "isReadOnly": True, "userName": "ann", "tables": ["sales.orders"]}


def explained(*rules: dict[str, Any], **request: Any) -> dict[str, dict[str, Any]]:
    found = msgspec.to_builtins(explain(read_rules(rules), {**REQUEST, **request}).rules)
    return {rule["ruleId"]: rule for rule in found}


@pytest.mark.parametrize(
    ("conditions", "note"),
    [
        (
            {"tables": {"containsAny": ["x", "hr.people"]}},
            'The request names "HR".People, which is hr.people.',
        ),
        ({"tables": "people"}, 'The request names "HR".People, which may be people.'),
        ({"tables": {"in": ["pay.people"]}}, None),
        ({"tables": {"exists": False}}, None),
        ({"not": {"tables": {"containsAny": ["*"]}}}, None),
    ],
)
def test_a_table_in_another_spelling_is_named(conditions: dict[str, Any], note: str | None) -> None:
    rules = read_rules([complete_rule({"id": "r", "conditions": conditions})])
    (explained,) = explain(rules, {"tables": ['"HR".People']}).rules
    (failed,) = explained.failed
    assert failed.note == (note and f"{note} Conditions compare the text.")


def test_the_outcome_of_each_rule() -> None:
    rules = explained(
        {"id": "no", "conditions": {"userName": "bo"}},
        {"id": "off", "enabled": False, "conditions": {"userName": "ann"}},
        {"id": "first", "conditions": {"isReadOnly": True}},
        {"id": "later", "invalidateRules": ["first"]},
    )
    assert {name: (rule["outcome"], rule["distance"], rule["fired"]) for name, rule in rules.items()} == {
        "first": ("decided", 0, False),
        "later": ("matched-later", 0, True),
        "no": ("not-matched", 1, False),
        "off": ("disabled", 0, False),
    }


def test_the_closest_rules_come_first_and_disabled_ones_last() -> None:
    rules = explained(
        {"id": "never", "conditions": {"any": []}},
        {"id": "two", "conditions": {"userName": "bo", "statementType": "INSERT"}},
        {"id": "off", "enabled": False},
        {"id": "one", "conditions": {"userName": "bo"}},
        {"id": "also-one", "conditions": {"tables": {"containsAny": ["hr.*"]}}},
    )
    assert list(rules) == ["one", "also-one", "two", "never", "off"]
    assert [rule["position"] for rule in rules.values()] == [3, 4, 1, 0, 2]
    assert rules["never"]["distance"] is None


def test_a_failed_test_has_its_operand_and_the_value_seen() -> None:
    rule = explained(
        {
            "id": "r",
            "conditions": {
                "tables": {"containsAny": ["hr.*"]},
                "userName": {"startsWith": "a"},
                "not": {"statementType": {"in": ["SELECT", "WITH"]}},
            },
        }
    )["r"]
    assert rule["failed"] == [
        {
            "path": "/tables/containsAny",
            "key": "tables",
            "operator": "containsAny",
            "operand": ["hr.*"],
            "value": ["sales.orders"],
            "negated": False,
        },
        {
            "path": "/not/statementType/in",
            "key": "statementType",
            "operator": "in",
            "operand": ["SELECT", "WITH"],
            "value": "SELECT",
            "negated": True,
        },
    ]
    assert rule["distance"] == 2
    first, second, third = rule["conditions"]["parts"]
    assert (first["matched"], second["matched"], third["matched"]) == (False, True, False)
    assert second == {
        "path": "/userName/startsWith",
        "operator": "startsWith",
        "matched": True,
        "key": "userName",
        "operand": "a",
        "value": "ann",
    }


def test_a_long_text_is_cut() -> None:
    rule = explained({"id": "r", "conditions": {"standardizedSql": "x"}}, standardizedSql="y" * 501)["r"]
    assert rule["failed"][0]["value"] == "y" * 499 + "…"
    rule = explained({"id": "r", "conditions": {"standardizedSql": "x"}}, standardizedSql="y" * 500)["r"]
    assert rule["failed"][0]["value"] == "y" * 500


def test_a_long_list_is_cut() -> None:
    tables = [f"t{number:04}" for number in range(51)]
    condition = {"tables": {"in": tables}}
    (failed,) = explained({"id": "r", "conditions": condition}, tables=tables[1:] + tables[:1])["r"]["failed"]
    assert failed["operand"] == failed["value"] == [*tables[:50], "…"]
    (failed,) = explained({"id": "r", "conditions": condition}, tables=tables[:50])["r"]["failed"]
    assert failed["value"] == tables[:50]


def leaf(*, matched: bool) -> ConditionTrace:
    return ConditionTrace("", matched, "eq", key="userName")


def combine(operator: str, parts: list[ConditionTrace]) -> ConditionTrace:
    results = [part.matched for part in parts]
    matched = {"all": all, "any": any}[operator](results) if operator != "not" else not results[0]
    return ConditionTrace("", matched, operator, parts=tuple(parts))


_trees = st.recursive(
    st.booleans().map(lambda matched: leaf(matched=matched)),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["all", "any"]), st.lists(inner, max_size=3)).map(
            lambda pair: combine(*pair)
        ),
        inner.map(lambda part: combine("not", [part])),
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(tree=_trees, target=st.booleans())
def test_the_distance_is_the_smallest_number_of_changed_tests(tree: ConditionTrace, target: bool) -> None:
    number = len(leaves(tree))
    reachable = [
        sum(changes)
        for changes in itertools.product((False, True), repeat=number)
        if evaluate(tree, iter(changes)) is target
    ]
    assert count_flips(tree, target=target) == min(reachable, default=None)


def leaves(tree: ConditionTrace) -> list[ConditionTrace]:
    return [tree] if tree.key else [test for part in tree.parts for test in leaves(part)]


def evaluate(tree: ConditionTrace, changes: Any) -> bool:
    if tree.key:
        return tree.matched is not next(changes)
    # A list, so that every part takes its own changes.
    results = [evaluate(part, changes) for part in tree.parts]
    return {"all": all, "any": any}[tree.operator](results) if tree.operator != "not" else not results[0]


class TestOperation:
    RULES = ({"id": "a", "conditions": {"userName": "ann"}}, {"id": "b"})

    def write(self, world: World, *rules: dict[str, Any]) -> Any:
        return write_ruleset(tenant_id=world.tenant.pk, document={"rules": [*rules]}, actor=world.owner.email)

    def post(self, world: World, body: dict[str, Any]) -> Any:
        client = ApiClient(factories.sign_in(world.member))
        return client.post(f"/config/tenants/{world.tenant.pk}/rules/explain", body)

    def test_the_current_rules_decide(self, world: World) -> None:
        self.write(world, *self.RULES)
        body = self.post(world, {"request": {"userName": "bo"}}).json()
        assert body["decision"] == {
            "ruleId": "b",
            "action": "cache",
            "statuses": ["HIT", "MISS"],
            "fired": [],
            "varyBy": {},
        }
        assert [rule["ruleId"] for rule in body["rules"]] == ["b", "a"]
        assert (body["ruleset"]["seq"], body["ruleset"]["inForce"]) == (1, True)

    def test_a_revision_decides(self, world: World) -> None:
        self.write(world, *self.RULES)
        self.write(world)
        assert self.post(world, {"request": {}}).json()["decision"]["statuses"] == ["PASSTHROUGH"]
        body = self.post(world, {"request": {"userName": "ann"}, "seq": 1}).json()
        assert (body["decision"]["ruleId"], body["ruleset"]["seq"]) == ("a", 1)

    def test_the_rules_in_force_at_a_moment_decide(self, world: World) -> None:
        first = self.write(world, *self.RULES)
        second = self.write(world)
        for moment, seq, in_force in (
            ("1970-01-01T00:00:00Z", 2, False),
            (first.modified_at.isoformat(), 1, True),
            (second.modified_at.isoformat(), 2, True),
            ("2099-01-01T00:00:00Z", 2, True),
        ):
            ruleset = self.post(world, {"request": {}, "at": moment}).json()["ruleset"]
            assert (ruleset["seq"], ruleset["inForce"]) == (seq, in_force), moment

    @pytest.mark.parametrize(
        ("body", "path"),
        [
            ({}, "/request"),
            ({"request": []}, "/request"),
            ({"request": {"username": "x"}}, "/request/username"),
            ({"request": {"isDDL": "yes"}}, "/request/isDDL"),
            ({"request": {}, "seq": 9}, "/seq"),
            ({"request": {}, "seq": 10**30}, "/seq"),
            ({"request": {}, "seq": 0, "at": "2026-01-01T00:00:00Z"}, "/at"),
            ({"request": {}, "at": "2026-01-01"}, "/at"),
        ],
    )
    def test_a_wrong_body_is_a_400(self, world: World, body: dict[str, Any], path: str) -> None:
        answer = self.post(world, body)
        assert answer.status_code == 400
        assert [detail["path"] for detail in answer.json()["details"]] == [path]

    def test_a_deleted_tenant_is_a_404(self, world: World) -> None:
        admin = ApiClient(factories.sign_in(world.platform_admin))
        address = f"/config/tenants/{world.tenant.pk}"
        assert admin.delete(address).status_code == 200
        assert admin.post(f"{address}/rules/explain", {"request": {}}).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("columns", "values", "statuses"),
    [
        (None, {}, ["HIT", "MISS"]),
        ([], {}, ["HIT", "MISS"]),
        (["userName"], {"userName": "ann"}, ["HIT", "MISS"]),
        (["sessionId", "userName"], {"sessionId": None, "userName": "ann"}, ["BYPASS"]),
        (["userTokenHash"], {"userTokenHash": ""}, ["HIT", "MISS"]),
        (["host"], {"host": None}, ["BYPASS"]),
    ],
)
def test_the_values_that_a_result_varies_by(
    world: World, columns: list[str] | None, values: dict[str, str | None], statuses: list[str]
) -> None:
    rule: dict[str, Any] = {"id": "r"} | ({} if columns is None else {"varyBy": columns})
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": [rule]}, actor=world.owner.email)
    client = ApiClient(factories.sign_in(world.owner))
    answer = client.post(
        f"/config/tenants/{world.tenant.pk}/rules/explain",
        {"request": {"userName": "ann", "userTokenHash": "", "host": None}},
    )
    assert answer.status_code == 200, answer.content
    decision = answer.json()["decision"]
    assert (decision["varyBy"], decision["statuses"], decision["action"]) == (values, statuses, "cache")


@pytest.mark.django_db
def test_a_column_to_vary_by_is_a_text(world: World) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    answer = client.post(
        f"/config/tenants/{world.tenant.pk}/rules/explain", {"request": {"sessionId": 5, "userName": "ann"}}
    )
    assert answer.status_code == 400
    (detail,) = answer.json()["details"]
    assert (detail["path"], detail["code"]) == ("/request/sessionId", "wrong-type")


def test_a_rule_that_does_not_cache_varies_by_nothing() -> None:
    rules = read_rules([{"id": "b", "action": "bypass"}])
    assert explain(rules, REQUEST).decision.vary_by is None


class TestCost:
    """One request of 209 kB about a draft of 134 kB took 54 seconds of processor time."""

    @pytest.fixture
    def client(self, world: World) -> ApiClient:
        return ApiClient(factories.sign_in(world.owner))

    @staticmethod
    def globs(count: int, *, tests: int = 1) -> dict[str, Any]:
        patterns = [f"{number:x}*z" for number in range(count)]
        return {"id": "many", "conditions": {"all": [{"tables": {"containsAny": patterns}}] * tests}}

    def test_a_request_has_at_most_a_thousand_tables(self, world: World, client: ApiClient) -> None:
        address = f"/config/tenants/{world.tenant.pk}/rules/explain"
        names = [f"schema.t{number}" for number in range(1_001)]
        assert client.post(address, {"request": {"tables": names[1:]}}).status_code == 200
        for tables in (names, json.dumps(names)):
            answer = client.post(address, {"request": {"tables": tables}})
            assert answer.status_code == 400
            (detail,) = answer.json()["details"]
            assert (detail["path"], detail["code"]) == ("/request/tables", "out-of-range")

    def test_a_draft_with_more_patterns_in_a_test_is_not_explained(
        self, world: World, client: ApiClient
    ) -> None:
        address = f"/config/tenants/{world.tenant.pk}/rules"
        draft = client.post(f"{address}/drafts", {"rules": [self.globs(20_000)]}).json()
        body = {"draftId": draft["draftId"], "request": {"tables": ["t"]}}
        (detail,) = client.post(f"{address}/explain", body).json()["details"]
        assert (detail["path"], detail["code"]) == ("/draftId", "lint-errors")

    def test_what_takes_too_long_is_refused(self, world: World, client: ApiClient, settings: Any) -> None:
        """A million comparisons for each of 26 tests."""
        settings.REQUEST_SECONDS = 0.2
        document = {"rules": [self.globs(1_000, tests=26)]}
        write_ruleset(tenant_id=world.tenant.pk, document=document, actor=world.owner.email)
        tables = [f"schema.t{number}" for number in range(1_000)]
        answer = client.post(
            f"/config/tenants/{world.tenant.pk}/rules/explain", {"request": {"tables": tables}}
        )
        assert (answer.status_code, answer.json()["error"]) == (400, "too_costly")

    def test_what_repeats_too_much_is_refused(self, world: World, client: ApiClient) -> None:
        """Each of 680 tests repeats 50 names of 500 characters twice."""
        for count, status in ((660, 200), (680, 400)):
            tests = [{"tables": {"containsAny": [f"{number}"]}} for number in range(count)]
            document = {"rules": [{"id": "many", "conditions": {"any": tests}}]}
            write_ruleset(tenant_id=world.tenant.pk, document=document, actor=world.owner.email)
            answer = client.post(
                f"/config/tenants/{world.tenant.pk}/rules/explain",
                {"request": {"tables": [f"{number:03}".ljust(600, "x") for number in range(60)]}},
            )
            assert answer.status_code == status
        assert answer.json()["error"] == "too_costly"
        assert answer.json()["message"] == (
            "The answer would repeat more than 32 MiB of the request's values. "
            "Ask with fewer table names and shorter values."
        )

    def test_it_ends_when_the_caller_hangs_up(self, world: World) -> None:
        """Before the first rule is looked at."""
        document = {"rules": [self.globs(1_000)]}
        write_ruleset(tenant_id=world.tenant.pk, document=document, actor=world.owner.email)
        connection = Disconnection()
        connection.set()
        answer = Client(raise_request_exception=False).post(
            f"/config/tenants/{world.tenant.pk}/rules/explain",
            {"request": {"tables": ["a"]}},
            "application/json",
            headers={"Authorization": f"Bearer {factories.sign_in(world.owner)}"},
            **cast("Any", {DISCONNECTION_KEY: connection}),
        )
        assert (answer.status_code, answer.json()["error"]) == (408, "request_timeout")
