"""Every finding has tests and one declaration."""

from __future__ import annotations

from pathlib import Path

import pytest

import rules.lint.checks
from rules.lint import FINDING_KINDS, Severity, registry
from rules.lint.registry import Context, declare

#: The codes of checks: all codes except the four of `rules.lint.limits`.
CODES = [
    code
    for code in FINDING_KINDS
    if code not in {"too-complex", "more-errors", "warnings-incomplete", "more-warnings"}
]
CHECKS = Path(rules.lint.checks.__file__).parent
TESTS = Path(__file__).parent / "checks"


def test_every_finding_has_tests_beside_its_checks() -> None:
    tests = "".join(path.read_text() for path in TESTS.glob("test_*.py"))
    names = [code.upper().replace("-", "_") for code in CODES]
    assert [name for name in names if tests.count(name) < 2] == []
    assert {path.stem for path in CHECKS.glob("[!_]*.py")} == {
        path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")
    }


def test_a_code_cannot_be_declared_twice() -> None:
    with pytest.raises(ValueError, match="the finding wrong-type is declared twice"):
        declare("wrong-type", Severity.ERROR, "again")


def test_errors_are_declared_before_warnings() -> None:
    severities = [kind.severity for code, kind in FINDING_KINDS.items() if code in CODES]
    assert severities == sorted(severities, key=[Severity.ERROR, Severity.WARNING].index)


def test_the_clock_is_read_at_the_first_question_and_at_every_twentieth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([101.0, 102.0, 103.0])
    monkeypatch.setattr(registry, "thread_time", lambda: next(readings))
    context = Context(_started=100.0)
    assert [context.has_used(1.0) for _ in range(41)] == [False] * 20 + [True] * 21
    assert list(readings) == []
