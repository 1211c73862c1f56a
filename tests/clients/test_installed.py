"""``clients/python``, installed in empty environments of several versions of Python."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from tenantadmin_client import Client

from tests.clients.programs import PYTHON_CLIENT_WHEEL, PYTHON_CLIENTS, run

if TYPE_CHECKING:
    from tests.clients.programs import Service

pytestmark = pytest.mark.installed

ROOT = Path(__file__).parents[2]
RULE = {"id": "orders", "varyBy": [], "conditions": {"tables": {"containsAny": ["sales.*"]}}}


def commands_of_the_readme() -> list[str]:
    """The commands with which the README keeps rules in git."""
    page = (ROOT / "README.md").read_text()
    shell = page[page.index("pip install './clients/python[cli]'") :].partition("```")[0]
    return [line.partition("#")[0].strip() for line in shell.splitlines()]


def test_the_wheel_is_small() -> None:
    (wheel,) = PYTHON_CLIENT_WHEEL.glob("*.whl")
    assert wheel.stat().st_size < 100_000


@pytest.mark.parametrize("environment", PYTHON_CLIENTS, ids=lambda path: path.name)
def test_every_module_loads(environment: Path) -> None:
    """Those of the extra mcp only where it is installed."""
    code = (
        "import importlib, importlib.util, pkgutil, sys, tenantadmin_client as package\n"
        "names = [module.name for module in pkgutil.iter_modules(package.__path__)]\n"
        "for name in names:\n"
        "    if not name.startswith('mcp') or importlib.util.find_spec('mcp'):\n"
        "        importlib.import_module(f'tenantadmin_client.{name}')\n"
        "print(len(names), sys.version_info[:2])"
    )
    printed = run(str(environment / "bin/python"), "-W", "error", "-c", code)
    count = len(list((ROOT / "clients/python/src/tenantadmin_client").glob("*.py"))) - 1
    assert printed.startswith(f"{count} ")


@pytest.mark.usefixtures("worker")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("environment", PYTHON_CLIENTS, ids=lambda path: path.name)
def test_the_commands_of_the_readme(environment: Path, service: Service, tmp_path: Path) -> None:
    install, login, pull, plan, apply = commands_of_the_readme()
    # `make clients` has done this.
    assert install == "pip install './clients/python[cli]'"
    (tmp_path / "home").mkdir()
    file = tmp_path / "rules.yaml"

    def shell(line: str, *, status: int = 0, typed: str = "") -> str:
        line = line.replace("http://127.0.0.1:8000", service.url).replace("$TENANT", service.tenant)
        program, *arguments = shlex.split(line)
        done = subprocess.run(
            [str(environment / "bin" / program), *arguments],
            input=typed,
            env={"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            # Without a terminal, the token is read from standard input.
            start_new_session=True,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    shell(login, typed=f"{service.pat}\n")
    shell(pull)
    document = yaml.safe_load(file.read_text())
    file.write_text(json.dumps({**document, "rules": [*document["rules"], RULE]}))
    planned = shell(plan, status=2)
    assert "+ orders" in planned
    assert "cheapest hour to publish" in planned
    assert "published as revision 1" in shell(apply)
    assert "no changes" in shell(plan)
    assert "nothing to change" in shell(apply)
    with Client(service.url, service.pat) as client:
        assert [rule["id"] for rule in client.rules(service.tenant).body["rules"]] == ["orders"]
