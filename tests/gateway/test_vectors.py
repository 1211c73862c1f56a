"""The test vectors for authors of a Gateway, and their runners."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from rules.lint import lint_ruleset
from tests.gateway.draw_vectors import COUNT, FILE, vectors_text


def test_the_file_is_what_is_drawn() -> None:
    assert FILE.read_text(encoding="utf-8") == vectors_text(), "run python -m tests.gateway.draw_vectors"


def test_the_vectors_have_every_decision_and_rules_without_errors() -> None:
    vectors = json.loads(FILE.read_text(encoding="utf-8"))
    assert len(vectors) == COUNT
    seen: Counter[object] = Counter()
    for vector in vectors:
        errors = {finding.code for finding in lint_ruleset({"rules": vector["rules"]}).errors}
        assert errors <= {
            "unconditional-deny",
            "invalidate-target-not-cache",
            "dangling-invalidate-reference",
        }
        seen[tuple(vector["expected"]["statuses"])] += 1
        seen["keys"] += bool(vector["expected"]["key"])
        seen["fires"] += bool(vector["expected"]["fires"])
    assert min(seen.values()) > 20, seen
    assert len(seen) == len(("HIT or MISS", "BYPASS", "BLOCKED", "PASSTHROUGH", "keys", "fires"))


def test_the_keys_have_nulls_and_texts_that_look_alike() -> None:
    """A request without one of the columns is not cached. Values are compared as they are, not normalized."""
    found: Counter[str] = Counter()
    for vector in json.loads(FILE.read_text(encoding="utf-8")):
        expected, request = vector["expected"], vector["request"]
        rule: dict[str, Any] = next((one for one in vector["rules"] if one["id"] == expected["ruleId"]), {})
        columns = rule.get("varyBy", ())
        if missing := [column for column in columns if request.get(column) is None]:
            assert (expected["key"], expected["statuses"]) == (None, ["BYPASS"])
            found["null"] += any(column in request for column in missing)
            found["absent"] += any(column not in request for column in missing)
        elif columns:
            assert expected["key"] == {column: request[column] for column in columns}
            texts = expected["key"].values()
            found["empty"] += "" in texts
            found["composed"] += "Zo\u00eb" in texts
            found["decomposed"] += "Zoe\u0308" in texts
            found["upper case"] += "ΣΟΦΌΣ" in texts
            found["beyond the first plane"] += "😀" in texts
    assert min(found.values()) > 5, found
    assert len(found) == len(("null", "absent", "empty", "composed", "decomposed", "case", "plane"))


@pytest.mark.parametrize("command", [(sys.executable, "run.py"), ("node", "run.mjs")])
def test_a_decision_by_the_documentation_alone_agrees(command: tuple[str, str]) -> None:
    program, name = command
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    found = subprocess.run([program, FILE.with_name(name)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, f"{COUNT} of {COUNT} vectors hold. Wrong: {_none(name)}\n")


def _none(name: str) -> str:
    return "[]" if name.endswith(".py") else ""
