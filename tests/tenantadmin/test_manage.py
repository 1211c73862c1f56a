"""Which commands `manage.py` starts the servers for."""

from __future__ import annotations

import pytest

from manage import needs_servers


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        ("", False),
        ("help", False),
        ("--version", False),
        ("migrate --help", False),
        ("makemigrations --check", False),
        ("spectacular --file openapi.json", False),
        ("collectstatic --noinput", False),
        ("serve --demo", False),
        ("migrate", True),
        ("rebuild --tenant 1", True),
        ("create_pat --owner a@b.example", True),
        ("sql --tenant 1 SELECT", True),
        ("a_command_of_tomorrow", True),
    ],
)
def test_servers_start_for_commands_that_may_need_them(
    command_line: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TENANTADMIN_SUPERVISED", raising=False)
    assert needs_servers(command_line.split()) is expected


def test_a_supervised_command_has_its_servers_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANTADMIN_SUPERVISED", "1")
    assert needs_servers(["migrate"]) is False
