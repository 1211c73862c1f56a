"""What a tenant's file may have beside rules: its configuration with the prices, and its alerts.

Alerts that a file with alerts leaves out are removed; what it leaves out of the configuration stays. A file
without a section leaves it alone. Members and tokens are in no file: the tokens of members read no users.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from tenantadmin_client.client import path_of
from tenantadmin_client.plan import Change, fields_that_differ

if TYPE_CHECKING:
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
    """What applying a section would change, by the name of its part, and the digest of the live ones.

    ``changed`` has the fields of those that are added, too.
    """

    added: list[str]
    removed: list[str]
    changed: dict[str, list[Change]]
    digest: str

    def __bool__(self) -> bool:
        return bool(self.removed or self.changed)


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
    def show(self, tenant: str, parts: Mapping[str, Any]) -> Any:
        """Return the parts of a tenant as a file has them, with a `Secret` for each secret."""

    @abstractmethod
    def read(self, client: Client, tenant: str) -> Found:
        """Return the live parts."""

    @abstractmethod
    def write(self, client: Client, tenant: str, name: str, part: Any, found: Found) -> None:
        """Write one part, or remove it if ``part`` is None.

        Raises:
            SectionError, ApiError: it is another than the one that was ``found``.
        """

    def complete(self, part: Any, found: Found) -> Any:
        """Return a part of a file with what the service adds to it."""
        del found
        return part

    def hide(self, part: Any) -> Any:
        """Return a part in which no secret can be read, and other secrets are other texts."""
        return part

    def compare(self, wanted: Mapping[str, Any], found: Found) -> SectionChanges:
        """Compare the parts of a file with the live ones."""
        changed = {
            name: fields_that_differ(
                self.hide(found.parts.get(name, {})), self.hide(self.complete(wanted[name], found))
            )
            for name in wanted
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

    def show(self, tenant: str, parts: Mapping[str, Any]) -> Any:
        del tenant
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
        path = path_of("config", "tenants", tenant, "config")
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
            channels = part.get("channels")
            if not isinstance(channels, list) or not all(isinstance(one, dict) for one in channels):
                raise SectionError(f"'alerts/{number}/channels' must be a list of objects")
            parts[name] = part
        return parts

    def show(self, tenant: str, parts: Mapping[str, Any]) -> Any:
        taken: set[str] = set()
        return [
            {"name": name, **part, "channels": [_named(one, tenant, name, taken) for one in part["channels"]]}
            for name, part in parts.items()
        ]

    def hide(self, part: Any) -> Any:
        return {**part, "channels": [_hidden(channel) for channel in part.get("channels", [])]}

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
        channels = [_completed(channel) for channel in part["channels"]]
        return {"quietHours": None, "enabled": True, **defaults, **part, "channels": channels}

    def write(self, client: Client, tenant: str, name: str, part: Any, found: Found) -> None:
        body = part and {"name": name, **{key: value for key, value in part.items() if value is not None}}
        if name not in found.ids:
            client.request("POST", _alerts(tenant), json=body)
            return
        path = f"{_alerts(tenant)}/{found.ids[name]}"
        live = client.request("GET", path)
        if {key: live.json()[key] for key in _OF_ALERT} != found.parts[name]:
            raise SectionError(f"The alert '{name}' of {tenant} has just changed. Plan again.")
        tag = {"If-Match": live.headers["ETag"]}
        client.request("DELETE" if part is None else "PUT", path, json=body, headers=tag)


SECTIONS: dict[str, Section] = {section.name: section for section in (Configuration(), Alerts())}


def apply_sections(
    client: Client,
    tenant: str,
    sections: Mapping[str, Mapping[str, Any]],
    *,
    planned: Mapping[str, Any] | None = None,
    on_written: Callable[[str, str], object] = lambda *_: None,
) -> dict[str, int]:
    """Write what differs of the sections of a file. Return how many parts of each were written.

    Args:
        planned: the sections of a plan. Nothing else is written than it shows.
        on_written: called with the section and the name of each part that was written.

    Raises:
        SectionError: the live parts changed since the plan, and nothing is written; or one changed in this
            moment, as for ApiError.
        ApiError: the service refused a part. Those before it are written.
    """
    found = {name: SECTIONS[name].read(client, tenant) for name in sections}
    changes = {name: SECTIONS[name].compare(sections[name], found[name]) for name in found}
    for name, change in changes.items():
        if planned is not None and planned.get(name, {}).get("digest") != change.digest:
            raise SectionError(f"The {name} of {tenant} changed since the plan. Plan again.")
    for name, change in changes.items():
        for part in (*change.removed, *change.changed):
            SECTIONS[name].write(client, tenant, part, sections[name].get(part), found[name])
            on_written(name, part)
    return {name: len(change.removed) + len(change.changed) for name, change in changes.items()}


def _alerts(tenant: str) -> str:
    return path_of("tenants", tenant, "alerts")


def _completed(channel: Mapping[str, Any]) -> dict[str, Any]:
    """Return a channel as the service writes it."""
    whole = {"url": _PAGERDUTY, **channel} if channel.get("type") == "pagerduty" else dict(channel)
    if isinstance(url := whole.get("url"), str):
        parts = urlsplit(url)
        whole["url"] = parts._replace(netloc=parts.netloc.lower()).geturl()
    if isinstance(to := whole.get("to"), str):
        whole["to"] = to.lower()
    return whole


def _is_secret(key: str, value: Any) -> bool:
    return key in _SECRETS and value != _PAGERDUTY


def _named(channel: Mapping[str, Any], tenant: str, alert: str, taken: set[str]) -> dict[str, Any]:
    """Return a channel with variables for its secrets, which no other channel and tenant has."""
    words = re.sub(r"[^A-Z0-9]+", "_", alert.upper()).strip("_")
    named = dict(channel)
    for key, value in channel.items():
        if _is_secret(key, value):
            stem = f"ALERT_{tenant[:8]}_{words}_{key.upper()}"
            more = (f"{stem}_{number}" for number in count(2))
            name = next(name for name in chain([stem], more) if name not in taken)
            taken.add(name)
            named[key] = Secret(name)
    return named


def _hidden(channel: Mapping[str, Any]) -> dict[str, Any]:
    """Return a channel in which a digest stands for each secret. The host of a URL is none."""
    return {
        key: f"{_host(value)}… (SHA-256 {hashlib.sha256(str(value).encode()).hexdigest()[:8]})"
        if _is_secret(key, value)
        else value
        for key, value in channel.items()
    }


def _host(value: Any) -> str:
    match = re.match(r"https?://[^/?#@]*(?=[/?#]|$)", str(value))
    return match[0] if match else ""


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SectionError(f"'{name}' must be names and values")
    return value
