"""The test vectors for authors of a Gateway, and their runners."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from datetime import datetime, tzinfo
from typing import Any
from unittest.mock import Mock

import jwt
import pytest

from rules.lint import lint_ruleset
from tests.gateway.draw_vectors import COUNT, FOLDER, draw_files
from tests.gateway.gateway import LEEWAY_SECONDS, Gateway, to_ms


def test_the_files_are_what_is_drawn() -> None:
    for name, text in draw_files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "run python -m tests.gateway.draw_vectors"


def test_the_vectors_have_every_decision_and_rules_without_errors() -> None:
    vectors = json.loads((FOLDER / "decisions.json").read_text(encoding="utf-8"))
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
    for vector in json.loads((FOLDER / "decisions.json").read_text(encoding="utf-8")):
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


def test_the_vectors_of_cached_results_have_every_answer() -> None:
    vectors = json.loads((FOLDER / "cached.json").read_text(encoding="utf-8"))
    answers = Counter(
        (vector["expected"]["status"], vector["expected"]["missReason"], vector["expected"]["refreshes"])
        for vector in vectors
    )
    assert min(answers.values()) > 5, answers
    assert set(answers) == {
        ("HIT", None, False),
        ("HIT", None, True),
        ("MISS", "no-cache-entry", False),
        ("MISS", "ttl-expired", False),
        ("MISS", "invalidation-marker", False),
    }
    outlived = [vector for vector in vectors if _is_older_than_an_expired_marker(vector)]
    assert len(outlived) > 5
    assert {vector["expected"]["status"] for vector in outlived} == {"MISS"}


def _is_older_than_an_expired_marker(vector: dict[str, Any]) -> bool:
    """Return True if a result in its stale window is older than a marker that has expired."""
    rule = vector["rule"]
    window = 1000 * (rule["ttlSeconds"] + rule.get("staleWhileRevalidate", 0))
    return vector["bornAt"] is not None and any(
        marker["targetRuleId"] == "r"
        and not marker["deleted"]
        and vector["bornAt"] <= to_ms(marker["invalidatedAt"])
        and to_ms(marker["expiresAt"]) <= vector["at"] < vector["bornAt"] + window
        for marker in vector["markers"]
    )


def test_the_reference_gateway_accepts_the_same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = json.loads((FOLDER / "tokens.json").read_text(encoding="utf-8"))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls.fromtimestamp(tokens["now"], tz)

    monkeypatch.setattr("jwt.api_jwt.datetime", Clock)
    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", lambda _client: tokens["jwks"])
    gateway = Gateway(
        Mock(), Mock(), jwks_url="https://tas.example.org/keys", issuer=tokens["issuer"], write_object=Mock()
    )
    assert tokens["leewaySeconds"] == LEEWAY_SECONDS
    assert [
        (vector["name"], gateway._verify(vector["token"], tokens["tenant"])) for vector in tokens["vectors"]
    ] == [(vector["name"], vector["userName"]) for vector in tokens["vectors"]]


@pytest.mark.parametrize("command", [(sys.executable, "run.py"), ("node", "run.mjs")])
def test_code_by_the_documentation_alone_agrees(command: tuple[str, str]) -> None:
    program, name = command
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    found = subprocess.run([program, FOLDER / name], capture_output=True, text=True, check=False)
    held = {"decisions": 1000, "cached": 300, "control": 64, "keys": 21, "refusals": 12, "tokens": 43}
    expected = "".join(f"{name}: {count} of {count} hold.\n" for name, count in held.items())
    assert (found.returncode, found.stdout) == (0, expected)
