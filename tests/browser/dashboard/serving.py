"""The service as `make run` starts it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import reserved_port

ROOT = Path(__file__).parents[3]
#: What the tests' own settings put into the environment.
OURS = {"DATABASE_URL", "REDIS_URL", "OBJECT_STORE_URL", "PUBLIC_BASE_URL", "DJANGO_SETTINGS_MODULE"}
#: The longest start, with the demo.
SECONDS = 600


@contextmanager
def running_service(folder: Path, *options: str, until: str) -> Iterator[str]:
    """Run the service with servers, data and a port of its own. Yield what it prints ``until`` this text."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    output = folder / "output"
    # A file, because a pipe that nobody reads would stop the service.
    with (
        reserved_port() as port,
        output.open("wb") as written,
        subprocess.Popen(
            [sys.executable, "manage.py", "serve", *options],
            cwd=ROOT,
            env={**kept, "VAR_DIR": str(folder / "var"), "PORT": str(port), "DJANGO_DEBUG": "true"},
            stdout=written,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            ends = time.monotonic() + SECONDS
            while until not in (printed := output.read_text()):
                assert process.poll() is None, printed
                assert time.monotonic() < ends, printed
                time.sleep(0.5)
            yield printed
        finally:
            process.terminate()
            process.wait(timeout=60)
