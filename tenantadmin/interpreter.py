"""Processes of this project's code that share nothing with the one that starts them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

#: Where the packages of this project lie: the one path that a clean interpreter is told.
_ROOT: Final = str(Path(__file__).resolve().parents[1])


def clean_command(module: str, *arguments: object) -> list[str]:
    """What starts an interpreter that ignores the environment and the working directory.

    Args:
        module: its ``main`` is called.
        arguments: of ``main``; each has to be written as Python writes it.
    """
    called = f"main({', '.join(map(repr, arguments))})"
    boot = f"import sys; sys.path.insert(0, {_ROOT!r}); from {module} import main; {called}"
    return [sys.executable, "-I", "-c", boot]
