"""Liveness of workers and beat: a file that the process touches, and a probe that checks its age.

    python -m tenantadmin.run.alive worker

The probe exits with 1 if the process has not touched its file for `LONGEST_SECONDS`. It imports nothing else,
so it takes little time.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

LONGEST_SECONDS: Final = 90.0


def alive_file(kind: str) -> Path:
    """Return the file of a ``worker`` or ``beat`` under ``VAR_DIR``."""
    root = Path(os.environ.get("VAR_DIR") or Path(__file__).resolve().parents[2] / "var")
    return root / "run" / f"{kind}.alive"


def touch(kind: str) -> None:
    """Touch the file of this process."""
    file = alive_file(kind)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def is_alive(kind: str) -> bool:
    """Return True if the process has touched its file recently."""
    try:
        return time.time() - alive_file(kind).stat().st_mtime < LONGEST_SECONDS
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(0 if is_alive(sys.argv[1]) else 1)
