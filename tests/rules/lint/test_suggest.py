"""Suggestions are near and their cost is bounded."""

from __future__ import annotations

from rules.lint.suggest import Suggester


def test_the_nearest_name_case_aside() -> None:
    assert Suggester().find_nearest("USERNAM", ["host", "userName"]) == "userName"


def test_nothing_near() -> None:
    assert Suggester().find_nearest("zzz", ["host", "userName"]) is None


def test_a_long_name_is_no_misspelling() -> None:
    assert Suggester().find_nearest("host" * 100, ["host" * 100]) is None


def test_comparisons_run_out_but_what_was_found_stays() -> None:
    suggester = Suggester()
    candidates = [f"candidate-{n}" for n in range(8_000)]
    assert suggester.find_nearest("candidat-17", candidates) == "candidate-17"
    assert suggester.find_nearest("candidat-18", candidates) == "candidate-18"
    assert suggester.find_nearest("candidat-19", candidates) is None
    assert suggester.find_nearest("candidat-17", candidates) == "candidate-17"
