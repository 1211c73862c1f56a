"""Long runs of requests that name what earlier answers named. Contract: States and transitions.

`test_fuzz` asks each operation of a service as it was seeded. Here each request finds what earlier ones left.
"""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest
from schemathesis.generation import GenerationMode

from tests.contract import fuzzing

if TYPE_CHECKING:
    from schemathesis.core.transport import Response

    from tests.contract.fuzzing import Request
    from tests.contract.seeding import Seed

OPERATIONS: Final = {
    operation.definition.raw["operationId"]: operation
    for operation in fuzzing.operations(fuzzing.load_contract())
}
PATHS: Final = sorted({operation.path for operation in OPERATIONS.values()}, key=lambda path: path.count("{"))
#: The pattern of each path's addresses. A path comes before one with a parameter in its place.
PATTERNS: Final = {
    path: re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))) for path in PATHS
}
#: Each life begins with a service as it was seeded, and asks every operation.
LIVES: Final = max(4, fuzzing.EXAMPLES // 4)


class Life:
    """Requests to one service, most of them by one caller, and what the answers named."""

    def __init__(self, seed: Seed, *, token: str, random: Random) -> None:
        self.seed, self.token, self.random = seed, token, random
        #: The parameters of addresses that answers named, by path.
        self.named: dict[str, list[dict[str, str]]] = {}
        #: Documents that were read, with their entity tag, by address.
        self.read: dict[str, tuple[Any, str]] = {}
        self.deleted: list[str] = []
        self.succeeded: set[str] = set()
        self.trail: list[str] = []

    def live(self) -> None:
        """Ask every operation in any order, but delete after the others; then read again."""
        deleting = [name for name, operation in OPERATIONS.items() if operation.method == "delete"]
        reading = [name for name, operation in OPERATIONS.items() if operation.method == "get"]
        for names in ([*(OPERATIONS.keys() - deleting)], deleting, reading):
            for name in self.random.sample(sorted(names), len(names)):
                self.ask(name)

    def ask(self, name: str) -> None:
        operation = OPERATIONS[name]
        case = draw_request(name, self.random)
        self.name_what_exists(case)
        address = case.formatted_path
        document, etag = self.read.get(address, (None, ""))
        if operation.method == "put" and document is not None and self._happens(0.5):
            case.body = document
            case.headers["If-Match"] = etag
        token = self.token if self._happens(0.9) else self.random.choice(self.seed.tokens)
        response = self.send(case, token)
        if response.status_code >= 300:
            return
        self.succeeded.add(name)
        if name != "getContract":
            self.learn(response)
        if operation.method == "delete" and name.startswith("delete"):
            self.deleted.append(address)
        if operation.method == "get":
            outlived = f"{address}/".startswith(tuple(f"{deleted}/" for deleted in self.deleted))
            assert not outlived or name in fuzzing.OUTLIVE_DELETION, f"{address} was deleted"
            self.read_again(case, token, response)

    def read_again(self, case: Request, token: str | None, response: Response) -> None:
        """Remember a document, and ask for it by its entity tag."""
        (etag,) = response.headers.get("etag", ["*"])
        if "304" in case.operation.definition.raw["responses"]:
            case.headers["If-None-Match"] = etag
            unchanged = self.send(case, token)
            assert (unchanged.status_code, unchanged.content) == (304, b""), case.as_curl_command()
        if response.headers.get("content-type") == ["application/json"]:
            self.read[case.formatted_path] = response.json(), etag

    def name_what_exists(self, case: Request) -> None:
        fuzzing.name_what_exists(self.random, case, self.seed.values)
        path = case.operation.path
        named = [shorter for shorter in self.named if f"{path}/".startswith(f"{shorter}/")]
        if named and self._happens(0.9):
            case.path_parameters.update(self.random.choice(self.named[max(named, key=len)]))
        if self._happens(0.5):
            parameters = case.operation.definition.raw.get("parameters", ())
            required = {entry["name"] for entry in parameters if entry.get("required")}
            case.query = {name: value for name, value in case.query.items() if name in required}

    def learn(self, response: Response) -> None:
        """Take the parameters of the addresses that an answer names."""
        hrefs = re.findall(r'"href":"([^"?]+)"', response.text)
        for address in hrefs + response.headers.get("location", []):
            matches = ((path, pattern.fullmatch(address)) for path, pattern in PATTERNS.items())
            path, match = next((path, match) for path, match in matches if match)
            named = self.named.setdefault(path, [])
            if match.groupdict() not in named:
                named.append(match.groupdict())

    def send(self, case: Request, token: str | None) -> Response:
        self.trail.append(f"{case.operation.method.upper()} {case.formatted_path}")
        response = fuzzing.send(case, token=token)
        self.trail[-1] += f" {response.status_code}"
        return response

    def _happens(self, share: float) -> bool:
        return self.random.random() < share


def draw_request(name: str, random: Random) -> Request:
    """Return a request of an operation that the contract allows."""
    requests: list[Request] = []

    @hypothesis.seed(random.random())
    @fuzzing.fuzz_settings(examples=2)
    @hypothesis.given(OPERATIONS[name].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def draw(case: Request) -> None:
        requests.append(case)

    draw()
    return random.choice(requests)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(LIVES))
def test_every_life_is_in_the_contract(seed: Seed, number: int, record_property: Any) -> None:
    random = Random() if fuzzing.EXAMPLES else Random(number)  # noqa: S311  # no secret
    life = Life(seed, token=seed.owner_pat if number % 4 == 3 else seed.wildcard, random=random)
    try:
        life.live()
    except Exception as error:
        error.add_note("\n".join(life.trail))
        raise
    finally:
        record_property("requests", len(life.trail))
    assert len(life.succeeded) > len(OPERATIONS) // 3
