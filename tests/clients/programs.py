"""Programs that the tests of clients run, and what they are told of the service."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tenantadmin.lib.http.published_contract import CONTRACT_FILE

CLIENT: Final = Path(__file__).parents[2] / "clients/python"
SCRIPTS: Final = Path(__file__).with_name("scripts")
_CACHE: Final = Path(__file__).parents[2] / ".cache"
_INSTALLED: Final = _CACHE / "clients"
#: Where `make clients` installs what Node needs, and openapi-generator, which needs Java.
NODE_MODULES: Final = _INSTALLED / "node_modules"
OPENAPI_GENERATOR: Final = _INSTALLED / "openapi-generator"
#: An environment with clients/python and all its extras alone, which `make clients` installs.
PYTHON_CLIENT: Final = _CACHE / "python-client"
#: The wheel from which it is installed.
PYTHON_CLIENT_WHEEL: Final = _CACHE / "python-client-wheel"
#: The client on this Python, and on the oldest and the newest one that are there.
PYTHON_CLIENTS: Final = sorted(path.parents[1] for path in _CACHE.glob("python-client*/bin/tenantctl")) or [
    PYTHON_CLIENT
]
#: Environments of releases of SQLAlchemy: one that `make clients` installs, all after `make test-sqlalchemy`.
SQLALCHEMIES: Final = sorted(path.parent for path in _CACHE.glob("sqlalchemy/*/stamp")) or [
    _CACHE / "sqlalchemy/none"
]
#: Tools that read the log, and the tests of others for DB-API, which `make clients` installs.
TOOLS: Final = _CACHE / "tools"
#: The environment of Apache Superset, which `make test-superset` installs.
SUPERSET: Final = _CACHE / "superset"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service, and a personal access token for its one tenant with logs."""

    url: str
    pat: str
    tenant: str


def run_tool(script: str, *arguments: str) -> str:
    """Run a script on the client's source with what the environment of tools has, and return its output."""
    return run(str(TOOLS / "bin/python"), str(SCRIPTS / script), *arguments, PYTHONPATH=str(CLIENT / "src"))


def run(*command: str, cwd: Path | None = None, **environment: str) -> str:
    """Run a program, and return its output.

    Raises:
        AssertionError: it failed. The message is what it wrote.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def generate(language: str, folder: Path) -> None:
    """Write the client of openapi-generator in a language, without other options, to the folder."""
    run(
        *(str(OPENAPI_GENERATOR / "bin" / "openapi-generator-cli"), "generate", "--generator-name", language),
        *("--input-spec", str(CONTRACT_FILE), "--output", str(folder)),
        PYTHONPATH=str(OPENAPI_GENERATOR),
    )
