"""Tests of the object stores. Most run twice: on files and on S3."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenantadmin.lib.objectstore import (
    Entry,
    InvalidKey,
    LocalStore,
    ObjectNotFound,
    ObjectStore,
    StoreError,
    open_store,
)
from tenantadmin.lib.objectstore.s3 import S3Store
from tests.objects import read_object, save_object
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import Batch

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def keys_of(batches: Iterable[Batch]) -> list[str]:
    return [entry.key for batch in batches for entry in batch.entries]


def bodies_of(batches: Iterable[Batch]) -> list[bytes]:
    return [body for batch in batches for _, body in batch.items()]


def read_many(store: ObjectStore, sizes: Mapping[str, int]) -> list[tuple[str, bytes]]:
    """Read keys that were listed with these sizes. Return those that exist."""
    batches = store.read_many(Entry(key, size, "") for key, size in sizes.items())
    return [(entry.key, body) for batch in batches for entry, body in batch.items()]


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "file":
        return open_store((tmp_path / "objects").as_uri())
    return open_store(request.getfixturevalue("s3_url"))


def test_an_object_is_read_as_it_was_written(store: ObjectStore) -> None:
    save_object(store, "a/b.json", b'{"a": 1}')
    assert store.save("a/stream.bin", io.BytesIO(b"x" * 3_000_000)) == "a/stream.bin"

    assert read_object(store, "a/b.json") == b'{"a": 1}'
    with store.open("a/stream.bin") as stream:
        assert stream.read(4) == b"xxxx"
        assert stream.size == 3_000_000
    assert store.size("a/stream.bin") == 3_000_000
    assert store.exists("a/stream.bin")


def test_writing_again_replaces_the_object_and_its_etag(store: ObjectStore) -> None:
    save_object(store, "a", b"one")
    (before,) = store.list("")
    save_object(store, "a", b"two")

    assert read_object(store, "a") == b"two"
    (after,) = store.list("")
    assert (after.key, after.etag != before.etag) == ("a", True)


def test_a_missing_object_is_not_found(store: ObjectStore) -> None:
    save_object(store, "a/b", b"")
    for key in ("a", "a/c", "a/b/c", "nothing"):
        with pytest.raises(ObjectNotFound):
            read_object(store, key)
        with pytest.raises(ObjectNotFound):
            store.size(key)
        assert not store.exists(key)


def test_read_many_keeps_the_order_and_skips_missing_objects(store: ObjectStore) -> None:
    for key in ("top", "a/1", "a/2", "b/c/3"):
        save_object(store, key, key.encode() * 3)
    sizes = {"a/1": 9, "a/2": 1, "a/gone": 9, "b/c/3": 999, "b/c": 0, "a/1/x": 0, "none/x": 0, "top": 9}

    found = read_many(store, sizes)

    assert found == [(key, key.encode() * 3) for key in ("a/1", "a/2", "b/c/3", "top")]
    assert read_many(store, {}) == []


def test_read_many_limits_the_bytes_in_memory(
    s3_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class WithoutRequests(S3Store):
        def _read_if_exists(self, key: str) -> bytes:
            return key.encode()

    taken = 0

    def objects() -> Iterator[Entry]:
        nonlocal taken
        for taken, size in enumerate(sizes):
            yield Entry(str(taken), size, "")

    sizes = [40 << 20, 20 << 20, 10 << 20, 90 << 20, *([1] * 40)]
    monkeypatch.setattr("tenantadmin.lib.objectstore.storage.BATCH_OBJECTS", 1)
    batches = WithoutRequests(bucket_name=s3_url.split("/")[2]).read_many(objects())
    in_memory = []
    for number in range(len(sizes)):
        assert next(batches).content == str(number).encode()
        # The last entry that was taken is not read yet.
        in_memory.append(taken - number)
    # The fourth object exceeds the limit of 64 MiB, so it is read alone. Small objects are limited by number.
    assert in_memory == [2, 2, 1, 1, *([32] * 8), *range(31, -1, -1)]


def test_s3_allows_names_that_are_too_long_for_files(tmp_path: Path, s3_url: str) -> None:  # noqa: F811
    remote, local = open_store(s3_url), LocalStore(tmp_path)
    key = f"t/{'ü' * 150}.json"
    save_object(remote, key, b"x")

    assert [entry.key for entry in remote.list("t/")] == [key]
    assert remote.listdir("t/") == ([], [key[2:]])
    assert bodies_of(remote.read_many(remote.list("t/"))) == [read_object(remote, key)] == [b"x"]
    for operation in (local.open, local.size, local.exists, local.uri, local.delete):
        with pytest.raises(InvalidKey):
            operation(key)
    with pytest.raises(InvalidKey):
        local.listdir(f"{key}/")


def test_listed_objects_are_read_as_they_are(store: ObjectStore) -> None:
    keys = ["a/0", "a/b.json", "a/b/1", "a/b/2/x", "a/b0", "a/é", "a!/x", "b/x", "a/empty"]
    for key in keys:
        save_object(store, key, b"" if key == "a/empty" else key.encode() * 3)
    listed = sorted(store.list("a/"), key=lambda entry: entry.key)

    found = list(store.read_many(listed))

    assert keys_of(found) == sorted(key for key in keys if key.startswith("a/"))
    assert bodies_of(found) == [read_object(store, entry.key) for entry in listed]
    assert [entry for batch in found for entry in batch.entries] == listed


@pytest.mark.slow
def test_an_object_that_is_deleted_after_the_listing_is_skipped(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenantadmin.lib.objectstore.storage.BATCH_OBJECTS", 50)
    monkeypatch.setattr(LocalStore, "objects_per_read", 1)
    keys = [f"a/{number:03}" for number in range(200)]
    for key in keys:
        save_object(store, key, key.encode())
    found = store.read_many(sorted(store.list("a/"), key=lambda entry: entry.key))
    first = keys_of([next(found)])
    store.delete(keys[-1])
    save_object(store, "a/zzz", b"later")
    assert first + keys_of(found) == keys[:-1]


def test_links_pipes_and_unfinished_files_are_neither_listed_nor_read(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "objects")
    for key in ("a/1", "a/b/2", ".hidden/3"):
        save_object(store, key, key.encode())
    folder = tmp_path / "objects/a"
    (folder / "link").symlink_to(folder / "1")
    (folder / "folder").symlink_to(folder / "b")
    (tmp_path / "objects/.staging/unfinished").write_bytes(b"half written")
    (folder / os.fsdecode(b"\xff")).write_bytes(b"the name is not Unicode")
    os.mkfifo(folder / "pipe")
    # This path is longer than a key may be.
    (folder / "/".join(["deep" * 50] * 8)).mkdir(parents=True)
    assert sorted(bodies_of(store.read_many(store.list("")))) == [b".hidden/3", b"a/1", b"a/b/2"]
    assert read_many(store, {"a/link": 1, "a/pipe": 0}) == []


def test_a_file_that_became_a_pipe_is_skipped_without_waiting(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for key in ("a/1", "a/2", "a/3"):
        save_object(store, key, b"" if key == "a/1" else b"x")
    (tmp_path / "a/2").unlink()
    os.mkfifo(tmp_path / "a/2")

    assert read_many(store, {"a/1": 0, "a/2": 1, "a/3": 1}) == [("a/1", b""), ("a/3", b"x")]
    with pytest.raises(ObjectNotFound):
        read_object(store, "a/2")


def test_files_of_any_size_are_read_in_order(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    bodies = {f"a/{number}": bytes([number]) * 5_000_000 for number in range(5)} | {
        "b/large": b"x" * 20_000_000
    }
    for key, body in bodies.items():
        save_object(store, key, body)

    assert read_many(store, dict.fromkeys([*bodies, "b/none", "c/none"], 0)) == list(bodies.items())


def test_an_error_while_reading_names_the_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    store = LocalStore(tmp_path)
    save_object(store, "a/1", b"x")
    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(StoreError, match="cannot read 'a/1': Input/output error"):
        list(store.read_many([Entry("a/1", 1, "")]))


def test_deleting_is_idempotent(store: ObjectStore) -> None:
    save_object(store, "a/b", b"x")
    store.delete("a/b")
    store.delete("a/b")
    store.delete("a/b/c")

    assert list(store.list("")) == []
    assert store.listdir("") == ([], [])


def test_list_is_recursive_and_listdir_is_not(store: ObjectStore) -> None:
    for key in ("t/logs/2026/01/a.json", "t/logs/2026/02/b.json", "t/logs/2026/x.json", "t/logs2/c.json"):
        save_object(store, key, key.encode())

    assert sorted(entry.key for entry in store.list("t/logs/")) == [
        "t/logs/2026/01/a.json",
        "t/logs/2026/02/b.json",
        "t/logs/2026/x.json",
    ]
    folders, objects = store.listdir("t/logs/2026/")
    assert (sorted(folders), objects) == (["01", "02"], ["x.json"])
    assert list(store.list("t/none/")) == []
    assert store.listdir("t/none/") == ([], [])


def test_a_listing_has_the_size(store: ObjectStore) -> None:
    save_object(store, "k", b"12345")

    assert [(entry.key, entry.size) for entry in store.list("")] == [("k", 5)]


def test_more_than_a_page_of_keys_is_listed(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # A real store has a thousand keys per page. The test server has as many as this variable says.
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
    keys = {f"many/{number:04}" for number in range(1050 if "TEST_S3_ENDPOINT" in os.environ else 25)}
    for key in keys:
        save_object(store, key, b"")

    assert {entry.key for entry in store.list("many/")} == keys
    folders, objects = store.listdir("many/")
    assert (folders, set(objects)) == ([], {key[5:] for key in keys})


@pytest.mark.parametrize(
    "key",
    ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/./b", "a//b", "a/", "a\0b", "\ud800", "x" * 1025],
)
def test_keys_that_lead_elsewhere_are_refused(store: ObjectStore, key: str) -> None:
    for operation in (store.open, store.size, store.exists, store.delete):
        with pytest.raises(InvalidKey):
            operation(key)
    with pytest.raises(InvalidKey):
        save_object(store, key, b"")


@pytest.mark.parametrize("prefix", ["a", "/", "../", "a/../"])
def test_prefixes_that_lead_elsewhere_are_refused(store: ObjectStore, prefix: str) -> None:
    with pytest.raises(InvalidKey):
        list(store.list(prefix))
    with pytest.raises(InvalidKey):
        store.listdir(prefix)


def test_unusual_names_are_stored_unchanged(store: ObjectStore) -> None:
    for key in ("t/a b.json", "t/ü+%2F&=?#.json", "t/測試.json", "t/...json", "t/-\\x.json"):
        save_object(store, key, key.encode())
        assert read_object(store, key) == key.encode()
    assert {entry.key for entry in store.list("t/")} == {
        "t/a b.json",
        "t/ü+%2F&=?#.json",
        "t/測試.json",
        "t/...json",
        "t/-\\x.json",
    }


def test_symbolic_links_are_neither_listed_nor_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "f").write_bytes(b"secret")
    root = tmp_path / "root"
    (root / "t").mkdir(parents=True)
    (root / "t" / "file").symlink_to(tmp_path / "secret" / "f")
    (root / "t" / "dir").symlink_to(tmp_path / "secret")
    store = LocalStore(root)

    assert list(store.list("")) == []
    assert store.listdir("t/") == ([], [])
    assert list(store.list("t/dir/")) == []
    assert store.listdir("t/dir/") == ([], [])
    for key in ("t/file", "t/dir"):
        assert not store.exists(key)
        for operation in (store.open, store.size, store.uri):
            with pytest.raises(ObjectNotFound):
                operation(key)
        store.delete(key)
        assert (root / key).is_symlink()
    with pytest.raises(InvalidKey):
        read_object(store, "t/dir/f")
    with pytest.raises(InvalidKey):
        save_object(store, "t/dir/new", b"")
    # Saving replaces the link, not the file to which it leads.
    save_object(store, "t/file", b"own")
    assert (root / "t" / "file").read_bytes() == b"own"
    assert {path.name: path.read_bytes() for path in (tmp_path / "secret").iterdir()} == {"f": b"secret"}


def test_uris_equal_the_uri_of_each_key_and_none_leads_out(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    root = tmp_path / "root"
    (root / "t" / "c" / "day=1").mkdir(parents=True)
    (root / "t" / "c" / "day=3").symlink_to(tmp_path / "secret")
    store = LocalStore(root)
    keys = ["t/c/day=1/f", "t/c/day=2/f", "t/top", "other"]

    assert list(store.uris(keys)) == [store.uri(key) for key in keys]
    for bad in ("t/c/day=3/f", "t/c/day=1/../f", ".staging/f", "t/c/day=3/deep/f"):
        with pytest.raises(InvalidKey):
            store.uris([*keys, bad])


def test_a_failed_write_leaves_only_the_old_object(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(28, "No space left on device")

    store = LocalStore(tmp_path)
    save_object(store, "a/b", b"old")
    with pytest.raises(StoreError, match="No space left"):
        store.save("a/b", Broken())

    assert read_object(store, "a/b") == b"old"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "a" / "b"]


def test_remove_unfinished_removes_only_old_writes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    assert store.remove_unfinished(age=DAY) == 0
    save_object(store, "a", b"x")
    for name, age in (("killed", DAY + MINUTE), ("in-progress", DAY - MINUTE)):
        staged = tmp_path / ".staging" / name
        staged.write_bytes(b"half")
        began_at = (datetime.now(UTC) - age).timestamp()
        os.utime(staged, (began_at, began_at))

    assert store.remove_unfinished(age=DAY) == 1
    assert [path.name for path in (tmp_path / ".staging").iterdir()] == ["in-progress"]
    assert read_object(store, "a") == b"x"


def test_remove_unfinished_removes_only_old_uploads_of_this_store(s3_url: str) -> None:  # noqa: F811
    store = open_store(s3_url)
    assert isinstance(store, S3Store)
    save_object(store, "a", b"x")
    bucket = s3_url.split("/")[2]
    for key in ("some/prefix/t/killed", "other/killed"):
        upload = store.client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        store.client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"half")

    # The test server gives uploads a fixed date in the past.
    assert store.remove_unfinished(age=36_500 * DAY) == 0
    assert store.remove_unfinished(age=-MINUTE) == 1
    left = store.client.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [upload["Key"] for upload in left] == ["other/killed"]
    assert read_object(store, "a") == b"x"


def test_staged_files_are_not_objects(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / ".staging").mkdir()
    (tmp_path / ".staging" / "left-over").write_bytes(b"half")

    assert list(store.list("")) == []
    assert store.listdir("") == ([], [])
    with pytest.raises(InvalidKey):
        read_object(store, ".staging/left-over")


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.text(min_size=1, max_size=40))
def test_any_text_is_stored_under_its_root_or_refused(tmp_path: Path, key: str) -> None:
    base = tmp_path / "base"
    base.mkdir(exist_ok=True)
    store = LocalStore(base / "root")
    (base / "outside").write_bytes(b"")
    try:
        save_object(store, key, b"x")
    except StoreError:
        return
    assert read_object(store, key) == b"x"
    store.delete(key)
    assert sorted(path.name for path in base.iterdir()) == ["outside", "root"]
