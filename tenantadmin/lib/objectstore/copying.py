"""Copy what cannot be rebuilt from one store to another, for backups: raw logs and terms of service."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from tenantadmin.lib.objectstore.storage import StoreError

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore.storage import ObjectStore

_THREADS: Final = 16
_TERMS: Final = "tos/"


class IncompleteCopy(StoreError):
    """After the copy, the target lacks objects."""


@dataclass(slots=True)
class Copied:
    """How many objects the source has, and how many of them were copied now."""

    objects: int = 0
    copied: int = 0


def copy_objects(source: ObjectStore, target: ObjectStore) -> Copied:
    """Copy the objects that the target lacks, or has with another size; objects of the terms always.

    It may be stopped and repeated.

    Raises:
        IncompleteCopy: the target lacks an object afterwards, or has it with another size.
        StoreError: a store failed.
    """
    total = Copied()
    folders, _ = source.listdir("")
    prefixes = (_TERMS if folder == _TERMS.strip("/") else f"{folder}/logs/" for folder in sorted(folders))
    for prefix in prefixes:
        wanted = {entry.key: entry.size for entry in source.list(prefix)}
        present = _sizes(target, prefix)
        missing = [key for key, size in wanted.items() if prefix == _TERMS or present.get(key) != size]
        with ThreadPoolExecutor(_THREADS) as pool:
            # The order does not matter, but an error does.
            list(pool.map(partial(_copy, source, target), missing))
        present = _sizes(target, prefix)
        lacking = [key for key, size in wanted.items() if present.get(key) != size]
        if lacking:
            raise IncompleteCopy(f"the copy lacks {len(lacking)} objects, the first is {lacking[0]!r}")
        total.objects += len(wanted)
        total.copied += len(missing)
    return total


def _sizes(store: ObjectStore, prefix: str) -> dict[str, int]:
    return {entry.key: entry.size for entry in store.list(prefix)}


def _copy(source: ObjectStore, target: ObjectStore, key: str) -> None:
    with source.open(key) as file:
        target.save(key, file)
