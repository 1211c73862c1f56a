"""Read docker/compose.yaml and the `.env` file that docs/operating.md describes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dotenv
import yaml

ROOT = Path(__file__).resolve().parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]


def interpolate(text: str, values: Mapping[str, str]) -> str:
    """Replace ``${NAME}``, ``${NAME:-default}`` and ``${NAME:?}`` as compose does."""

    def value(match: re.Match[str]) -> str:
        given = values.get(match[1], "")
        assert given or match[2] != ":?", f"{match[1]} is required"
        return given or match[3]

    return re.sub(r"\$\{([A-Z0-9_]+)(:[-?])?([^}]*)\}", value, text)


def environment_of(service: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a container if ``.env`` has these values."""
    file = values if SERVICES[service].get("env_file") == ".env" else {}
    own = SERVICES[service].get("environment", {})
    return {**file, **{name: interpolate(text, values) for name, text in own.items()}}


def documented_file(folder: Path) -> dict[str, str]:
    """Return the values of the `.env` file of docs/operating.md, which is written to ``folder``."""
    text = (ROOT / "docs/operating.md").read_text()
    command = re.search(r"^cat > \.env <<EOF\n.*?^EOF$", text, re.MULTILINE | re.DOTALL)
    assert command is not None
    subprocess.run(["sh", "-ec", command[0]], cwd=folder, check=True, capture_output=True)
    return {name: value or "" for name, value in dotenv.dotenv_values(folder / ".env").items()}
