"""Objects in an S3 bucket, or in any store that speaks its protocol."""

from __future__ import annotations

import io
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, IncompleteReadError

from tenantadmin.objectstore.batch import in_batches
from tenantadmin.objectstore.interface import (
    Child,
    Entry,
    ObjectNotFound,
    StoreError,
    check_key,
    check_prefix,
    is_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from concurrent.futures import Future
    from datetime import timedelta

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

    from tenantadmin.objectstore.batch import Batch

_log = logging.getLogger(__name__)

#: How often a body that was cut off on its way is asked for again; failed requests botocore repeats itself.
_READ_ATTEMPTS: Final = 3
#: Requests in flight where many objects are read.
_PARALLEL_READS: Final = 16
#: Objects, and bytes of them, that are read ahead at a time; one larger than that is read alone.
_AHEAD: Final = 2 * _PARALLEL_READS
_AHEAD_BYTES: Final = 64 << 20
#: Seconds without a byte after which an answer is given up.
READ_TIMEOUT: Final = 60
_GONE: Final = frozenset({"404", "NoSuchKey", "NotFound"})


class S3Store:
    """An object store in ``bucket`` under ``base`` (empty, or ending in a slash).

    Credentials, region and ``AWS_ENDPOINT_URL`` come from the environment as boto3 reads it.
    """

    def __init__(self, *, bucket: str, base: str) -> None:
        self._bucket = bucket
        self._base = check_prefix(base)

    @property
    def url(self) -> str:
        return f"s3://{self._bucket}/{self._base}"

    def uri(self, key: str) -> str:
        return self.url + check_key(key)

    @cached_property
    def client(self) -> S3Client:
        """The boto3 client, which is safe to share between threads."""
        return boto3.client(
            "s3",
            config=Config(
                retries={"mode": "standard", "max_attempts": 5},
                connect_timeout=5,
                read_timeout=READ_TIMEOUT,
                max_pool_connections=32,
            ),
        )

    def list(self, prefix: str) -> Iterator[Entry]:
        for page in self._pages(prefix, delimiter=""):
            for item in page.get("Contents", ()):
                key = item["Key"][len(self._base) :]
                if is_key(key):
                    yield Entry(key, item["Size"], item["ETag"].strip('"'))

    def children(self, prefix: str) -> Iterator[Child]:
        start = len(self._base) + len(prefix)
        for page in self._pages(prefix, delimiter="/"):
            for below in page.get("CommonPrefixes", ()):
                name = below["Prefix"][start:-1]
                if is_key(prefix + name):
                    yield Child(name, is_object=False)
            for item in page.get("Contents", ()):
                name = item["Key"][start:]
                if is_key(prefix + name):
                    yield Child(name, is_object=True)

    def stat(self, key: str) -> Entry:
        with _translated(key):
            head = self.client.head_object(Bucket=self._bucket, Key=self._base + check_key(key))
        return Entry(key, head["ContentLength"], head["ETag"].strip('"'))

    def read(self, key: str) -> bytes:
        for attempt in range(1, _READ_ATTEMPTS + 1):
            with self.open(key) as stream:
                try:
                    return stream.read()
                except (BotoCoreError, OSError) as error:
                    if attempt == _READ_ATTEMPTS:
                        raise StoreError(f"the body of {key!r} was cut off {attempt} times") from error
                    _log.info("The body of %s was cut off; asking again", key)
        raise AssertionError("the last attempt returns or raises")

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
        try:
            return self.read(key)
        except ObjectNotFound:
            return None

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        # What fails while the caller reads is the store's failure too.
        with _translated(key):
            body = self.client.get_object(Bucket=self._bucket, Key=self._base + check_key(key))["Body"]
            with closing(body):
                yield cast("BinaryIO", body)

    def write(self, key: str, content: bytes | BinaryIO) -> None:
        stream = io.BytesIO(content) if isinstance(content, bytes) else content
        with _translated(key):
            # Parts of a large object become visible together, when the last has arrived.
            self.client.upload_fileobj(stream, self._bucket, self._base + check_key(key))

    def delete(self, key: str) -> None:
        with _translated(key):
            self.client.delete_object(Bucket=self._bucket, Key=self._base + check_key(key))

    def remove_unfinished(self, *, age: timedelta) -> int:
        before = datetime.now(UTC) - age
        removed = 0
        pages = self.client.get_paginator("list_multipart_uploads")
        with _translated(self._base):
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._base):
                for upload in page.get("Uploads", ()):
                    if upload["Initiated"] <= before:
                        self.client.abort_multipart_upload(
                            Bucket=self._bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                        )
                        removed += 1
        return removed

    def _pages(self, prefix: str, *, delimiter: str) -> Iterator[ListObjectsV2OutputTypeDef]:
        paginator = self.client.get_paginator("list_objects_v2")
        with _translated(prefix):
            yield from paginator.paginate(
                Bucket=self._bucket, Prefix=self._base + check_prefix(prefix), Delimiter=delimiter
            )


@contextmanager
def _translated(key: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in _GONE:
            raise ObjectNotFound(key) from None
        raise StoreError(f"the object store refused {key!r}: {code or error}") from error
    except (BotoCoreError, IncompleteReadError) as error:
        raise StoreError(f"the object store failed at {key!r}: {error}") from error


def _has_room(held: Collection[Entry], another: Entry) -> bool:
    """Whether one more object may be held beside those that are."""
    size = sum(entry.size for entry in held) + another.size
    return not held or (len(held) < _AHEAD and size <= _AHEAD_BYTES)
