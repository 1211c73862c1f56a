"""A process that reads one share of a day's objects: ``python -m logs.compaction.worker``.

The job comes as JSON on stdin, the result goes as JSON to stdout. A plain child process, because
workers of Celery may not fork children through ``multiprocessing``.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from logs.compaction.batches import BatchResult, Quarantined, read_batches, write_batch
from logs.listing import RawObject  # noqa: TC001  # msgspec reads the annotation
from tenantadmin.objectstore import StoreError, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tenantadmin.objectstore import ObjectStore


#: Raw bytes of a day that are held in memory between reading and converting.
_BYTES_IN_MEMORY: Final = 512 << 20
#: From so many objects on a share is read by a process of its own: opening files holds the interpreter, which
#: parsing few large ones does not.
_OBJECTS_PER_PROCESS: Final = 4_000


class Job(msgspec.Struct, frozen=True):
    """One share: the store's address, the objects, and where their entries go."""

    store_url: str
    objects: tuple[RawObject, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Share:
    """What was read of a share: its good entries, in a file or in memory, and what was set aside."""

    entries: Path | list[pa.RecordBatch]
    quarantined: Sequence[Quarantined]


def read_shares(store: ObjectStore, shares: Sequence[Sequence[RawObject]], *, directory: Path) -> list[Share]:
    """Read all shares side by side. What is too much for memory goes to files in ``directory``.

    Raises:
        StoreError: an object could not be read.
        OSError: a file could not be written.
    """
    if max(map(len, shares)) >= _OBJECTS_PER_PROCESS:
        targets = [directory / f"{number:04}.arrow" for number in range(len(shares))]
        with _Children(store, shares[1:], targets[1:]) as children:
            first = write_batch(store, shares[0], target=targets[0])
            results = [first, *children.results()]
        return [Share(target, result.quarantined) for target, result in zip(targets, results, strict=True)]
    size = sum(item.size for share in shares for item in share)

    def read(number: int) -> Share:
        if size > _BYTES_IN_MEMORY:
            target = directory / f"{number:04}.arrow"
            return Share(target, write_batch(store, shares[number], target=target).quarantined)
        quarantined: list[Quarantined] = []
        entries = list(read_batches(store, shares[number], quarantined=quarantined))
        return Share(entries, quarantined)

    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(read, range(len(shares))))


class _Children:
    """The child processes of one call; none outlives it."""

    def __init__(
        self,
        store: ObjectStore,
        shares: Sequence[Sequence[RawObject]],
        targets: Sequence[Path],
    ) -> None:
        self._jobs = [
            msgspec.json.encode(Job(store.url, tuple(share), str(target)))
            for share, target in zip(shares, targets, strict=True)
        ]
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Children:
        for job in self._jobs:
            child = subprocess.Popen(
                [sys.executable, "-m", __name__],
                cwd=Path(__file__).resolve().parent.parent.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self._running.append(child)
            assert child.stdin is not None  # noqa: S101  # narrows the type: it is a pipe
            child.stdin.write(job)
            child.stdin.close()
            child.stdin = None
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._running:
            child.kill()
            child.communicate()

    def results(self) -> list[BatchResult]:
        results = []
        for child in self._running:
            out, errors = child.communicate()
            if child.returncode:
                last = errors.decode(errors="replace").strip().rpartition("\n")[2]
                raise StoreError(f"a reading process ended with {child.returncode}: {last}")
            results.append(msgspec.json.decode(out, type=BatchResult))
        return results


def main() -> None:
    """Read the job, do it, print the result."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    result = write_batch(open_store(job.store_url), job.objects, target=Path(job.target))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
