"""The dialect of clients/python in SQLAlchemy's own tests of dialects, on each release that is installed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.programs import SCRIPTS, SQLALCHEMIES
from tests.clients.standin import stand_in

pytestmark = pytest.mark.sqlalchemy

CLIENT = Path(__file__).parents[2] / "clients/python"


@pytest.mark.parametrize("release", SQLALCHEMIES, ids=lambda path: path.name)
def test_the_suite_passes_and_the_readme_has_its_figures(release: Path) -> None:
    python = release / "bin/python"
    with stand_in() as address:
        uri = f"tenantadmin+rest://token:pat@{address}/tenant?scheme=http"
        done = subprocess.run(
            [python, "-m", "pytest", "-c", "setup.cfg", "suite.py", "--dburi", uri, "-q", "-rfE"],
            cwd=SCRIPTS / "sqlalchemy_suite",
            env={**os.environ, "PYTHONPATH": f".:{CLIENT / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    passed, skipped, left_out = (
        int(re.search(rf"(\d+) {word}", last)[1])  # type: ignore[index]
        for word in ("passed", "skipped", "deselected")
    )
    figures = f"| {release.name} | {passed} | 0 | {skipped + left_out:,} |"
    assert figures in (CLIENT / "README.md").read_text()
