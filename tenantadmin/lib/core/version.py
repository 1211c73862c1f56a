"""The version of the running release."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path


@cache
def service_version() -> str:
    """Return the version in `pyproject.toml`, which every installation has."""
    file = Path(__file__).resolve().parents[3] / "pyproject.toml"
    return str(tomllib.loads(file.read_text())["project"]["version"])
