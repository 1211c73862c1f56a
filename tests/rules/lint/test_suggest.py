"""Suggestions are similar names, and the number of comparisons is limited."""

from __future__ import annotations

from rules.lint.spelling import Suggester


def test_the_most_similar_name_without_case_is_suggested() -> None:
    assert Suggester().find_nearest("USERNAM", ["host", "userName"]) == "userName"


def test_the_suggestion_keeps_its_case() -> None:
    assert Suggester().find_nearest("username", ["HOST", "USERNAME"]) == "USERNAME"


def test_suggestions_depend_on_the_name_and_the_candidates() -> None:
    suggester = Suggester()
    keys, operators = ["host", "userName"], ["hosted"]
    assert suggester.find_nearest("hots", keys) == "host"
    assert suggester.find_nearest("usrName", keys) == "userName"
    assert suggester.find_nearest("hots", operators) == "hosted"


def test_no_name_is_suggested_if_none_is_similar() -> None:
    assert Suggester().find_nearest("zzz", ["host", "userName"]) is None


def test_no_name_is_suggested_for_a_long_name() -> None:
    assert Suggester().find_nearest("h" * 128, ["h" * 129]) == "h" * 129
    assert Suggester().find_nearest("h" * 129, ["h" * 129]) is None


def test_a_lint_compares_at_most_20_000_names() -> None:
    candidates = [*("x" * 60 for _ in range(19_999)), "host"]
    assert Suggester().find_nearest("hots", [*candidates, "x"]) is None
    suggester = Suggester()
    assert suggester.find_nearest("hots", candidates) == "host"
    assert suggester.find_nearest("hots", ["host"]) is None


def test_cached_suggestions_remain_when_the_comparisons_are_used_up() -> None:
    suggester = Suggester()
    candidates = [f"candidate-{n}" for n in range(8_000)]
    assert suggester.find_nearest("candidat-17", candidates) == "candidate-17"
    assert suggester.find_nearest("candidat-18", candidates) == "candidate-18"
    assert suggester.find_nearest("candidat-19", candidates) is None
    assert suggester.find_nearest("candidat-17", candidates) == "candidate-17"
