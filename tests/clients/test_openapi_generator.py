"""Clients that openapi-generator makes from the contract, in languages whose compilers may not be here."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import factories
from tests.clients.programs import generate, run
from tests.conftest import ApiClient

pytestmark = pytest.mark.java

#: What the client in Go imports: Debian's golang-golang-x-oauth2-dev and golang-gopkg-validator.v2-dev.
GO_PACKAGES = Path("/usr/share/gocode")
#: Reads a ruleset of its argument, and prints what the client would send.
PROGRAM = """
import json, sys
from openapi_client.models.tenant_rules_request import TenantRulesRequest
print(json.dumps(TenantRulesRequest.from_dict(json.loads(sys.argv[1])).to_dict(), default=str))
"""


@pytest.fixture(scope="module")
def python_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate("python", folder)
    return folder


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rule", "code", "path"),
    [
        ({"conditions": {"userNmae": "Ana"}}, "unknown-condition-key", "/rules/0/conditions/userNmae"),
        (
            {"conditions": {"userName": {"inn": ["Ana"]}}},
            "unknown-operator",
            "/rules/0/conditions/userName/inn",
        ),
        ({"tllSeconds": 60}, "unknown-property", "/rules/0/tllSeconds"),
    ],
)
def test_a_misspelt_member_of_a_rule_reaches_the_service_which_refuses_it(
    python_client: Path, rule: dict[str, object], code: str, path: str
) -> None:
    """The client dropped it, so the rule matched every request."""
    rules = json.dumps({"rules": [{"id": "orders", "action": "cache", **rule}]})
    sent = json.loads(run(sys.executable, "-c", PROGRAM, rules, PYTHONPATH=str(python_client)))
    world = factories.make_world()
    client = ApiClient(factories.sign_in(world.owner))
    answer = client.put(f"/config/tenants/{world.tenant.pk}/rules", sent)
    assert answer.status_code == 400
    assert (code, path) in [(finding["code"], finding["path"]) for finding in answer.json()["errors"]]


@pytest.mark.django_db
def test_a_ruleset_that_was_read_can_be_sent_back(python_client: Path) -> None:
    world = factories.make_world()
    client = ApiClient(factories.sign_in(world.owner))
    path = f"/config/tenants/{world.tenant.pk}/rules"
    conditions = {"any": [{"userName": {"in": ["Ana"]}}, {"tables": {"containsAny": ["sales.*"]}}]}
    written = {"rules": [{"id": "orders", "action": "cache", "ttlSeconds": 60, "conditions": conditions}]}
    assert client.put(path, written).status_code == 200
    read = client.get(path).json()
    sent = json.loads(run(sys.executable, "-c", PROGRAM, json.dumps(read), PYTHONPATH=str(python_client)))
    assert client.put(path, sent).status_code == 200
    assert client.get(path).json()["rules"] == read["rules"]


def test_go_declares_each_name_once(tmp_path: Path) -> None:
    generate("go", tmp_path)
    text = "\n".join(file.read_text() for file in tmp_path.glob("*.go"))
    declared = Counter(re.findall(r"^(?:type |func |\t(?=\w+ \w+ = \"))(\w+)\b", text, re.MULTILINE))
    assert [name for name, count in declared.items() if count > 1] == []
    if shutil.which("go") and GO_PACKAGES.joinpath("src", "gopkg.in", "validator.v2").is_dir():
        environment = {"GO111MODULE": "off", "GOPATH": str(GO_PACKAGES), "GOCACHE": str(tmp_path / "cache")}
        run("go", "build", "-o", os.devnull, ".", cwd=tmp_path, **environment)


@pytest.mark.parametrize("language", ["java", "csharp"])
def test_other_languages_are_generated(language: str, tmp_path: Path) -> None:
    generate(language, tmp_path)
    assert len(list(tmp_path.rglob("*Conditions.*"))) >= 1
