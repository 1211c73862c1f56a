"""Objects in an S3 bucket, or in any store that speaks its protocol."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from operator import attrgetter
from typing import IO, TYPE_CHECKING, ClassVar, Final, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files import File
from storages.backends.s3 import S3Storage

from tenantadmin.objectstore.batch import Entry, in_batches
from tenantadmin.objectstore.keys import ObjectNotFound, StoreError, check_prefix, is_key
from tenantadmin.objectstore.storage import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from concurrent.futures import Future
    from datetime import timedelta

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

    from tenantadmin.objectstore.batch import Batch
    from tenantadmin.objectstore.storage import Names

_log = logging.getLogger(__name__)

#: How often a body that was cut off on its way is asked for again; failed requests botocore repeats itself.
_READ_ATTEMPTS: Final = 3
#: Requests in flight where many objects are read.
_PARALLEL_READS: Final = 16
#: Objects, and bytes of them, that are read ahead at a time; one larger than that is read alone.
_AHEAD: Final = 2 * _PARALLEL_READS
_AHEAD_BYTES: Final = 64 << 20
_GONE: Final = frozenset({"404", "NoSuchKey", "NotFound"})
#: Stands for a backslash, of which `S3Storage` makes a slash: a character that no key has.
_BACKSLASH: Final = "\0"


class S3Store(ObjectStore, S3Storage):  # type: ignore[misc]  # django-storages has no types
    """An object store in the bucket ``bucket_name``: all of it, or what is under ``location/``.

    Region and ``AWS_ENDPOINT_URL`` come from the environment as boto3 reads it.
    """

    failures: ClassVar = (OSError, BotoCoreError, ClientError)
    # boto3 finds the credentials, as it does for the query engine. S3Storage prefers variables of its own,
    # AWS_S3_ACCESS_KEY_ID and others, which nothing else reads.
    access_key = secret_key = security_token = session_profile = None
    client_config = Config(
        retries={"mode": "standard", "max_attempts": 5},
        connect_timeout=5,
        # Seconds without a byte after which an answer is given up.
        read_timeout=60,
        max_pool_connections=32,
    )

    @property
    def client(self) -> S3Client:
        """The boto3 client, which is safe to share between threads."""
        client: S3Client = self.bucket.meta.client
        return client

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket_name}/{self._object_key(key)}"

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:  # noqa: ARG002
        # One request. S3File takes three, and puts the whole object into a temporary file first.
        try:
            answer = self.client.get_object(Bucket=self.bucket_name, Key=self._normalize_name(name))
        except ClientError as error:
            if error.response["Error"]["Code"] in _GONE:
                raise FileNotFoundError(name) from None
            raise
        file = File(cast("IO[bytes]", answer["Body"]), name)
        file.size = answer["ContentLength"]
        return file

    def delete(self, name: str) -> None:
        # S3Storage passes over the 404 that tells of a missing bucket.
        with self.translated("delete", name):
            self.client.delete_object(Bucket=self.bucket_name, Key=self._object_key(name))

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

    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        return in_batches(self._read_many(objects))

    def _read_many(self, objects: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
        waiting = iter(objects)
        following = next(waiting, None)
        asked: deque[Entry] = deque()
        with ThreadPoolExecutor(_PARALLEL_READS) as pool:
            ahead: deque[Future[bytes | None]] = deque()
            while following is not None or ahead:
                while following is not None and _has_room(asked, following):
                    ahead.append(pool.submit(self._read_if_there, following.key))
                    asked.append(following)
                    following = next(waiting, None)
                # The caller holds it now, and until it asks for the next.
                if (body := ahead.popleft().result()) is not None:
                    yield asked[0], body
                asked.popleft()

    def read_all(self, prefix: str, wanted: Callable[[str], object]) -> Iterator[Batch]:
        entries = (entry for entry in self.list(prefix) if wanted(entry.key))
        return self.read_many(sorted(entries, key=attrgetter("key")))

    def _read_if_there(self, key: str) -> bytes | None:
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
                    raise StoreError(f"the body of {key!r} was cut off {attempt} times") from error
                _log.info("The body of %s was cut off; asking again", key)
            else:
                return body
        raise AssertionError("the last attempt returns or raises")

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
        return super()._checked(name).replace("\\", _BACKSLASH)

    def _normalize_name(self, name: str) -> str:
        key: str = super()._normalize_name(name)
        return key.replace(_BACKSLASH, "\\")

    def _pages(self, prefix: str, *, delimiter: str) -> Iterator[ListObjectsV2OutputTypeDef]:
        paginator = self.client.get_paginator("list_objects_v2")
        with self.translated("list", prefix):
            yield from paginator.paginate(
                Bucket=self.bucket_name, Prefix=self._base + check_prefix(prefix), Delimiter=delimiter
            )


def _has_room(held: Collection[Entry], another: Entry) -> bool:
    """Whether one more object may be held beside those that are."""
    size = sum(entry.size for entry in held) + another.size
    return not held or (len(held) < _AHEAD and size <= _AHEAD_BYTES)
