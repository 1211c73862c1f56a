"""Settings come from the environment, are documented, and refuse to be unsafe."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tenantadmin.conf.secrets import is_weak_secret, kept_secret, new_secret_key, new_signing_key

ROOT = Path(__file__).resolve().parents[2]


def settings_variables() -> set[str]:
    """Return every environment variable that the settings read."""
    files = ["tenantadmin/settings.py", "logs/sql/options.py", "logs/sql/service.py"]
    trees = [ast.parse((ROOT / file).read_text()) for file in files]
    return {
        call.args[0].value
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "env"
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


def test_every_variable_that_the_settings_read_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    documented = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", text))
    assert settings_variables() - documented == set()


def check(**environ: str) -> subprocess.CompletedProcess[str]:
    """Start the service's checks as production does, with nothing but ``environ`` set."""
    base = {"PATH": os.environ["PATH"], "VAR_DIR": os.environ["VAR_DIR"]}
    return subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**base, "DATABASE_URL": "postgres://db/x", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("secret", ["", "short", "django-insecure-" + "x" * 60, "change-me" + "x" * 60])
def test_production_refuses_a_missing_or_known_secret(secret: str) -> None:
    started = check(DJANGO_SECRET_KEY=secret, JWT_PRIVATE_KEY=new_signing_key())
    assert started.returncode != 0
    assert "DJANGO_SECRET_KEY is missing, short or a known default." in started.stderr


def test_production_refuses_a_missing_signing_key() -> None:
    started = check(DJANGO_SECRET_KEY=new_secret_key())
    assert started.returncode != 0
    assert "JWT_PRIVATE_KEY is missing." in started.stderr


def test_production_starts_with_both() -> None:
    started = check(DJANGO_SECRET_KEY=new_secret_key(), JWT_PRIVATE_KEY=new_signing_key())
    assert started.returncode == 0, started.stderr


def test_a_generated_secret_is_strong() -> None:
    assert not is_weak_secret(new_secret_key())


def test_a_secret_is_made_once_however_many_ask_at_once(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "django.key"
    with ThreadPoolExecutor(8) as pool:
        values = set(pool.map(lambda _: kept_secret(path, new_secret_key), range(64)))
    assert values == {path.read_text()}
    assert [entry.name for entry in path.parent.iterdir()] == ["django.key"]
    assert path.stat().st_mode & 0o777 == 0o600
