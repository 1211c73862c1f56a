"""Objects in a bucket of S3, or of another store with the S3 protocol."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import IO, TYPE_CHECKING, ClassVar, Final, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage

from tenantadmin.lib.objectstore.storage import (
    Entry,
    ObjectNotFound,
    ObjectStore,
    StoreError,
    check_prefix,
    is_key,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

    from tenantadmin.lib.objectstore.storage import Names

_log = logging.getLogger(__name__)

#: Attempts to read an object whose body is cut off. Failed requests are retried by botocore.
_READ_ATTEMPTS: Final = 3
#: The most keys of one request that deletes.
_DELETED_AT_ONCE: Final = 1_000
_NOT_FOUND_CODES: Final = frozenset({"404", "NoSuchKey", "NotFound"})
#: Replaces backslashes while `S3Storage` handles a name, as it would turn them into slashes. No key has it.
_BACKSLASH_PLACEHOLDER: Final = "\0"


class S3Store(ObjectStore, S3Storage):  # type: ignore[misc]  # django-storages has no types
    """An object store in the bucket ``bucket_name``: the whole bucket, or the keys under ``location/``.

    boto3 reads the region and ``AWS_ENDPOINT_URL`` from the environment.
    """

    failures: ClassVar = (OSError, BotoCoreError, ClientError)
    # boto3 finds the credentials, as it does for the query engine. Without this line, S3Storage would prefer
    # its own variables (AWS_S3_ACCESS_KEY_ID and others).
    access_key = secret_key = security_token = session_profile = None
    client_config = Config(
        retries={"mode": "standard", "max_attempts": 5},
        connect_timeout=5,
        # Seconds without a byte.
        read_timeout=60,
        max_pool_connections=32,
    )

    @property
    def client(self) -> S3Client:
        """The boto3 client. Threads may share it."""
        client: S3Client = self.bucket.meta.client
        return client

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:  # noqa: ARG002
        # This is one request. S3File makes three, and first copies the whole object into a temporary file.
        try:
            response = self.client.get_object(Bucket=self.bucket_name, Key=self._normalize_name(name))
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_FOUND_CODES:
                raise FileNotFoundError(name) from None
            raise
        file = File(cast("IO[bytes]", response["Body"]), name)
        file.size = response["ContentLength"]
        return file

    def delete(self, name: str) -> None:
        # S3Storage ignores every 404, the one for a missing bucket too.
        with self.translated("delete", name):
            self.client.delete_object(Bucket=self.bucket_name, Key=self._object_key(name))

    def delete_many(self, names: Iterable[str]) -> None:
        keys = map(self._object_key, names)
        while group := tuple(islice(keys, _DELETED_AT_ONCE)):
            with self.translated("delete", group[0]):
                answer = self.client.delete_objects(
                    Bucket=self.bucket_name,
                    Delete={"Objects": [{"Key": key} for key in group], "Quiet": True},
                )
            for failure in answer.get("Errors", ()):
                raise StoreError(f"cannot delete {failure.get('Key')!r}: {failure.get('Message')}")

    def list(self, prefix: str) -> Iterator[Entry]:
        for page in self._pages(prefix, delimiter=""):
            for item in page.get("Contents", ()):
                key = item["Key"][len(self._base) :]
                if is_key(key):
                    yield Entry(key, item["Size"], item["ETag"].strip('"'))

    def listdir(self, path: str) -> Names:
        folders, objects = [], []
        start = len(self._base) + len(path)
        for page in self._pages(path, delimiter="/"):
            folders += [below["Prefix"][start:-1] for below in page.get("CommonPrefixes", ())]
            objects += [item["Key"][start:] for item in page.get("Contents", ())]
        folders, objects = ([name for name in names if is_key(path + name)] for names in (folders, objects))
        return folders, objects

    def _read_if_exists(self, key: str) -> bytes | None:
        for attempt in range(1, _READ_ATTEMPTS + 1):
            try:
                file = self.open(key)
            except ObjectNotFound:
                return None
            try:
                with file:
                    body: bytes = file.read()
            except StoreError as error:
                if attempt == _READ_ATTEMPTS:
                    raise StoreError(f"cannot read {key!r}: the body was cut off {attempt} times") from error
                _log.info("The body of %s was cut off. Reading it again.", key)
            else:
                return body
        raise AssertionError("the last attempt returns or raises")

    def check_reachable(self, *, seconds: float) -> None:
        config = Config(connect_timeout=seconds, read_timeout=seconds, retries={"total_max_attempts": 1})
        client = boto3.client("s3", config=config)
        with self.translated("reach", self._base):
            client.list_objects_v2(Bucket=self.bucket_name, Prefix=self._base, MaxKeys=1)

    def remove_unfinished(self, *, age: timedelta) -> int:
        before = datetime.now(UTC) - age
        removed = 0
        pages = self.client.get_paginator("list_multipart_uploads")
        with self.translated("list", self._base):
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=self._base):
                for upload in page.get("Uploads", ()):
                    if upload["Initiated"] <= before:
                        self.client.abort_multipart_upload(
                            Bucket=self.bucket_name, Key=upload["Key"], UploadId=upload["UploadId"]
                        )
                        removed += 1
        return removed

    @property
    def _base(self) -> str:
        return f"{self.location}/" if self.location else ""

    def _object_key(self, key: str) -> str:
        return self._normalize_name(self._checked(key))

    def _checked(self, name: str) -> str:
        return super()._checked(name).replace("\\", _BACKSLASH_PLACEHOLDER)

    def _normalize_name(self, name: str) -> str:
        key: str = super()._normalize_name(name)
        return key.replace(_BACKSLASH_PLACEHOLDER, "\\")

    def _pages(self, prefix: str, *, delimiter: str) -> Iterator[ListObjectsV2OutputTypeDef]:
        paginator = self.client.get_paginator("list_objects_v2")
        with self.translated("list", prefix):
            yield from paginator.paginate(
                Bucket=self.bucket_name, Prefix=self._base + check_prefix(prefix), Delimiter=delimiter
            )
