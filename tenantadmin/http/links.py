"""The ``links`` of the contract: which answers lead on to which operations. Contract: Versioning.

A link says where a parameter comes from: the body of the answer, or the path that was asked. Each app lists
its own steps in ``api/links.py``. A step between two apps belongs to the higher one, as an import would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: A parameter of the path that was asked; its name follows.
PATH: Final = "$request.path."
#: A member of the answer; its JSON Pointer follows.
BODY: Final = "$response.body#/"
#: The first name of a list.
FIRST: Final = f"{BODY}_links/items/0/name"
ETAG: Final = "$response.header.ETag"


@dataclass(frozen=True, slots=True)
class Step:
    """From an operation to others, with the parameters and the body members that they take over."""

    source: str
    targets: tuple[str, ...]
    parameters: Mapping[str, str]
    body: Mapping[str, str] | None = None

    def links(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the link objects by the name of the operation that each leads to."""
        for target in self.targets:
            link: dict[str, Any] = {"operationId": target, "parameters": dict(self.parameters)}
            if self.body is not None:
                link["requestBody"] = dict(self.body)
            yield target, link


def add_links(paths: Mapping[str, Any], steps: Iterable[Step]) -> None:
    """Write the links of ``steps`` into the good answers of their operations among a contract's ``paths``.

    Raises:
        KeyError: a step names an operation that the contract does not have.
    """
    operations = {
        operation["operationId"]: operation for item in paths.values() for operation in item.values()
    }
    for step in steps:
        responses = operations[step.source]["responses"]
        good = [answer for status, answer in responses.items() if status.startswith("2")]
        for target, link in step.links():
            link["operationId"] = operations[target]["operationId"]
            for answer in good:
                answer.setdefault("links", {})[target] = link
