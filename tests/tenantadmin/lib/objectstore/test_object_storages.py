"""Tests of ``storages["objects"]``: its class, that the apps use it for single objects, and its errors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

import psutil
import pytest
from botocore.retries.standard import ExponentialBackoff
from django.core.files.storage import FileSystemStorage, storages
from django.core.management import call_command
from storages.backends.s3 import S3Storage

from accounts.models import Tenant
from logs.models import SupersededFile
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import (
    InvalidKey,
    LocalStore,
    ObjectNotFound,
    ObjectStore,
    StoreError,
    default_store,
    open_store,
    storage_settings,
)
from tenantadmin.lib.objectstore.s3 import S3Store
from tests import factories
from tests.conftest import ApiClient
from tests.faulty_http import Fault, running_proxy
from tests.objects import read_object, save_object, use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from django.core.files import File

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, object_store: Path) -> ObjectStore:
    return open_store(object_store.as_uri() if request.param == "file" else request.getfixturevalue("s3_url"))


def run(program: str, **environ: str) -> str:
    """Run a program with only these environment variables (and a few basic ones). Return its output."""
    base = {"PATH": os.environ["PATH"], "DJANGO_DEBUG": "true"}
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=ROOT, env=base | environ, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "described"),
    [
        ("s3://bucket/some/prefix", "S3Storage bucket some/prefix"),
        ("s3://bucket", "S3Storage bucket "),
        ("file:///tmp/a%20b", "FileSystemStorage /tmp/a b"),
        (None, "FileSystemStorage {var}/objects"),
    ],
)
def test_the_storage_is_the_one_that_the_environment_names(
    tmp_path: Path, url: str | None, described: str
) -> None:
    program = """
import django
from django.core.files.storage import FileSystemStorage, storages
django.setup()
objects = storages["objects"]
if isinstance(objects, FileSystemStorage):
    print("FileSystemStorage", objects.location)
else:
    from storages.backends.s3 import S3Storage
    assert isinstance(objects, S3Storage)
    print("S3Storage", objects.bucket_name, objects.location)
"""
    environ = {"OBJECT_STORE_URL": url} if url else {}
    found = run(program, DJANGO_SETTINGS_MODULE="tenantadmin.settings", VAR_DIR=str(tmp_path), **environ)
    assert found == described.format(var=tmp_path) + "\n"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:relative",
        "file://host/x",
        "s3://",
        "https://x/y",
        "s3://b/p?x=1",
        "/plain/path",
        "s3://b/a/../c",
    ],
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"OBJECT_STORE_URL|object key"):
        storage_settings(url)


def test_addresses_name_a_bucket_with_a_prefix_or_a_folder() -> None:
    for address, bucket, prefix in (("s3://bucket", "bucket", ""), ("s3://bucket/a/b/", "bucket", "a/b")):
        remote = open_store(address)
        assert isinstance(remote, S3Store)
        assert (remote.bucket_name, remote.location) == (bucket, prefix)
    assert isinstance(open_store("s3://bucket/a"), S3Storage)
    local = open_store("file:///tmp/a%20b")
    assert isinstance(local, LocalStore)
    assert local.path("k") == "/tmp/a b/k"
    assert isinstance(open_store("file:///tmp"), FileSystemStorage)


class RecordingStore(LocalStore):
    """A store that records each call for a single object."""

    calls: ClassVar[list[tuple[str, str]]] = []

    def open(self, name: str, mode: str = "rb") -> File[bytes]:
        self.calls.append(("open", name))
        return super().open(name, mode)

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        self.calls.append(("save", str(name)))
        return super().save(name, content, max_length)

    def delete(self, name: str) -> None:
        self.calls.append(("delete", name))
        super().delete(name)


@pytest.fixture
def calls(settings: Any, object_store: Path) -> list[tuple[str, str]]:
    """Make ``storages["objects"]`` a `RecordingStore`, and return its calls."""
    backend = f"{RecordingStore.__module__}.{RecordingStore.__name__}"
    settings.STORAGES |= {"objects": {"BACKEND": backend, "OPTIONS": {"location": object_store}}}
    assert storages["objects"] is default_store()
    RecordingStore.calls.clear()
    return RecordingStore.calls


@pytest.mark.django_db
def test_terms_of_service_go_through_the_storage(
    calls: list[tuple[str, str]], world: factories.World
) -> None:
    member = ApiClient(factories.sign_in(world.member))
    token = factories.pat_token(world.platform_admin, "tos:publish", tenants=["*"])
    published = ApiClient(token).post("/tos", {"markdown": "# One"}).json()
    saved = [name for call, name in calls if call == "save"]
    assert saved == [
        f"tos/history/{published['hash']}.md",
        f"tos/audit/{published['publishedAt']}-{published['hash']}.json",
        "tos/current.md",
    ]
    calls.clear()
    assert member.get(f"/tos/{published['hash']}").content == b"# One"
    assert calls == [("open", f"tos/history/{published['hash']}.md")]


@pytest.mark.django_db
def test_raw_logs_go_through_the_storage(
    calls: list[tuple[str, str]], tmp_path: Path, world: factories.World
) -> None:
    name = "logs/2026/03/01/07/a.json"
    (tmp_path / "in" / name).parent.mkdir(parents=True)
    (tmp_path / "in" / name).write_text("{}")
    key = f"{world.tenant.pk}/{name}"
    call_command("import_logs", str(tmp_path / "in"), tenant=str(world.tenant.pk))
    assert calls == [("open", key), ("save", key)]
    member = ApiClient(factories.sign_in(world.member))
    calls.clear()
    call_command("import_logs", str(tmp_path / "in"), tenant=str(world.tenant.pk))
    assert member.get(f"/tenants/{world.tenant.pk}/{name}").content == b"{}"
    assert calls == [("open", key)] * 2


@pytest.mark.django_db
def test_builds_are_uploaded_and_deleted_through_the_storage(
    calls: list[tuple[str, str]], world: factories.World
) -> None:
    prefix = f"{world.tenant.pk}/"
    assert Tenant.objects.filter(pk=world.tenant.pk).exists()
    save_object(default_store(), f"{prefix}logs/2026/03/01/07/a.json", b'{"logId": "a"}')
    calls.clear()
    call_command("rebuild", tenant=world.tenant.pk)
    listed = {entry.key for entry in default_store().list(prefix) if "/logs/" not in entry.key}
    assert listed
    assert {name for call, name in calls if call == "save"} == listed

    SupersededFile.objects.create(key=min(listed), superseded_at=now().replace(year=2000))
    calls.clear()
    call_command("shell", command="from analytics.tasks import clean_up; clean_up()", verbosity=0)
    assert calls == [("delete", min(listed))]


def test_each_operation_makes_one_request(s3_url: str) -> None:  # noqa: F811
    store = open_store(s3_url)
    assert isinstance(store, S3Store)
    requests: list[str] = []
    store.client.meta.events.register("before-call.s3", lambda **call: requests.append(call["model"].name))
    operations: list[tuple[Callable[[], object], str]] = [
        (lambda: save_object(store, "a", b"1"), "PutObject"),
        (lambda: read_object(store, "a"), "GetObject"),
        (lambda: store.size("a"), "HeadObject"),
        (lambda: store.exists("a"), "HeadObject"),
        (lambda: store.exists("none"), "HeadObject"),
        (lambda: store.delete("a"), "DeleteObject"),
    ]
    for operation, _ in operations:
        operation()
    assert requests == [name for _, name in operations]


def test_objects_are_written_only_by_save(store: ObjectStore) -> None:
    save_object(store, "a", b"old")
    for mode in ("wb", "w", "ab", "r+b", "r"):
        with pytest.raises(ValueError, match=r"save\(\) replaces it whole"):
            store.open("a", mode)
    assert read_object(store, "a") == b"old"


def test_an_open_file_has_the_whole_old_object_after_it_is_replaced(store: ObjectStore) -> None:
    save_object(store, "a", b"old" * 1000)
    with store.open("a") as file:
        assert file.read(3) == b"old"
        save_object(store, "a", b"new")
        assert file.size == 3000
        assert file.read() == b"old" * 999
    assert read_object(store, "a") == b"new"


def test_a_backslash_is_not_a_slash(store: ObjectStore) -> None:
    """Django and django-storages replace it by a slash; django-storages resolves ``..`` after that."""
    save_object(store, "other/secret", b"secret")
    for key in ("tenant/..\\..\\other/secret", "tenant\\..\\other/secret", "other\\secret"):
        assert not store.exists(key)
        with pytest.raises(ObjectNotFound):
            store.open(key)
        try:
            save_object(store, key, b"own")
        except InvalidKey:
            pass
        else:
            assert read_object(store, key) == b"own"
        store.delete(key)
    assert read_object(store, "other/secret") == b"secret"
    assert [entry.key for entry in store.list("")] == ["other/secret"]


def test_no_descriptor_is_left_open(store: ObjectStore) -> None:
    save_object(store, "folder/a", b"x" * 100_000)
    read_object(store, "folder/a")
    opened = psutil.Process().num_fds()
    for _ in range(20):
        save_object(store, "folder/a", b"x" * 100_000)
        with store.open("folder/a") as file:
            file.read(10)
        for key in ("none", "folder", "folder/a/b"):
            with pytest.raises(ObjectNotFound):
                store.open(key)
        store.delete("none")
    # A connection may be new. The server, which runs in this process, may not have closed the old one yet.
    deadline = time.monotonic() + 30
    while psutil.Process().num_fds() > opened + 2 * isinstance(store, S3Store):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_files_have_the_permissions_of_the_process(object_store: Path) -> None:
    before = os.umask(0o077)
    try:
        save_object(open_store(object_store.as_uri()), "folder/a", b"x")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (object_store / "folder", object_store / "folder/a")]
    assert modes == [0o700, 0o600]


def each_operation(store: ObjectStore) -> list[Callable[[], object]]:
    return [
        lambda: store.open("a"),
        lambda: save_object(store, "a", b"x"),
        lambda: store.delete("a"),
        lambda: store.listdir(""),
        lambda: list(store.list("")),
    ]


def assert_each_fails(store: ObjectStore, message: str) -> None:
    for operation in each_operation(store):
        with pytest.raises(StoreError, match=message) as failed:
            operation()
        assert not isinstance(failed.value, ObjectNotFound)


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry failed requests without a delay."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)


def test_a_missing_bucket_is_named(s3_url: str) -> None:  # noqa: F811
    assert_each_fails(open_store("s3://no-such-bucket-at-all/prefix"), "NoSuchBucket")


def test_missing_credentials_are_named(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert_each_fails(open_store(s3_url), "Unable to locate credentials")


@pytest.mark.usefixtures("_at_once")
def test_a_store_that_cannot_be_reached_is_named(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert_each_fails(open_store(s3_url), "Could not connect to the endpoint URL")


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.CUT])
def test_a_body_that_is_cut_off_raises_a_store_error(
    s3_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
) -> None:
    save_object(open_store(s3_url), "a", b"x" * 300_000)
    with running_proxy(os.environ["AWS_ENDPOINT_URL"]) as (proxy, address):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        store = open_store(s3_url)
        with (
            proxy.failing(fault, lambda request: request.method == "GET"),
            pytest.raises(StoreError, match="cannot read 'a'"),
        ):
            read_object(store, "a")
        assert read_object(store, "a") == b"x" * 300_000


def test_boto3_finds_the_credentials(
    s3_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    for name in ("AWS_S3_ACCESS_KEY_ID", "AWS_S3_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "others")
    store = open_store(s3_url)
    assert isinstance(store, S3Store)
    sent: list[Any] = []
    store.client.meta.events.register("before-send.s3", lambda request, **_: sent.append(request.headers))
    save_object(store, "a", b"x")
    (headers,) = sent
    assert headers["X-Amz-Security-Token"] == b"token"
    assert f"Credential={os.environ['AWS_ACCESS_KEY_ID']}/".encode() in headers["Authorization"]


@pytest.mark.slow
def test_the_sql_service_reads_s3_without_the_settings_of_django(s3_url: str, tmp_path: Path) -> None:  # noqa: F811
    save_object(open_store(s3_url), "t/a.parquet", b"PAR1")
    program = """
from logs.sql.service import make_application
service = make_application()
(path,) = service._copies.paths(service._store, ["t/a.parquet"])
print(path, path.read_bytes().decode())
"""
    found = run(
        program,
        DJANGO_SETTINGS_MODULE="tenantadmin.settings",
        DJANGO_DEBUG="false",
        OBJECT_STORE_URL=s3_url,
        SQL_SERVICE_SECRET="0123456789abcdef" * 2,
        VAR_DIR=str(tmp_path),
        **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
    )
    assert found == f"{tmp_path}/cache/t/a.parquet PAR1\n"


def test_a_new_setting_makes_a_new_store(settings: Any, tmp_path: Path) -> None:
    first = default_store()
    use_store(settings, (tmp_path / "other").as_uri())
    assert default_store() is not first
    save_object(default_store(), "a", b"x")
    assert (tmp_path / "other" / "a").read_bytes() == b"x"
