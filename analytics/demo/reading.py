"""Read and check the data files of the demo. data/README.md describes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from accounts.models.billing import Plan
from accounts.serializers.tenants import WritableConfig
from analytics.demo.profile import Advised, Consumer, Draft, Mistake, Profile
from analytics.demo.statements import Statement
from rules.json_text import join_pointer
from rules.lint import GrosslyMalformed, lint_ruleset
from tenantadmin.lib.http.handler import validation_details

FOLDER: Final = Path(__file__).with_name("data")

_T = TypeVar("_T")
_AtLeastOne = msgspec.Meta(min_length=1)


class DemoDataError(Exception):
    """A data file is wrong, or the files do not fit the seeded demo. The message says what and where."""


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
    tenants: Annotated[tuple[str, ...], _AtLeastOne]


class Stranger(Person, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The owner of another account, which has a tenant without rules, whose log has stopped."""

    account: str
    plan: Plan
    tenant: str


class People(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``demo.toml``."""

    admin: Person
    owner: Owner
    member: Person
    stranger: Stranger


class _ProfileFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: Annotated[int, msgspec.Meta(ge=0)]
    speaks_http: bool
    consumers: Annotated[tuple[Consumer, ...], _AtLeastOne]
    mistake: Mistake | None = None
    draft: Draft | None = None
    advice: tuple[Advised, ...] = ()

    def __post_init__(self) -> None:
        times = [one.decided for one in self.advice]
        if times != sorted(times):
            raise ValueError("the advice is in order of time")
        if self.mistake is not None and times and times[0] <= self.mistake.restored:
            raise ValueError("advice is decided after the mistake was restored")


class _StatementsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    probes: Annotated[tuple[str, ...], _AtLeastOne]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Demo:
    """All data of the demo. ``terms`` is Markdown; ``profiles`` are the tenants in their order."""

    people: People
    terms: str
    profiles: tuple[Profile, ...]


def read_demo(folder: Path = FOLDER) -> Demo:
    """Read all data files.

    Raises:
        DemoDataError: a file is missing or wrong.
    """
    people = _read(folder / "demo.toml", People)
    profiles = tuple(_read_profile(folder / name) for name in people.owner.tenants)
    return Demo(people, _read_text(folder / "terms.md"), profiles)


def _read_profile(folder: Path) -> Profile:
    path = folder / "profile.toml"
    profile = _read(path, _ProfileFile)
    rules = _read_rules(folder / "rules.json")
    for change in (profile.mistake, profile.draft):
        if change is not None:
            _lint({"rules": [change.rule, *rules]}, path)
    for advised in profile.advice:
        _lint({"rules": list(advised.apply(rules))}, path)
    path = folder / "statements.toml"
    file = _read(path, _StatementsFile)
    without_statement = {consumer.persona for consumer in profile.consumers}.difference(
        *(statement.personas for statement in file.statements)
    )
    if without_statement:
        raise DemoDataError(f"{path}: no statement for the personas {', '.join(sorted(without_statement))}")
    return Profile(
        speaks_http=profile.speaks_http,
        entries=profile.entries,
        config=_read_config(folder / "config.json"),
        rules=rules,
        mistake=profile.mistake,
        draft=profile.draft,
        advice=profile.advice,
        probes=file.probes,
        statements=file.statements,
        consumers=profile.consumers,
    )


def _read_config(path: Path) -> dict[str, Any]:
    config = _read(path, dict[str, Any])
    body = WritableConfig(data=config)
    if not body.is_valid():
        raise _error_at(path, [(row.path, row.message) for row in validation_details(body.errors)])
    if not config.get("fqdns") or "warehouse" not in config:
        raise DemoDataError(f"{path}: the logs need 'fqdns' and 'warehouse'")
    return config


def _read_rules(path: Path) -> tuple[dict[str, Any], ...]:
    document = _read(path, dict[str, Any])
    _lint(document, path)
    return tuple(document["rules"])


def _lint(document: dict[str, Any], path: Path) -> None:
    try:
        result = lint_ruleset(document)
    except GrosslyMalformed as error:
        raise _error_at(path, [(error.path, str(error))]) from error
    if not result.valid:
        raise _error_at(path, [(join_pointer(row.path), row.message) for row in result.errors])


def _error_at(path: Path, places: list[tuple[str, str]]) -> DemoDataError:
    """Return the error for a JSON file. ``places`` are JSON Pointers and messages."""
    return DemoDataError(f"{path}: {'; '.join(f'{pointer}: {message}' for pointer, message in places)}")


def _read(path: Path, content_type: type[_T]) -> _T:
    text = _read_text(path)
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        return decode(text, type=content_type)
    except ValueError as error:
        raise DemoDataError(f"{path}: {error}") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DemoDataError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DemoDataError(f"{path}: {error}") from error
