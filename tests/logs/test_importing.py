"""``manage.py import_logs``: what it takes, what it refuses, and that it may be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from tenantadmin.objectstore import default_store

if TYPE_CHECKING:
    from pathlib import Path

TENANT = "11111111-2222-4333-8444-555555555555"


def write(path: Path, text: str = "{}") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    call_command("import_logs", str(directory), tenant=TENANT)
    return capsys.readouterr().out


def test_a_tree_is_copied_and_a_second_run_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/logs/2026/03/01/00/a.json", '{"a": 1}')
    write(tmp_path / "in/logs/2026/03/01/23/ü b.json", '{"a": 2}')

    assert run(tmp_path / "in", capsys).startswith("2 files imported, 0 were there already.")
    store = default_store()
    before = {entry.key: entry.etag for entry in store.list("")}
    assert set(before) == {
        f"{TENANT}/logs/2026/03/01/00/a.json",
        f"{TENANT}/logs/2026/03/01/23/ü b.json",
    }
    assert store.read(f"{TENANT}/logs/2026/03/01/00/a.json") == b'{"a": 1}'

    write(tmp_path / "in/logs/2026/03/01/00/a.json", '{"a": 9}')
    assert run(tmp_path / "in", capsys).startswith("1 files imported, 1 were there already.")
    after = {entry.key: entry.etag for entry in store.list("")}
    assert [key for key in before if before[key] != after[key]] == [f"{TENANT}/logs/2026/03/01/00/a.json"]


@pytest.mark.parametrize(
    "misplaced",
    [
        "logs/a.json",
        "logs/2026/03/01/a.json",
        "logs/2026/03/01/24/a.json",
        "logs/2026/02/30/00/a.json",
        "logs/2026/3/1/0/a.json",
        "logs/2026/03/01/00/a.txt",
        "logs/2026/03/01/00/deeper/a.json",
    ],
)
def test_a_file_at_another_place_is_named_and_nothing_is_imported(
    tmp_path: Path, misplaced: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/logs/2026/03/01/00/good.json")
    write(tmp_path / "in" / misplaced)

    with pytest.raises(CommandError, match=misplaced):
        run(tmp_path / "in", capsys)
    assert list(default_store().list("")) == []


def test_an_empty_or_missing_tree_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="holds no folder 'logs'"):
        run(tmp_path, capsys)
    (tmp_path / "logs" / "2026").mkdir(parents=True)
    with pytest.raises(CommandError, match="holds no file"):
        run(tmp_path, capsys)
