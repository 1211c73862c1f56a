"""Every answer is one that the published contract declares, whatever is asked. Contract: Errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract import fuzzing, seeding

if TYPE_CHECKING:
    from tests.contract.fuzzing import Operation, Request

SCHEMA = fuzzing.load_contract()
OPERATIONS: dict[str, list[Operation]] = {}
for operation in fuzzing.operations(SCHEMA):
    OPERATIONS.setdefault(operation.definition.raw["tags"][0], []).append(operation)


@pytest.mark.slow
@pytest.mark.parametrize("tag", sorted(OPERATIONS))
def test_every_answer_is_in_the_contract(
    seed: seeding.Seed, tag: str, record_property: Any, subtests: Any
) -> None:
    sent = 0
    tokens = st.sampled_from(seed.tokens)
    for operation in OPERATIONS[tag]:
        for mode in fuzzing.modes(operation):

            @fuzzing.fuzz_settings(examples=2)
            @given(case=fuzzing.cases(operation, mode, seed), token=tokens)
            def fuzz(case: Request, token: str | None) -> None:
                nonlocal sent
                sent += 1
                with fuzzing.undone():
                    fuzzing.send(case, token=token)

            with subtests.test(operation.label, mode=mode.value):
                fuzz()
    record_property("requests", sent)
