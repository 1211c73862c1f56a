"""Programs that the tests of clients run, and what they are told of the service."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Where `make clients` installs what Node needs.
NODE_MODULES: Final = Path(__file__).parents[2] / ".cache" / "clients" / "node_modules"


@dataclass(frozen=True, slots=True)
class Service:
    """A running service, and a personal access token for its one tenant with logs."""

    url: str
    pat: str
    tenant: str


def run(*command: str, **environment: str) -> str:
    """Run a program, and return its output.

    Raises:
        AssertionError: it failed. The message is what it wrote.
    """
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
