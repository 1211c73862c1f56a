"""From the previous release to this one, back, and forward again: nothing is lost, and all answers stay."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tenantadmin.run import embedded
from tests.tenantadmin.previous_release import MIGRATIONS, ROOT, extract, has_commit, read_commit

pytestmark = pytest.mark.slow

SCRIPT: Final = Path(__file__).with_name("answers.py")
SEED: Final = """
import datetime as dt
from accounts.access.scopes import Scope
from accounts.models import PersonalAccessToken
from analytics.demo.reading import read_demo
from analytics.demo.seed import seed_demo
from tenantadmin.lib.objectstore import default_store
list(seed_demo(default_store(), read_demo(), today=dt.datetime.now(dt.UTC).date(), days=8, share=0.1))
PersonalAccessToken.objects.update(scopes=list(Scope))
"""
#: Where the answers of the old release have the other parameters of its paths.
MADE: Final[dict[str, tuple[str, tuple[str | int, ...]]]] = {
    "account": ("/config/tenants/{tenant}/config", ("accountId",)),
    "fqdn": ("/config/tenants/{tenant}/config", ("fqdns", 0)),
    "draft": ("/config/tenants/{tenant}/rules/drafts", ("_links", "items", 0, "name")),
    "marker": ("/tenants/{tenant}/invalidation-markers", ("markers", 0, "markerId")),
    "pat_id": ("/users/{email}/tokens", ("_links", "items", 0, "name")),
    "md5": ("/users/{email}/tos", ("activeHash",)),
    "hour": ("/tenants/{tenant}/logs/{year}/{month}/{day}", ("_links", "items", -1, "name")),
    "userId": ("/tenants/{tenant}/users", ("users", 0, "userId")),
    "replayId": ("/tenants/{tenant}/replays", ("_links", "items", 0, "name")),
}
#: What differs from one answer to the next, and when a document was made: each release makes its own.
VOLATILE: Final = {"requestId", "lastUsedAt", "generatedAt"}
#: What this release says otherwise, as the changelog promises: where, which part of a text differs, and why.
PROMISED: Final = (
    (
        "//analytics/queries/1/queries/\\d+/(about|text)",
        "(?s:.*)",
        "The SQL finds more, and has more columns.",
    ),
    ("//tenants/.*/1/queries/\\d+/\\w+", "(?s:.*)", "The SQL of reports finds more."),
    ("//digests/unsubscribe/1", "(?s:.*)", "The page looks otherwise."),
    (".*/opportunities/1/.*/suggestedAction", "rule (“.*?”|[a-z-]+)", "Names beside ids."),
    (".*/verdict/1/text", ", \\d+ [A-Z][a-z]+(?= yet$)", "Days have their date."),
    (".*/alerts/1/kinds/\\d+/about", "requests|log entries|of the log (?=failed)", "Words."),
)


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


def paths_of(code: Path, values: Mapping[str, str]) -> dict[str, str]:
    """Return the paths that the contract of a release can read with these values, by their templates."""
    contract = json.loads((code / "tenantadmin/lib/http/openapi.json").read_text())["paths"]
    found = {}
    for path, operations in contract.items():
        # The contract itself has changed. A sign-in begins or ends at /auth. To read is an event.
        if "get" not in operations or path.startswith(("/auth/", "/config/events")) or path == "/":
            continue
        asked = [
            (parameter["name"], parameter["schema"]["type"])
            for parameter in operations["get"].get("parameters", ())
            if parameter["in"] == "query" and parameter.get("required")
        ]
        query = "&".join(f"{name}={{{name}-{kind}}}" for name, kind in asked)
        template = f"{path}?{query}" if query else path
        if set(re.findall(r"{([\w-]+)}", template)) <= values.keys():
            found[template] = template.format_map(values)
    return found


def find_made(answers: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that these answers have."""
    found = {}
    for parameter, (template, members) in MADE.items():
        value = answers[paths[template]][1]
        for member in members:
            value = value[member]
        found[parameter] = value
    return found


def lost(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """Yield the places where `after` lacks what `before` has. A later release may say more."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name not in VOLATILE:
                yield from lost(value, after.get(name), f"{at}/{name}")
    elif at.endswith("/caveats"):
        yield from (f"{at}: {caveat!r} is gone" for caveat in before if caveat not in after)
    elif isinstance(before, list) and isinstance(after, list) and is_as_long(before, after, at):
        for number, one in enumerate(before):
            yield from lost(one, after[number], f"{at}/{number}")
    elif before != after and not is_promised(before, after, at):
        yield f"{at}: {before!r} -> {after!r}"[:300]


def is_as_long(before: list[Any], after: list[Any], at: str) -> bool:
    # The names of the columns of a published query, the queries of a report, the kinds of alerts: new ones
    # follow.
    grows = at.endswith(("/fields", "/queries", "/kinds"))
    return len(before) <= len(after) if grows else len(before) == len(after)


def is_promised(before: Any, after: Any, at: str) -> bool:
    return (
        isinstance(before, str)
        and isinstance(after, str)
        and any(
            re.fullmatch(place, at) and re.sub(part, "", before) == re.sub(part, "", after)
            for place, part, _ in PROMISED
        )
    )


def test_the_previous_release_and_this_one_give_the_same_answers_in_turn(tmp_path: Path) -> None:
    commit = read_commit()
    assert has_commit(commit), (
        f"This clone lacks the commit {commit} of the previous release: git fetch --unshallow"
    )
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
        values = {
            "tenant": demo["tenants"][0]["tenantId"],
            "email": demo["ownerEmail"],
            "year": year,
            "month": month,
            "day": day,
            "seq": "1",
            "from-integer": "1",
            "to-integer": "2",
            "from-string": demo["lastDay"],
            "to-string": demo["lastDay"],
        }
        first = paths_of(code, values)
        made = old.answers(list(first.values()), write="Written by the old release")
        paths = list(paths_of(code, values | find_made(made, first)).values())
        assert len(paths) > 60
        before = old.answers(paths)
        assert sum(status == 200 for status, _ in before.values()) > 50
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
