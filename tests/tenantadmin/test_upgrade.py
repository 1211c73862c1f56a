"""From the previous release to this one, back, and forward again: nothing is lost, and all answers stay."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tenantadmin.run import embedded
from tests.tenantadmin.previous_release import MIGRATIONS, ROOT, extract, has_commit, read_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.slow

SCRIPT: Final = Path(__file__).with_name("answers.py")
SEED: Final = """
import datetime as dt
from analytics.demo.reading import read_demo
from analytics.demo.seed import seed_demo
from tenantadmin.lib.objectstore import default_store
list(seed_demo(default_store(), read_demo(), today=dt.datetime.now(dt.UTC).date(), days=8, share=0.1))
"""
#: Members that differ from one answer to the next.
VOLATILE: Final = {"requestId", "lastUsedAt"}


class Release:
    """The code of a release, on the database, the objects and the secrets of `var_dir`."""

    def __init__(self, code: Path, var_dir: Path) -> None:
        self._code, self._var_dir = code, var_dir
        servers = embedded.endpoints(var_dir)
        self._environment = {
            "PATH": os.environ["PATH"],
            "VAR_DIR": str(var_dir),
            "DJANGO_DEBUG": "true",
            "DATABASE_URL": servers.database_url,
            "REDIS_URL": servers.redis_url,
        }

    def run(self, *command: str, **variables: str) -> None:
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=self._code,
            env={**self._environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def answers(self, paths: list[str], *, write: str = "") -> dict[str, Any]:
        """Rename a rule and make a draft if `write` is given. Return status and body by path."""
        file = self._var_dir / "answers.json"
        asked = {"paths": paths, "name": write, "file": str(file)}
        self.run("shell", "-c", SCRIPT.read_text(), ANSWERS=json.dumps(asked))
        answers: dict[str, Any] = json.loads(file.read_text())
        return answers


def paths_of(code: Path, values: Mapping[str, str]) -> list[str]:
    """Return the paths that the contract of a release can read with these values of their parameters."""
    contract = json.loads((code / "tenantadmin/lib/http/openapi.json").read_text())["paths"]
    found = []
    for path, operations in contract.items():
        names = re.findall(r"{(\w+)}", path)
        # The contract itself has changed. A sign-in begins or ends at /auth.
        if (
            "get" in operations
            and set(names) <= values.keys()
            and not path.startswith("/auth/")
            and path != "/"
        ):
            found.append(path.format(**values))
    return found


def lost(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """Yield the places where `after` lacks what `before` has. A later release may say more."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name not in VOLATILE:
                yield from lost(value, after.get(name), f"{at}/{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, f"{at}/{number}")
    elif before != after:
        yield f"{at}: {before!r} -> {after!r}"[:300]


def test_the_previous_release_and_this_one_give_the_same_answers_in_turn(tmp_path: Path) -> None:
    commit = read_commit()
    if not has_commit(commit):
        pytest.skip(f"This clone lacks the commit {commit} of the previous release: git fetch --unshallow")
    code, var_dir = tmp_path / "code", tmp_path / "var"
    code.mkdir()
    extract(commit, code)
    for app, last in MIGRATIONS.items():
        assert max(file.stem for file in (code / app / "migrations").glob("0*.py")) == last
    old, new = Release(code, var_dir), Release(ROOT, var_dir)
    with embedded.running(var_dir, durable=False):
        old.run("migrate", "--verbosity=0")
        old.run("shell", "-c", SEED)
        old.run("rebuild")
        demo = json.loads((var_dir / "demo.json").read_text())
        year, month, day = demo["lastDay"].split("-")
        paths = paths_of(
            code,
            {
                "tenant": demo["tenants"][0]["tenantId"],
                "email": demo["ownerEmail"],
                "year": year,
                "month": month,
                "day": day,
                "seq": "1",
            },
        )
        assert len(paths) > 30
        before = old.answers(paths, write="Written by the old release")
        assert sum(status == 200 for status, _ in before.values()) > 25
        new.run("migrate", "--verbosity=0")
        for release, name in ((new, "the new release"), (old, "the old release again"), (new, "")):
            release.run("rebuild")
            after = release.answers(paths)
            # The old one knows no more than it did before, and the new one no less.
            differences = lost(before, after) if release is new else lost(after, before)
            told = "\n".join(differences)
            assert not told, told
            if name:
                before = release.answers(paths, write=f"Written by {name}")
