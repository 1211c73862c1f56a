"""Tests of the demo's data files: the committed ones are valid, and errors name the file and the place."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from analytics.demo.reading import FOLDER, DemoDataError, read_demo
from analytics.demo.statements import DaysAgo, MonthStart, Number, OneOf
from rules.lint import lint_ruleset

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


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/rules.json")), ids=lambda path: path.parent.name)
def test_every_ruleset_passes_lint_without_findings(path: Path) -> None:
    result = lint_ruleset(json.loads(path.read_text()))
    assert (result.errors, result.warnings) == ((), ())


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
        ("1, 9", "9, 9", "there is no number from 9 to below 9", "[0].slots[0]"),
        ('"number", 1, 9', '"days_ago", 3, 1', "there is no day from 3 to 1 days ago", "[0].slots[0]"),
        ('"number", 1, 9', '"one_of", []', "Expected `array` of length >= 1", "[0].slots[0][1]"),
        ('"number", 1, 9', '"month_start", 0', "Expected `int` >= 1", "[0].slots[0][1]"),
        ("[[statements]]", "[[statements]]\nwait = 1", "Object contains unknown field `wait`", "[0]"),
        ("ms = 10", "", "Object missing required field `ms`", "[0]"),
        ('"operator"', '"robot"', "Invalid enum value 'robot'", "[0].personas[4]"),
        (', "operator"', "", "no statement for the personas operator", ""),
        ('"SELECT a FROM s.t WHERE b = ?"', '" "', "a statement has no text", "[0]"),
    ],
)
def test_a_wrong_statement_is_named(folder: Path, right: str, wrong: str, message: str, place: str) -> None:
    assert right in STATEMENT
    (folder / "retail" / "statements.toml").write_text(STATEMENT.replace(right, wrong))
    where = f" - at `$.statements{place}`" if place else ""
    assert refusal(folder) == f"retail/statements.toml: {message}{where}"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("demo.toml", b"[admin", "Expected ']'"),
        ("demo.toml", b'tenants = ["retail"]', "Object contains unknown field `tenants`"),
        ("terms.md", b"\xff", "'utf-8' codec can't decode byte 0xff in position 0"),
        ("retail/rules.json", b"{", "Input data was truncated"),
        ("retail/rules.json", b"[]", "Expected `object`, got `array`"),
        ("retail/rules.json", b"{}", "/rules: The rules of a ruleset must be an array; they are absent."),
        (
            "retail/rules.json",
            b'{"rules": [{"id": "a", "ttl": 1}, {}]}',
            '/rules/0/ttl: A rule has no property "ttl".; /rules/1/id: ',
        ),
        (
            "retail/config.json",
            b'{"tenantName": "", "fqdns": 1}',
            "/tenantName: This field may not be blank.; /fqdns: ",
        ),
        ("retail/config.json", b'{"tenantName": "Shop"}', "the logs need 'fqdns' and 'warehouse'"),
        (
            "retail/profile.toml",
            b"entries = 1\nspeaks_http = true\nconsumers = []",
            "Expected `array` of length >= 1 - at `$.consumers`",
        ),
    ],
)
def test_a_wrong_file_is_named(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    assert refusal(folder).startswith(f"{name}: {message}")


@pytest.mark.parametrize("name", ["demo.toml", "terms.md", "product/rules.json", "product/statements.toml"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert refusal(folder) == f"{name}: No such file or directory"
