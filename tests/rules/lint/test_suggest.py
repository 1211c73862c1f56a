"""Suggestions are near and their cost is bounded."""

from __future__ import annotations

from rules.lint.suggest import Suggester


def test_the_nearest_name_case_aside() -> None:
    assert Suggester().find_nearest("USERNAM", ["host", "userName"]) == "userName"


def test_a_candidate_keeps_its_case() -> None:
    assert Suggester().find_nearest("username", ["HOST", "USERNAME"]) == "USERNAME"


def test_each_name_has_its_own_suggestion_among_each_candidates() -> None:
    suggester = Suggester()
    keys, operators = ["host", "userName"], ["hosted"]
    assert suggester.find_nearest("hots", keys) == "host"
    assert suggester.find_nearest("usrName", keys) == "userName"
    assert suggester.find_nearest("hots", operators) == "hosted"


def test_nothing_near() -> None:
    assert Suggester().find_nearest("zzz", ["host", "userName"]) is None


def test_a_long_name_is_no_misspelling() -> None:
    assert Suggester().find_nearest("h" * 128, ["h" * 129]) == "h" * 129
    assert Suggester().find_nearest("h" * 129, ["h" * 129]) is None


def test_there_are_20_000_comparisons() -> None:
    candidates = [*("x" * 60 for _ in range(19_999)), "host"]
    assert Suggester().find_nearest("hots", [*candidates, "x"]) is None
    suggester = Suggester()
    assert suggester.find_nearest("hots", candidates) == "host"
    assert suggester.find_nearest("hots", ["host"]) is None


def test_comparisons_run_out_but_what_was_found_stays() -> None:
    suggester = Suggester()
    candidates = [f"candidate-{n}" for n in range(8_000)]
    assert suggester.find_nearest("candidat-17", candidates) == "candidate-17"
    assert suggester.find_nearest("candidat-18", candidates) == "candidate-18"
    assert suggester.find_nearest("candidat-19", candidates) is None
    assert suggester.find_nearest("candidat-17", candidates) == "candidate-17"
