"""Tests of the demo's data files: the committed ones are valid, and errors name the place."""

from __future__ import annotations

import shutil
from datetime import date
from typing import TYPE_CHECKING

import pytest

from accounts.serializers.tenants import WritableConfig
from analytics.demo.logs import FOLDER, DemoDataError, read_demo
from analytics.demo.profile import DaysAgo, MonthStart, Number, OneOf, Profile
from rules.lint import lint_ruleset
from rules.tables.warehouse import WarehouseTables

if TYPE_CHECKING:
    from pathlib import Path


STATEMENT = """probes = ["SELECT 1"]
[[statements]]
sql = "SELECT a FROM s.t WHERE b = ?"
personas = ["dashboard", "analyst", "application", "loader", "operator"]
slots = [["number", 1, 9]]
ms = 10
size = 20
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the data files, for tests that change one."""
    return shutil.copytree(FOLDER, tmp_path / "data")


def refusal(folder: Path) -> str:
    """Return the error message for the files. File names in it are relative to ``folder``."""
    with pytest.raises(DemoDataError) as caught:
        read_demo(folder)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("profile", read_demo().profiles, ids=lambda profile: profile.name)
def test_the_configuration_and_every_ruleset_are_valid(profile: Profile) -> None:
    assert WritableConfig(data=profile.config).is_valid()
    tables = WarehouseTables.of(profile.config)
    result = lint_ruleset({"rules": list(profile.rules)}, tables=tables)
    assert (result.errors, result.warnings) == ((), ())
    rulesets = [published.rules for published in profile.publications(date(2026, 3, 1))]
    rulesets += [advised.apply(profile.rules) for advised in profile.advice]
    if profile.draft is not None:
        rulesets.append((*profile.rules, profile.draft.rule))
    for rules in rulesets:
        assert lint_ruleset({"rules": list(rules)}).valid


def test_lint_refuses_the_rule_that_leaked_until_its_table_was_named() -> None:
    profile = read_demo().profiles[1]
    shared, cured = (published.rules for published in profile.publications(date(2026, 3, 1))[:2])
    tables = WarehouseTables.of(profile.config)
    assert "perUserTables" not in profile.first_config["warehouse"]
    assert lint_ruleset({"rules": list(shared)}).valid
    errors = lint_ruleset({"rules": list(shared)}, tables=tables).errors
    # Other rules could decide statements that also read the invoices, and would share them.
    assert {error.code for error in errors} == {"per-user-table-shared"}
    assert "billing" in {error.rule_id for error in errors}
    assert lint_ruleset({"rules": list(cured)}, tables=tables).valid


def test_every_folder_is_a_tenant_of_the_demo() -> None:
    assert set(read_demo().people.owner.tenants) == {path.name for path in FOLDER.iterdir() if path.is_dir()}


def test_a_statement_is_read_with_its_slots_and_on_one_line(folder: Path) -> None:
    (folder / "retail" / "statements.toml").write_text(
        STATEMENT.replace(
            '"SELECT a FROM s.t WHERE b = ?"', '"""\nSELECT a FROM s.t\n  WHERE b = ? AND c IN (?, ?, ?)"""'
        ).replace(
            '["number", 1, 9]',
            '["number", 1, 9], ["one_of", ["x", 2]], ["days_ago", 0, 3], ["month_start", 6]',
        )
    )
    (statement,) = read_demo(folder).profiles[0].statements
    assert statement.sql == "SELECT a FROM s.t WHERE b = ? AND c IN (?, ?, ?)"
    assert statement.slots == (Number(1, 9), OneOf(("x", 2)), DaysAgo(0, 3), MonthStart(6))
    assert (statement.ms, statement.size, statement.weight, statement.bound) == (10, 20, 1.0, False)


@pytest.mark.parametrize(
    ("right", "wrong", "message", "place"),
    [
        (
            '["number", 1, 9]',
            "",
            "'SELECT a FROM s.t WHERE b = ?' needs a slot for each '?', but has 0",
            "[0]",
        ),
        ('"number"', '"numbers"', "Invalid value 'numbers'", "[0].slots[0][0]"),
        ('"number", 1, 9', '"one_of", []', "Expected `array` of length >= 1", "[0].slots[0][1]"),
        ('"number", 1, 9', '"month_start", 0', "Expected `int` >= 1", "[0].slots[0][1]"),
        ("[[statements]]", "[[statements]]\nwait = 1", "Object contains unknown field `wait`", "[0]"),
        ("ms = 10", "", "Object missing required field `ms`", "[0]"),
        ('"operator"', '"robot"', "Invalid enum value 'robot'", "[0].personas[4]"),
    ],
)
def test_a_wrong_statement_is_named(folder: Path, right: str, wrong: str, message: str, place: str) -> None:
    assert right in STATEMENT
    (folder / "retail" / "statements.toml").write_text(STATEMENT.replace(right, wrong))
    assert refusal(folder) == f"retail: {message} - at `$.statements{place}`"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("demo.toml", b"[admin", "Expected ']'"),
        ("demo.toml", b'tenants = ["retail"]', "Object contains unknown field `tenants`"),
        ("retail/rules.json", b"{", "Input data was truncated"),
        ("retail/rules.json", b"[]", "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_file_is_named(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    assert refusal(folder).startswith(f"{name}: {message}")


@pytest.mark.parametrize("name", ["demo.toml", "terms.md", "product/rules.json", "product/statements.toml"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"/{name}'"):
        read_demo(folder)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("entries = 62_000", "entries = 'many'", "Expected `int`, got `str` - at `$.entries`"),
        ("restored = 33_675", "restored = 9", "a mistake is published, then restored, then a leak is"),
    ],
)
def test_a_wrong_profile_is_named(folder: Path, right: str, wrong: str, message: str) -> None:
    path = folder / "retail" / "profile.toml"
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    assert refusal(folder).startswith(f"retail: {message}")
