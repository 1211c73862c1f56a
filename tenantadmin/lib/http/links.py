"""OpenAPI ``links``: which operations a client can call next, after a response. Contract: Versioning.

A link says where a parameter comes from: the body of the response, or the path of the request. Each app lists
its own steps in ``api/links.py``. A step between two apps belongs to the higher app, like an import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Prefix of a parameter in the path of the request: its name follows.
PATH: Final = "$request.path."
#: Prefix of a member of the response: its JSON Pointer follows.
BODY: Final = "$response.body#/"
#: The name of the first item of a list.
FIRST: Final = f"{BODY}_links/items/0/name"
ETAG: Final = "$response.header.ETag"


@dataclass(frozen=True, slots=True)
class Step:
    """Links from one operation to others, with their parameters and the members of their body."""

    source: str
    targets: tuple[str, ...]
    parameters: Mapping[str, str]
    body: Mapping[str, str] | None = None

    def links(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the target operation and the link object of each link."""
        for target in self.targets:
            link: dict[str, Any] = {"operationId": target, "parameters": dict(self.parameters)}
            if self.body is not None:
                link["requestBody"] = dict(self.body)
            yield target, link


def add_links(paths: Mapping[str, Any], steps: Iterable[Step]) -> None:
    """Add the links of ``steps`` to the successful responses of their operations in a contract's ``paths``.

    Raises:
        KeyError: a step names an operation that the contract does not have.
    """
    operations = {
        operation["operationId"]: operation for item in paths.values() for operation in item.values()
    }
    for step in steps:
        responses = operations[step.source]["responses"]
        successes = [response for status, response in responses.items() if status.startswith("2")]
        for target, link in step.links():
            link["operationId"] = operations[target]["operationId"]
            for response in successes:
                response.setdefault("links", {})[target] = link
