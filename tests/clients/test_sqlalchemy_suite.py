"""The dialect of clients/python in SQLAlchemy's own tests of dialects, on each release that is installed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.programs import CLIENT, SCRIPTS, SQLALCHEMIES
from tests.clients.standin import stand_in

pytestmark = pytest.mark.sqlalchemy


@pytest.mark.parametrize("release", SQLALCHEMIES, ids=lambda path: path.name)
def test_the_suite_passes_and_the_readme_has_its_figures(release: Path) -> None:
    python = release / "bin/python"
    with stand_in() as address:
        uri = f"tenantadmin+rest://token:pat@{address}/tenant?scheme=http"
        done = subprocess.run(
            [python, "-m", "pytest", "-c", "setup.cfg", "suite.py", "--dburi", uri, "-q", "-rfE"],
            cwd=SCRIPTS / "sqlalchemy_suite",
            env={
                **os.environ,
                "PYTHONPATH": f".:{CLIENT / 'src'}",
                "PYTHONDONTWRITEBYTECODE": "1",
                # SQLAlchemy 1.4 names one of several reasons, in the order of a set.
                "PYTHONHASHSEED": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == figures_of_the_readme(release.name)


def figures_of_the_readme(release: str) -> dict[str, int]:
    """Return the column of a release: what is counted, and how many there are."""
    page = (CLIENT / "README.md").read_text()
    lines = page[page.index("| SQLAlchemy | ") :].partition("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    column = head.index(release)
    counted = {row[0]: int(row[column].replace(",", "")) for row in rows}
    return {name: count for name, count in counted.items() if count or name in {"failed", "error"}}
