"""What a tenant's file may have beside rules: its configuration with the prices, and its alerts.

Alerts that a file with alerts leaves out are removed; what it leaves out of the configuration stays. A file
without a section leaves it alone. Members and tokens are in no file: the tokens of members read no users.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tenantadmin_client.client import segment
from tenantadmin_client.plan import Change, fields_that_differ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenantadmin_client.client import Client

#: What the service alone writes into a configuration, and `access`, which only signed-in owners change.
_NOT_WRITTEN = frozenset(
    {"tenantId", "accountId", "access", "plan", "createdAt", "modifiedAt", "seq", "kind"}
)
#: Members of a configuration whose own members stay if they are left out.
_WITH_DEFAULTS = frozenset({"warehouse", "defaults", "logging"})
_OF_ALERT = ("kind", "threshold", "window", "channels", "quietHours", "enabled")
#: Of a channel of an alert: who knows them can send messages.
_SECRETS = ("url", "key")
_PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"


class SectionError(Exception):
    """A section is malformed, or cannot be applied. The message says what to do."""


@dataclass(frozen=True)
class Secret:
    """Stands in a file for what must not be there."""

    variable: str


@dataclass(frozen=True)
class Found:
    """The live parts of a section by name, as a file has them.

    Attributes:
        ids: what the service calls the parts.
        etag: the version of the whole, if it has one.
        kinds: the defaults of alerts by kind.
    """

    parts: dict[str, Any]
    ids: dict[str, Any] = field(default_factory=dict)
    etag: str = ""
    kinds: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What is equal for equal parts alone."""
        return hashlib.sha256(json.dumps(self.parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class SectionChanges:
    """What applying a section would change, by the name of its part, and the digest of the live ones."""

    added: list[str]
    removed: list[str]
    changed: dict[str, list[Change]]
    digest: str

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class Section(ABC):
    """A section of the file of a tenant."""

    name: ClassVar[str]

    @abstractmethod
    def parse(self, value: Any) -> dict[str, Any]:
        """Return the parts of a file's section by name.

        Raises:
            SectionError: it is none.
        """

    @abstractmethod
    def show(self, parts: Mapping[str, Any]) -> Any:
        """Return parts as a file has them, with a `Secret` for each secret."""

    @abstractmethod
    def read(self, client: Client, tenant: str) -> Found:
        """Return the live parts."""

    @abstractmethod
    def write(self, client: Client, tenant: str, name: str, part: Any, found: Found) -> None:
        """Write one part, or remove it if ``part`` is None."""

    def complete(self, part: Any, found: Found) -> Any:
        """Return a part of a file with what the service adds to it."""
        del found
        return part

    def compare(self, wanted: Mapping[str, Any], found: Found) -> SectionChanges:
        """Compare the parts of a file with the live ones."""
        changed = {
            name: fields_that_differ(found.parts[name], self.complete(wanted[name], found))
            for name in wanted
            if name in found.parts
        }
        return SectionChanges(
            added=[name for name in wanted if name not in found.parts],
            removed=[name for name in found.parts if name not in wanted],
            changed={name: fields for name, fields in changed.items() if fields},
            digest=found.digest,
        )


class Configuration(Section):
    """The configuration, prices included: one part."""

    name = "config"

    def parse(self, value: Any) -> dict[str, Any]:
        part = _object(value, self.name)
        if unknown := part.keys() & _NOT_WRITTEN:
            raise SectionError(f"'{min(unknown)}' of 'config' cannot be written here. Leave it out.")
        return {self.name: part}

    def show(self, parts: Mapping[str, Any]) -> Any:
        return parts[self.name]

    def read(self, client: Client, tenant: str) -> Found:
        live = client.config(tenant)
        part = {key: value for key, value in live.body.items() if key not in _NOT_WRITTEN}
        return Found({self.name: part}, etag=live.etag)

    def complete(self, part: Any, found: Found) -> Any:
        live = found.parts[self.name]
        whole = {**live, **part}
        for name in _WITH_DEFAULTS & part.keys() & live.keys():
            whole[name] = {**live[name], **part[name]}
        return whole

    def write(self, client: Client, tenant: str, name: str, part: Any, found: Found) -> None:
        del name
        path = f"/config/tenants/{segment(tenant)}/config"
        client.request("PUT", path, json=self.complete(part, found), headers={"If-Match": found.etag})


class Alerts(Section):
    """The alerts, by name."""

    name = "alerts"

    def parse(self, value: Any) -> dict[str, Any]:
        """Return the alerts of a list by their names."""
        if not isinstance(value, list):
            raise SectionError("'alerts' must be a list")
        parts: dict[str, Any] = {}
        for number, element in enumerate(value, start=1):
            part = dict(_object(element, f"alerts/{number}"))
            name = part.pop("name", None)
            if not isinstance(name, str) or name in parts:
                raise SectionError(f"'alerts/{number}' needs a name that no other has")
            if unknown := part.keys() - {*_OF_ALERT}:
                raise SectionError(f"'alerts/{number}' has no member '{min(unknown)}'")
            parts[name] = part
        return parts

    def show(self, parts: Mapping[str, Any]) -> Any:
        numbers = iter(range(1, 1 + sum(len(part["channels"]) for part in parts.values())))
        return [
            {"name": name, **part, "channels": [_hidden(one, next(numbers)) for one in part["channels"]]}
            for name, part in parts.items()
        ]

    def read(self, client: Client, tenant: str) -> Found:
        body = client.request("GET", _alerts(tenant)).json()
        parts = {alert["name"]: {key: alert[key] for key in _OF_ALERT} for alert in body["alerts"]}
        if len(parts) < len(body["alerts"]):
            raise SectionError("Two alerts have one name. Give each its own in the dashboard.")
        ids = {alert["name"]: alert["id"] for alert in body["alerts"]}
        return Found(parts, ids, kinds={kind["kind"]: kind for kind in body["kinds"]})

    def complete(self, part: Any, found: Found) -> Any:
        kind = found.kinds.get(part.get("kind"), {})
        defaults = {key: kind.get(key) for key in ("threshold", "window")}
        channels = [
            {"url": _PAGERDUTY, **channel} if channel.get("type") == "pagerduty" else channel
            for channel in part.get("channels", [])
        ]
        return {"quietHours": None, "enabled": True, **defaults, **part, "channels": channels}

    def write(self, client: Client, tenant: str, name: str, part: Any, found: Found) -> None:
        path = _alerts(tenant) if name not in found.ids else f"{_alerts(tenant)}/{found.ids[name]}"
        body = part and {"name": name, **{key: value for key, value in part.items() if value is not None}}
        client.request("DELETE" if part is None else "PUT" if name in found.ids else "POST", path, json=body)


SECTIONS: dict[str, Section] = {section.name: section for section in (Configuration(), Alerts())}


def apply_sections(
    client: Client,
    tenant: str,
    sections: Mapping[str, Mapping[str, Any]],
    *,
    planned: Mapping[str, Any] | None = None,
) -> dict[str, int]:
    """Write what differs of the sections of a file. Return how many parts of each were written.

    Args:
        planned: the sections of a plan. Nothing else is written than it shows.

    Raises:
        SectionError: the live parts changed since the plan. Nothing is written.
        ApiError: the service refused a part. Those before it are written.
    """
    found = {name: SECTIONS[name].read(client, tenant) for name in sections}
    changes = {name: SECTIONS[name].compare(sections[name], found[name]) for name in found}
    for name, change in changes.items():
        if planned is not None and planned.get(name, {}).get("digest") != change.digest:
            raise SectionError(f"The {name} of {tenant} changed since the plan. Plan again.")
    for name, change in changes.items():
        for part in (*change.removed, *change.changed, *change.added):
            SECTIONS[name].write(client, tenant, part, sections[name].get(part), found[name])
    return {
        name: len(change.added) + len(change.removed) + len(change.changed)
        for name, change in changes.items()
    }


def _alerts(tenant: str) -> str:
    return f"/tenants/{segment(tenant)}/alerts"


def _hidden(channel: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a channel without its secrets."""
    return {
        key: Secret(f"CHANNEL_{number}_{key.upper()}") if key in _SECRETS and value != _PAGERDUTY else value
        for key, value in channel.items()
    }


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SectionError(f"'{name}' must be names and values")
    return value
