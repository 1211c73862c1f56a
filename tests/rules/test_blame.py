"""Blame: the revision that last changed each value of a ruleset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from rules.blame import blame
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

ORDER = (None, "/order")


def run(*revisions: list[dict[str, Any]], limit: int = 1000) -> Any:
    """Blame the last of the revisions, which are given oldest first."""
    return blame(reversed(list(enumerate(revisions))), limit=limit)


def test_each_value_has_the_revision_that_changed_it() -> None:
    found = run(
        [],
        [{"id": "a", "ttl": 1, "conditions": {"x": {"in": [1, 2]}, "y": 1}}],
        [{"id": "a", "ttl": 2, "conditions": {"x": {"in": [1, 2]}, "y": True}}],
        [{"id": "a", "ttl": 2, "conditions": {"x": {"in": [2, 1]}, "y": True}}, {"id": "b"}],
    )
    assert found.seqs == {
        ("a", "/id"): 1,
        ("a", "/ttl"): 2,
        ("a", "/conditions/x/in"): 3,
        ("a", "/conditions/y"): 2,
        ("b", "/id"): 3,
        ORDER: 0,
    }
    assert found.is_complete


def test_a_value_that_came_back_is_blamed_on_its_last_change() -> None:
    assert run([{"id": "a", "t": 1}], [{"id": "a", "t": 2}], [{"id": "a", "t": 1}]).seqs["a", "/t"] == 2


def test_a_rule_that_came_back_is_new() -> None:
    assert run([{"id": "a"}], [], [{"id": "a"}]).seqs["a", "/id"] == 2


def test_an_empty_object_is_a_value() -> None:
    assert run([{"id": "a", "c": {}}], [{"id": "a", "c": {"x": 1}}], [{"id": "a", "c": {}}]).seqs == {
        ("a", "/id"): 0,
        ("a", "/c"): 2,
        ORDER: 0,
    }


def test_what_results_vary_by_is_blamed_as_a_whole() -> None:
    found = run(
        [{"id": "a"}],
        [{"id": "a", "varyBy": []}],
        [{"id": "a", "varyBy": ["userName"]}],
        [{"id": "a", "varyBy": ["userName"], "t": 1}],
    )
    assert found.seqs == {("a", "/id"): 0, ("a", "/varyBy"): 2, ("a", "/t"): 3, ORDER: 0}


@pytest.mark.parametrize(
    ("orders", "seq"),
    [
        (["ab", "ba", "ba"], 1),
        (["ab", "acb", "cab"], 2),
        (["ab", "ab", "cab"], 0),
        (["ab", "b", "ba"], 0),
        (["", "a"], 0),
    ],
)
def test_the_order_changes_if_common_rules_change_places(orders: list[str], seq: int) -> None:
    assert run(*([{"id": name} for name in order] for order in orders)).seqs[ORDER] == seq


def test_older_revisions_than_the_limit_are_unknown() -> None:
    revisions = [[{"id": "a", "t": number // 2}] for number in range(5)]
    found = run(*revisions, limit=3)
    assert found.seqs == {("a", "/t"): 4, ("a", "/id"): 2, ORDER: 2}
    assert found.unknown == {("a", "/id"), ORDER}
    assert not found.is_complete
    assert run(*revisions, limit=5).is_complete


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=8))
def test_it_equals_the_definition(revisions: list[dict[str, int]]) -> None:
    documents = [[{"id": name, "t": value} for name, value in sorted(one.items())] for one in revisions]
    found = run(*documents)
    for name, value in revisions[-1].items():
        seq = len(revisions) - 1
        while seq and revisions[seq - 1].get(name) == value:
            seq -= 1
        assert found.seqs[name, "/t"] == seq


class TestOperation:
    @pytest.fixture
    def client(self, world: World) -> ApiClient:
        return ApiClient(factories.sign_in(world.owner))

    @pytest.fixture
    def rules(self, world: World, client: ApiClient) -> str:
        address = f"/config/tenants/{world.tenant.pk}/rules"
        for ttl in (60, 70):
            body = {"rules": [{"id": "a", "conditions": {"userName": "x"}, "ttlSeconds": ttl}]}
            assert client.put(address, body).status_code == 200
        assert client.post(f"{address}/history/1/restore").status_code == 200
        return address

    def test_a_restore_names_its_source(self, world: World, client: ApiClient, rules: str) -> None:
        body = client.get(f"{rules}/blame").json()
        (rule,) = body["rules"]
        assert rule["ruleId"] == "a"
        assert {field["path"]: field["seq"] for field in rule["fields"]} == {
            "/id": 1,
            "/name": 1,
            "/enabled": 1,
            "/action": 1,
            "/conditions/userName": 1,
            "/ttlSeconds": 3,
            "/requireInvalidation": 1,
        }
        assert body["order"] == {"path": "/order", "label": "Order", "seq": 0, "atMost": False}
        assert [(change["seq"], change["action"]) for change in body["revisions"]] == [
            (3, "restore"),
            (1, "update"),
            (0, "create"),
        ]
        assert body["revisions"][0]["restoredFrom"] == 1
        assert body["revisions"][0]["userId"] == world.owner.email

    def test_an_earlier_revision(self, client: ApiClient, rules: str) -> None:
        body = client.get(f"{rules}/blame?seq=2").json()
        assert body["seq"] == 2
        (ttl,) = (field for field in body["rules"][0]["fields"] if field["path"] == "/ttlSeconds")
        assert ttl["seq"] == 2

    def test_an_unknown_or_deleted_revision_is_a_404(
        self, world: World, client: ApiClient, rules: str
    ) -> None:
        assert client.get(f"{rules}/blame?seq=4").status_code == 404
        client.delete(f"/config/tenants/{world.tenant.pk}")
        assert client.get(f"{rules}/blame").status_code == 404
        assert client.get(f"{rules}/blame?seq=3").status_code == 200

    def test_values_older_than_the_limit_are_marked(
        self, client: ApiClient, rules: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rules.blame.MAX_REVISIONS", 2)
        fields = {field["path"]: field for field in client.get(f"{rules}/blame").json()["rules"][0]["fields"]}
        assert fields["/ttlSeconds"] == {
            "path": "/ttlSeconds",
            "label": "A result is fresh for",
            "seq": 3,
            "atMost": False,
        }
        assert fields["/id"] == {"path": "/id", "label": "Id", "seq": 2, "atMost": True}

    def test_the_number_of_queries_is_constant(self, client: ApiClient, rules: str) -> None:
        def count() -> int:
            with CaptureQueriesContext(connection) as captured:
                client.get(f"{rules}/blame")
            return len(captured)

        few = count()
        for _ in range(3):
            client.put(rules, {"rules": []})
        assert count() == few
