"""docs/rules.md agrees with the code: its tables are the same, and its examples give the right findings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rules.conditions import CONDITION_KEYS, OPERATORS, Kind
from rules.language import RULE_FIELDS, CachingDefaults
from rules.lint import FINDING_KINDS, RuleLintResult, lint_ruleset, lint_write, report_lint
from rules.tables.warehouse import WarehouseTables

TEXT = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
LANGUAGE, _, FINDINGS = TEXT.partition("\n## Findings\n")
SECTIONS = dict(re.findall(r"^### ([a-z-]+)\n(.*?)(?=^### |\Z)", FINDINGS, re.DOTALL | re.MULTILINE))
DELETIONS = {"rule-removed-still-referenced", "rule-removed-active-marker"}
#: The finding that depends on the configuration of the tenant.
SHARED = "per-user-table-shared"
SPELLED = "table-spelled-otherwise"
#: Findings about rulesets that are too large for an example.
LIMITS = {"too-complex", "more-errors", "warnings-incomplete", "more-warnings"}


def examples(text: str) -> list[dict[str, Any]]:
    return [
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def table(text: str, *headings: str) -> list[str]:
    lines = text.splitlines()
    start = lines.index(row(*headings)) + 2
    return lines[start : lines.index("", start)]


def test_the_table_of_fields_is_current() -> None:
    assert table(LANGUAGE, "field", "type", "bounds", "default", "meaning") == [
        row(
            f"`{field.name}`",
            field.type.value,
            "" if field.minimum is None else f"{field.minimum} to {field.maximum}",
            field.default,
            field.meaning,
        )
        for field in RULE_FIELDS.values()
    ]


def test_the_table_of_condition_keys_is_current() -> None:
    assert table(LANGUAGE, "key", "kind", "meaning") == [
        row(f"`{key.name}`", key.kind.value, key.meaning) for key in CONDITION_KEYS.values()
    ]


def test_the_table_of_operators_is_current() -> None:
    assert table(LANGUAGE, "operator", "kinds of keys", "operand", "the value …") == [
        row(
            f"`{operator.value}`",
            "all" if spec.kinds == frozenset(Kind) else ", ".join(sorted(spec.kinds)),
            spec.shape.value,
            spec.meaning,
        )
        for operator, spec in OPERATORS.items()
    ]


@pytest.mark.parametrize("severity", ["error", "warning"])
def test_the_list_of_findings_is_current(severity: str) -> None:
    listed = FINDINGS.partition(f"### {severity.capitalize()}s\n")[2].partition("###")[0]
    assert re.findall(r"\[`([a-z-]+)`\]\(#\1\)", listed) == [
        kind.code for kind in FINDING_KINDS.values() if kind.severity.value == severity
    ]


def test_every_finding_has_a_section_that_starts_with_its_meaning() -> None:
    assert list(SECTIONS) == list(FINDING_KINDS)
    for code, text in SECTIONS.items():
        kind = FINDING_KINDS[code]
        assert text.lstrip().startswith(f"{kind.severity.value.capitalize()}. {kind.meaning}")


@pytest.mark.parametrize("example", examples(LANGUAGE))
def test_examples_of_the_language_have_no_findings(example: dict[str, Any]) -> None:
    assert report_lint(lint_ruleset(example)) == RuleLintResult(valid=True, errors=[], warnings=[])


@pytest.mark.parametrize("code", sorted(FINDING_KINDS.keys() - DELETIONS - LIMITS - {SHARED, SPELLED}))
def test_the_example_of_a_finding_causes_it(code: str) -> None:
    (example,) = examples(SECTIONS[code])
    caching = CachingDefaults(enabled=code != "cache-disabled")
    result = lint_ruleset(example, caching=caching)
    assert code in {finding.code for finding in (*result.errors, *result.warnings)}
    assert {finding.code for finding in result.errors} <= {code}
    assert all(
        finding.suggestion in finding.message
        for finding in (*result.errors, *result.warnings)
        if finding.suggestion is not None
    )


@pytest.mark.parametrize("code", sorted(DELETIONS))
def test_the_example_of_a_deletion_causes_its_finding(code: str) -> None:
    stored, written = examples(SECTIONS[code])
    result = lint_write(
        written,
        stored_rules=stored["rules"],
        active_marker_targets={"orders"},
        confirmed=set(),
    )
    assert code in {finding.code for finding in result.errors}


def test_the_example_of_a_shared_table_causes_its_finding_and_the_cures_cure_it() -> None:
    (example,) = examples(SECTIONS[SHARED])
    configured = json.loads(re.findall(r"`(\{\"perUserTables.*?\})`", SECTIONS[SHARED])[0])
    tables = WarehouseTables.of({"warehouse": configured})
    result = lint_ruleset(example, tables=tables)
    assert [finding.code for finding in result.errors] == [SHARED]
    bypass = json.loads(re.findall(r"`(\{\"id.*?\})`", SECTIONS[SHARED])[0])
    assert lint_ruleset({"rules": [bypass, *example["rules"]]}, tables=tables).valid
    (rule,) = example["rules"]
    excluding = json.loads(re.findall(r"`(\{\"not.*?\})`", SECTIONS[SHARED])[0])
    for cured in (rule | {"varyBy": ["userName"]}, rule | {"conditions": excluding}):
        assert lint_ruleset({"rules": [cured]}, tables=tables).valid


def test_the_example_of_another_spelling_causes_its_finding_and_the_cure_cures_it() -> None:
    (example,) = examples(SECTIONS[SPELLED])
    logged = json.loads(re.findall(r"`(\{\"tables.*?\})`", SECTIONS[SPELLED])[0])["tables"]
    tables = WarehouseTables(logged=tuple(logged))
    assert [warning.code for warning in lint_ruleset(example, tables=tables).warnings] == [SPELLED]
    assert not lint_ruleset(example).warnings
    bypass, cache = example["rules"]
    cured = bypass | {
        "conditions": {"tables": json.loads(re.findall(r"`(\{\"containsAny.*?\})`", SECTIONS[SPELLED])[0])}
    }
    assert not lint_ruleset({"rules": [cured, cache]}, tables=tables).warnings
