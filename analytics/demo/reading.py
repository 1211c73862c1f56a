"""Read the data files of the demo. data/README.md describes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from accounts.models.billing import Plan
from analytics.demo.profile import Profile

FOLDER: Final = Path(__file__).with_name("data")

_T = TypeVar("_T")


class DemoDataError(Exception):
    """The data files are invalid, or do not fit the seeded demo. The message names problem and file."""


class Person(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user of the service."""

    email: str
    name: str


class Owner(Person, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner of the demo's account and tenants. ``tenants`` are the names of their folders.

    ``domain`` was registered and never verified.
    """

    account: str
    domain: str
    plan: Plan
    tenants: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class Stranger(Person, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner of another account. Its tenant has no rules, and its log has stopped."""

    account: str
    plan: Plan
    tenant: str


class People(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``demo.toml``."""

    admin: Person
    owner: Owner
    member: Person
    stranger: Stranger


@dataclass(frozen=True, slots=True)
class Demo:
    """All data of the demo. ``terms`` is Markdown; ``profiles`` are the tenants, in order."""

    people: People
    terms: str
    profiles: tuple[Profile, ...]


def read_demo(folder: Path = FOLDER) -> Demo:
    """Read all data files.

    Raises:
        DemoDataError: a file is invalid.
        OSError: a file cannot be read.
    """
    people = _check(folder / "demo.toml", _read(folder / "demo.toml"), People)
    profiles = tuple(_read_profile(folder / name) for name in people.owner.tenants)
    return Demo(people, (folder / "terms.md").read_text(encoding="utf-8"), profiles)


def _read_profile(folder: Path) -> Profile:
    content = {
        **_read(folder / "profile.toml"),
        **_read(folder / "statements.toml"),
        **_read(folder / "rules.json"),
        "config": _read(folder / "config.json"),
    }
    return _check(folder, content, Profile)


def _read(path: Path) -> dict[str, Any]:
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        return decode(path.read_bytes(), type=dict[str, Any])
    except ValueError as error:
        raise DemoDataError(f"{path}: {error}") from error


def _check(path: Path, content: dict[str, Any], content_type: type[_T]) -> _T:
    try:
        return msgspec.convert(content, content_type)
    except msgspec.ValidationError as error:
        raise DemoDataError(f"{path}: {error}") from error
