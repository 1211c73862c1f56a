"""Every finding has a file, a test file and one declaration."""

from __future__ import annotations

from pathlib import Path

import pytest

import rules.lint.checks
from rules.lint import FINDING_KINDS, Severity
from rules.lint.registry import declare

CHECKS = Path(rules.lint.checks.__file__).parent
#: The codes of checks: all but those of `rules.lint.limits`.
CODES = [
    code
    for code in FINDING_KINDS
    if code not in {"too-complex", "more-errors", "warnings-incomplete", "more-warnings"}
]
TESTS = Path(__file__).parent / "checks"


def test_every_finding_has_one_file_and_one_test_file() -> None:
    names = {code.replace("-", "_") for code in CODES}
    assert {path.stem for path in CHECKS.glob("[!_]*.py")} == names
    assert {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")} == names


def test_a_code_cannot_be_declared_twice() -> None:
    with pytest.raises(ValueError, match="the finding wrong-type is declared twice"):
        declare("wrong-type", Severity.ERROR, "again")


def test_errors_are_declared_before_warnings() -> None:
    severities = [kind.severity for code, kind in FINDING_KINDS.items() if code in CODES]
    assert severities == sorted(severities, key=[Severity.ERROR, Severity.WARNING].index)
