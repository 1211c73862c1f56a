"""Copies of remote objects: fetched once, whole, and the longest unused go first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tenantadmin.objectstore import LocalStore, ObjectNotFound, open_store
from tenantadmin.objectstore.local_copies import LocalCopies
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from pathlib import Path


def test_a_local_store_s_files_are_used_where_they_are(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    store.write("t/a", b"1")

    copies = LocalCopies(tmp_path / "cache", max_bytes=0)
    assert copies.paths(store, ["t/a"]) == [tmp_path / "store" / "t" / "a"]
    assert not (tmp_path / "cache").exists()


def test_remote_objects_are_fetched_once(tmp_path: Path, s3_url: str) -> None:  # noqa: F811
    store = open_store(s3_url)
    copies = LocalCopies(tmp_path / "cache", max_bytes=1000)
    keys = [f"t/day=2026-01-0{number}/x.parquet" for number in range(1, 4)]
    for key in keys:
        store.write(key, key.encode())

    paths = copies.paths(store, keys)
    assert [path.read_bytes() for path in paths] == [key.encode() for key in keys]
    assert [path.parent.name for path in paths] == ["day=2026-01-01", "day=2026-01-02", "day=2026-01-03"]

    store.delete(keys[0])
    assert copies.paths(store, keys) == paths
    with pytest.raises(ObjectNotFound):
        copies.paths(store, ["t/missing"])
    assert sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file()) == paths


def test_the_copies_used_longest_ago_go_first(tmp_path: Path, s3_url: str) -> None:  # noqa: F811
    store = open_store(s3_url)
    copies = LocalCopies(tmp_path / "cache", max_bytes=15)
    for key in ("a", "b", "c"):
        store.write(key, b"0123456789")
    first, second = copies.paths(store, ["a", "b"])
    for moment, path in enumerate((second, first)):
        os.utime(path, (moment, moment))

    copies.paths(store, ["c"])
    assert (first.exists(), second.exists()) == (True, False)
