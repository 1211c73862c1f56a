"""Lives along the links of the contract, as schemathesis' state machine draws them.

Contract: States and transitions.
"""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest
from django.core.cache import cache
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from accounts.access.rights import clear_principal_cache
from tests.contract import fuzzing, seeding
from tests.objects import use_store

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from schemathesis.core.transport import Response
    from schemathesis.generation.stateful import APIStateMachine
    from schemathesis.generation.stateful.state_machine import StepInput, StepOutput

    from tests.contract.fuzzing import Request

#: Lives in one area, and the most requests that a life may have.
LIVES: Final = 4
STEPS: Final = 30
#: What a life is about, by tag. In the whole contract at once its requests would hardly ever meet.
AREAS: Final = {
    "tenants": ["Tenants", "Rules", "History"],
    "accounts": ["Accounts", "Tenants"],
    "cache": ["Cache", "Rules"],
    "people": ["Users", "Personal access tokens", "Terms of service", "Sign-in", "Sessions"],
    "logs": ["Analytics", "Raw logs", "SQL", "Replays", "Recommendations"],
}
#: Where every life may begin.
ENTRIES: Final = ["listTenants", "getTenant"]


def make_machine(
    area: str, seed: seeding.Seed, settings: Any, store: Path
) -> tuple[type[APIStateMachine], Counter[str]]:
    """Return the state machine of an area, and the count of its requests by operation, filled as it runs.

    Every life begins with the service as it was seeded: the database, the objects, the cache and what the
    process remembers of them. Hypothesis needs that, because what may be drawn next depends on the answers.
    """
    schema = fuzzing.load_contract().include(tag=AREAS[area]).include(operation_id=ENTRIES)
    machine: Any = schema.as_state_machine()
    asked: Counter[str] = Counter()
    callers = st.sampled_from([token for token in seed.tokens if token is not None])

    class Lives(machine):  # type: ignore[misc]  # made by schemathesis
        @initialize(data=st.data(), token=callers)
        def choose_caller(self, data: st.DataObject, token: str) -> None:
            self.data, self.token = data, token
            self.callers: dict[str, str] = {}

        def setup(self) -> None:
            cache.clear()
            clear_principal_cache()
            # What is read from a store is remembered.
            self.store = store.with_name(f"objects-{asked.total()}")
            shutil.copytree(store, self.store)
            use_store(settings, f"file://{self.store}")
            self.undone: AbstractContextManager[None] = fuzzing.undone()
            self.undone.__enter__()

        def teardown(self) -> None:
            self.undone.__exit__(None, None, None)
            shutil.rmtree(self.store)

        def step(self, input: StepInput) -> StepOutput:  # noqa: A002  # its name in schemathesis
            self.linked = {name for _, name in input.applied_parameters if name is not None}
            fuzzing.name_what_exists(self.data.draw, input.case, seed, keep=self.linked)
            output: StepOutput = super().step(input)
            return output

        def get_call_kwargs(self, case: Request) -> dict[str, Any]:
            """Let another caller than that of the life ask now and then."""
            token = self.token if self.data.draw(st.integers(0, 9)) else self.data.draw(callers)
            self.callers[case.id] = token
            return {"headers": fuzzing.headers_of(token)}

        def validate_response(self, response: Response, case: Request, *_: Any, **__: Any) -> None:
            asked[case.operation.definition.raw["operationId"]] += 1
            parent = self.recorder.find_parent(case_id=case.id)
            created = (
                parent is not None
                and self.callers[parent.id] == self.callers[case.id]
                and case.path_parameters.keys() <= self.linked
            )
            fuzzing.check(case, response, recorder=self.recorder, created=created)

    return Lives, asked


@pytest.mark.parametrize("area", AREAS)
def test_every_life_is_in_the_contract(
    seed: seeding.Seed, settings: Any, object_store: Path, area: str, record_property: Any
) -> None:
    machine, asked = make_machine(area, seed, settings, object_store)
    if not fuzzing.EXAMPLES:
        machine = hypothesis.seed(area)(machine)
    try:
        machine.run(settings=fuzzing.fuzz_settings(examples=LIVES, stateful_step_count=STEPS))
    finally:
        record_property("requests", asked.total())
    assert asked.total() > LIVES


def test_every_operation_with_a_link_is_in_an_area() -> None:
    schema = fuzzing.load_contract()
    tags = {tag for area in AREAS.values() for tag in area}
    for operation in fuzzing.operations(schema):
        raw = operation.definition.raw
        linked = any("links" in answer for answer in raw["responses"].values())
        assert not linked or raw["tags"][0] in tags or raw["operationId"] in ENTRIES, raw["operationId"]
