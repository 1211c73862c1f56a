"""Shared code of tests must be in modules without tests."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def imported(path: Path) -> set[str]:
    """Return the full names that a module imports: ``from a.b import c`` gives ``a.b`` and ``a.b.c``."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_no_module_imports_a_test_module_or_the_conftest_of_a_suite() -> None:
    found = {
        (str(path.relative_to(ROOT)), name)
        for folder in ("tests", "bench", "scripts")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in imported(path)
        if name.startswith("tests.")
        and (name.rpartition(".")[2].startswith("test_") or name.endswith(".conftest"))
        and name != "tests.conftest"
    }
    assert found == set()
