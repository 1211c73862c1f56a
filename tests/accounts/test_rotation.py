"""A new signing key: two processes at different steps accept each other's tokens."""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from django.core.management import CommandError, call_command

from tenantadmin.conf.secrets import new_signing_key

ROOT: Final = Path(__file__).parents[2]
#: Prints a token of its own, then for each line of its input whether it accepts that token.
_PROCESS: Final = """
import sys, uuid
import django
django.setup()
from accounts.access.tokens import mint_access_token, verify_access_token
from tenantadmin.lib.core.errors import InvalidToken
epoch, of = uuid.uuid4(), dict(subject="a@example.org", role="user", scopes=[], tenants=[], accounts=[])
print(mint_access_token(epoch=epoch, session=1, **of), flush=True)
for line in sys.stdin:
    try:
        verify_access_token(line.strip())
    except InvalidToken:
        print("refused", flush=True)
    else:
        print("accepted", flush=True)
"""


class Process:
    """A process of the service with keys of its own."""

    def __init__(self, **keys: str) -> None:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("JWT_")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROCESS],
            cwd=ROOT,
            env={**environment, **keys, "DJANGO_SETTINGS_MODULE": "tests.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.token = self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return str(self._process.stdout.readline()).strip()

    def answer(self, token: str) -> str:
        assert self._process.stdin is not None
        print(token, file=self._process.stdin, flush=True)
        return self._read()

    def close(self) -> None:
        self._process.communicate(timeout=30)


def step(*, private: str, **variables: str) -> tuple[str, dict[str, str]]:
    """Run the command with these keys. Return its output, and the variables that it names."""
    out = io.StringIO()
    names = {"JWT_PREVIOUS_PUBLIC_KEYS": "", "JWT_NEXT_PUBLIC_KEYS": "", **variables}
    with pytest.MonkeyPatch.context() as patch:
        for name, text in {"JWT_PRIVATE_KEY": private, **names}.items():
            patch.setattr(f"django.conf.settings.{name}", text.replace("\\n", "\n"))
        call_command("rotate_signing_key", "--file", "next.pem", stdout=out, stderr=io.StringIO())
    return out.getvalue(), dict(re.findall(r'^(\w+)="(.+)"$', out.getvalue(), re.MULTILINE))


@pytest.mark.slow
def test_no_token_is_refused_while_two_processes_are_a_step_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    old = new_signing_key()
    first, published = step(private=old)
    assert first.startswith("Step 1 of 3")
    assert stat.S_IMODE(Path("next.pem").stat().st_mode) == 0o600
    assert step(private=old)[1] == published
    second, retired = step(private=old, **published)
    assert second.startswith("Step 2 of 3")
    new = Path("next.pem").read_text()
    third, nothing = step(private=new, **retired)
    assert (third[:11], nothing) == ("Step 3 of 3", {})
    steps = [
        {"JWT_PRIVATE_KEY": old},
        {"JWT_PRIVATE_KEY": old, **published},
        {"JWT_PRIVATE_KEY": new, **retired},
        {"JWT_PRIVATE_KEY": new},
    ]

    before, publishing, signing, after = processes = [Process(**keys) for keys in steps]
    neighbours = [(before, publishing), (publishing, signing)]
    answers = [(one.answer(other.token), other.answer(one.token)) for one, other in neighbours]
    assert answers == [("accepted", "accepted")] * 2
    assert after.answer(signing.token) == signing.answer(after.token) == "accepted"
    # Two steps at once would refuse tokens.
    assert before.answer(signing.token) == "refused"
    assert after.answer(before.token) == "refused"
    for process in processes:
        process.close()


def test_the_key_that_signs_is_not_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, published = step(private=new_signing_key())
    with pytest.raises(CommandError, match="remove the variable"):
        step(private=Path("next.pem").read_text(), **published)


def test_a_file_that_is_no_key_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("next.pem").write_text("hello")
    with pytest.raises(CommandError, match="not a private key in PEM"):
        step(private=new_signing_key())
    assert Path("next.pem").read_text() == "hello"
