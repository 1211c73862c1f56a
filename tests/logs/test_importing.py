"""``manage.py import_logs``: what it copies and refuses, and that it can be run again."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Tenant
from logs.importing import LogFile, find_log_files, import_files
from tenantadmin.lib.objectstore import default_store
from tests.factories import make_account
from tests.objects import read_object

TENANT = "11111111-2222-4333-8444-555555555555"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _tenant() -> None:
    account = make_account()
    Tenant.objects.create(pk=TENANT, account=account, name="Warehouse")


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

    assert run(tmp_path / "in", capsys).startswith("2 files imported, 0 there already.")
    store = default_store()
    before = {entry.key: entry.etag for entry in store.list("")}
    assert set(before) == {
        f"{TENANT}/logs/2026/03/01/00/a.json",
        f"{TENANT}/logs/2026/03/01/23/ü b.json",
    }
    assert read_object(store, f"{TENANT}/logs/2026/03/01/00/a.json") == b'{"a": 1}'

    write(tmp_path / "in/logs/2026/03/01/00/a.json", '{"a": 9}')
    assert run(tmp_path / "in", capsys).startswith("1 file imported, 1 there already.")
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
    write(tmp_path / "in/logs/2026/03/01/00/valid.json")
    write(tmp_path / "in" / misplaced)

    with pytest.raises(CommandError, match=misplaced):
        run(tmp_path / "in", capsys)
    assert list(default_store().list("")) == []


@pytest.mark.parametrize("target", ["secret.json", "gone.json", "folder"])
@pytest.mark.parametrize("link", ["logs/2026/03/01/00/link.json", "logs/2026/03/01/01", "logs/2027"])
def test_a_link_is_named_and_nothing_is_imported(
    tmp_path: Path, target: str, link: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/logs/2026/03/01/00/valid.json")
    write(tmp_path / "secret.json", "a secret")
    write(tmp_path / "folder/03/01/00/a.json", "a secret")
    (tmp_path / "in" / link).symlink_to(tmp_path / target)

    with pytest.raises(CommandError, match=f"not plain files: {link}. Move or remove them"):
        run(tmp_path / "in", capsys)
    assert list(default_store().list("")) == []


def test_a_link_above_the_folder_logs_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "real/logs/2026/03/01/00/a.json")
    (tmp_path / "in").symlink_to(tmp_path / "real")
    assert run(tmp_path / "in", capsys).startswith("1 file imported")

    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked/logs").symlink_to(tmp_path / "real/logs")
    with pytest.raises(CommandError, match="unpacked/logs is a symbolic link"):
        run(tmp_path / "unpacked", capsys)


def test_a_pipe_is_named_and_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "logs/2026/03/01/00/valid.json")
    os.mkfifo(tmp_path / "logs/2026/03/01/00/pipe.json")
    with pytest.raises(CommandError, match=r"not plain files: logs/2026/03/01/00/pipe\.json"):
        run(tmp_path, capsys)


def test_a_name_that_is_not_utf8_is_shown_and_nothing_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "logs/2026/03/01/00/valid.json")
    write(tmp_path / os.fsdecode(b"logs/2026/03/01/00/\xff.json"))
    with pytest.raises(CommandError) as caught:
        run(tmp_path, capsys)
    assert r"names that are not UTF-8: logs/2026/03/01/00/\udcff.json. Move or remove them" in str(
        caught.value
    )
    assert list(default_store().list("")) == []


def test_a_file_that_became_a_link_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "logs/2026/03/01/00/a.json"
    write(path)
    write(tmp_path / "secret.json", "a secret")
    files = find_log_files(tmp_path, tenant=UUID(TENANT))
    assert files == [LogFile(path, f"{TENANT}/logs/2026/03/01/00/a.json")]
    path.unlink()
    path.symlink_to(tmp_path / "secret.json")

    with pytest.raises(OSError, match="symbolic links"):
        list(import_files(default_store(), files))
    assert list(default_store().list("")) == []


def test_control_characters_in_a_name_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "logs/\x1b]0;pwned\x07")
    with pytest.raises(CommandError) as caught:
        run(tmp_path, capsys)
    assert r"logs/\x1b]0;pwned\x07" in str(caught.value)


def test_an_empty_or_missing_tree_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="contains no folder 'logs'"):
        run(tmp_path, capsys)
    (tmp_path / "logs" / "2026").mkdir(parents=True)
    with pytest.raises(CommandError, match="contains no file"):
        run(tmp_path, capsys)
