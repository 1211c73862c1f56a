"""Which functions a mutant can be put into."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from tests.mutants import baseline
from tests.mutants.trial import _find_functions

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def _frozen() -> Iterator[None]:
    """Freeze all objects, as tests/conftest.py does, before the test and after it."""
    gc.freeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("_frozen")
def test_functions_are_found_though_they_are_frozen() -> None:
    file = "tests/mutants/baseline.py"
    assert _find_functions({file})[file, "Baseline.note"] == [baseline.Baseline.note]
