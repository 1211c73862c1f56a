"""The test vectors for authors of a Gateway, and their runners."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter

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


@pytest.mark.parametrize("command", [(sys.executable, "run.py"), ("node", "run.mjs")])
def test_a_decision_by_the_documentation_alone_agrees(command: tuple[str, str]) -> None:
    program, name = command
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    found = subprocess.run([program, FILE.with_name(name)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, f"{COUNT} of {COUNT} vectors hold. Wrong: {_none(name)}\n")


def _none(name: str) -> str:
    return "[]" if name.endswith(".py") else ""
