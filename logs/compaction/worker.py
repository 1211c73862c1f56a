"""A process that reads one share of a day's objects: ``python -m logs.compaction.worker``.

The job comes as JSON on stdin, the result goes as JSON to stdout. A plain child process, because
workers of Celery may not fork children through ``multiprocessing``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from logs.compaction.batches import BatchObject, BatchResult, write_batch
from tenantadmin.objectstore import StoreError, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenantadmin.objectstore import ObjectStore


class Job(msgspec.Struct, frozen=True):
    """One share: the store's address, the objects, and where their entries go."""

    store_url: str
    objects: tuple[BatchObject, ...]
    target: str
    is_canonical: bool


def write_batches(
    store: ObjectStore,
    shares: Sequence[Sequence[BatchObject]],
    *,
    directory: Path,
    is_canonical: bool,
) -> list[tuple[Path, BatchResult]]:
    """Write each share to a file of its own under ``directory``, in processes side by side.

    The first share is read by this process. Results stand in the order of the shares.

    Raises:
        StoreError: an object could not be read.
    """
    targets = [directory / f"{number:04}.ndjson" for number in range(len(shares))]
    with _Children(store, shares[1:], targets[1:], is_canonical=is_canonical) as children:
        first = write_batch(store, shares[0], target=targets[0], is_canonical=is_canonical)
        return list(zip(targets, [first, *children.results()], strict=True))


class _Children:
    """The child processes of one call; none outlives it."""

    def __init__(
        self,
        store: ObjectStore,
        shares: Sequence[Sequence[BatchObject]],
        targets: Sequence[Path],
        *,
        is_canonical: bool,
    ) -> None:
        self._jobs = [
            msgspec.json.encode(Job(store.url, tuple(share), str(target), is_canonical))
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
    result = write_batch(
        open_store(job.store_url), job.objects, target=Path(job.target), is_canonical=job.is_canonical
    )
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
