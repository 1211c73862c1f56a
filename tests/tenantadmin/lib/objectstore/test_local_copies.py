"""Tests of `LocalCopies`: objects are downloaded once, and the least recently used are removed first."""

from __future__ import annotations

import errno
import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pytest
from prometheus_client import REGISTRY

from tenantadmin.lib.objectstore import LocalStore, ObjectNotFound, StoreError, open_store
from tenantadmin.lib.objectstore.local_copies import LocalCopies
from tests.objects import save_object
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore


def test_files_of_a_local_store_are_not_copied(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    save_object(store, "t/a", b"1")

    copies = LocalCopies(tmp_path / "cache", max_bytes=0)
    assert copies.paths(store, ["t/a"]) == [tmp_path / "store" / "t" / "a"]
    assert not (tmp_path / "cache").exists()


def test_remote_objects_are_fetched_once(tmp_path: Path, s3_url: str) -> None:  # noqa: F811
    store = open_store(s3_url)
    copies = LocalCopies(tmp_path / "cache", max_bytes=1000)
    keys = [f"t/day=2026-01-0{number}/x.parquet" for number in range(1, 4)]
    for key in keys:
        save_object(store, key, key.encode())

    paths = copies.paths(store, keys)
    assert [path.read_bytes() for path in paths] == [key.encode() for key in keys]
    assert [path.parent.name for path in paths] == ["day=2026-01-01", "day=2026-01-02", "day=2026-01-03"]

    store.delete(keys[0])
    assert copies.paths(store, keys) == paths
    with pytest.raises(ObjectNotFound):
        copies.paths(store, ["t/missing"])
    assert sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file()) == paths


def test_the_least_recently_used_copies_are_removed_first(tmp_path: Path, s3_url: str) -> None:  # noqa: F811
    store = open_store(s3_url)
    copies = LocalCopies(tmp_path / "cache", max_bytes=15)
    for key in ("a", "b", "c"):
        save_object(store, key, b"0123456789")
    first, second = copies.paths(store, ["a", "b"])
    for moment, path in enumerate((second, first)):
        os.utime(path, (moment, moment))

    copies.paths(store, ["c"])
    assert (first.exists(), second.exists()) == (True, False)


class RemoteStore:
    """A remote store. It calls ``meanwhile`` each time an object is opened."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._meanwhile = meanwhile

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        self._meanwhile()
        yield io.BytesIO(key.encode())


def paths(copies: LocalCopies, *keys: str, meanwhile: Callable[[], object] = lambda: None) -> list[Path]:
    return copies.paths(cast("ObjectStore", RemoteStore(meanwhile)), keys)


def test_copies_in_use_are_not_removed(tmp_path: Path) -> None:
    copies, copies_of_another_process = (LocalCopies(tmp_path, max_bytes=1) for _ in range(2))
    (older,) = paths(copies, "a/older")
    # The first copy is unfinished while the other process removes excess copies and downloads the second.
    (first,) = paths(copies, "a/first", meanwhile=lambda: paths(copies_of_another_process, "a/second"))

    assert {path.name: path.read_text() for path in (tmp_path / "a").iterdir()} == {
        name: f"a/{name}" for name in ("older", "first", "second")
    }
    for path in (older, first):
        os.utime(path, (0, 0))
    paths(copies, "a/third")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["second", "third"]


def test_a_copy_removed_during_a_download_is_downloaded_again(tmp_path: Path) -> None:
    copies = LocalCopies(tmp_path, max_bytes=100)
    (first,) = paths(copies, "first")

    assert all(path.exists() for path in paths(copies, "first", "second", meanwhile=lambda: remove(first)))


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def test_unfinished_copies_of_dead_processes_are_removed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for name, age in ((".dead", 7200), (".alive", 60)):
        (cache / name).write_bytes(b"half")
        os.utime(cache / name, (time.time() - age,) * 2)
    (cache / "gone").symlink_to("nowhere")

    paths(LocalCopies(cache, max_bytes=1), "a")
    assert sorted(path.name for path in cache.iterdir()) == [".alive", "a", "gone"]


class FullDisk:
    """A full disk: a copy fails while the files in ``directory`` have ``size`` bytes or more."""

    def __init__(self, directory: Path, *, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory, self._size = directory, size
        self._copy = shutil.copyfileobj
        monkeypatch.setattr("tenantadmin.lib.objectstore.local_copies.shutil.copyfileobj", self._copy_if_room)

    def _copy_if_room(self, body: BinaryIO, out: BinaryIO, length: int) -> None:
        used = sum(path.stat().st_size for path in self._directory.rglob("*") if path.is_file())
        if used >= self._size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._copy(body, out, length)


def test_a_full_disk_removes_half_of_the_copies_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = LocalCopies(tmp_path / "cache", max_bytes=1000)
    for age, path in enumerate(reversed(paths(copies, *"abcdefgh"))):
        os.utime(path, (age, age))
    assert copies.full_at is None
    FullDisk(tmp_path / "cache", size=3, monkeypatch=monkeypatch)

    (path,) = paths(copies, "i")
    assert path.read_bytes() == b"i"
    # Eight bytes, then four, then two; the most recently used ones are left.
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["a", "b", "i"]
    assert copies.full_at is not None


def test_copies_of_half_a_minute_stay_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = LocalCopies(tmp_path / "cache", max_bytes=1000)
    for path, age in zip(paths(copies, *"abcd"), (20, 40, 20, 40), strict=True):
        os.utime(path, (time.time() - age,) * 2)
    FullDisk(tmp_path / "cache", size=4, monkeypatch=monkeypatch)

    paths(copies, "e")
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["a", "c", "e"]


def test_a_full_disk_with_all_copies_in_use_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = LocalCopies(tmp_path / "cache", max_bytes=1000)
    paths(copies, "a")
    FullDisk(tmp_path / "cache", size=1, monkeypatch=monkeypatch)
    before = full_disks()

    with pytest.raises(
        StoreError, match=f"^cannot copy 'b': the disk of {tmp_path}/cache is full, and every copy"
    ):
        paths(copies, "b")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["a"]
    assert full_disks() == before + 1


def full_disks() -> float:
    return REGISTRY.get_sample_value("tenantadmin_full_disks_total") or 0.0


def test_other_errors_of_the_disk_remove_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = LocalCopies(tmp_path / "cache", max_bytes=1000)
    (path,) = paths(copies, "a")
    os.utime(path, (0, 0))
    monkeypatch.setattr("shutil.copyfileobj", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))

    with pytest.raises(OSError, match="broken"):
        paths(copies, "b")
    assert path.exists()
    assert copies.full_at is None
