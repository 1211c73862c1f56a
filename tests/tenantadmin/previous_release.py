"""The release before this one, with which this one shares a database during a deployment."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
#: Its last migrations. Replace them when a release is made.
MIGRATIONS: Final = {
    "accounts": "0032_words",
    "analytics": "0017_variants_of_recommendations",
    "logs": "0011_query_engine",
    "rules": "0005_markers_made_by",
    "tosapp": "0002_lists_at_scale",
}


def read_commit() -> str:
    """Return the commit of the last release, which its heading in the changelog names."""
    found = re.search(
        r"^## \d+\.\d+\.\d+ - \S+ \(([0-9a-f]{8})\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert found is not None
    return found[1]


def has_commit(commit: str) -> bool:
    """Return False in a clone without the history, and in an archive of the files."""
    found = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{tree}}"], cwd=ROOT, capture_output=True, check=False
    )
    return found.returncode == 0


def extract(commit: str, directory: Path) -> None:
    """Write the files of a commit into a directory."""
    with subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "-C", directory], stdin=archive.stdout, check=True)
    assert archive.returncode == 0
