"""Which functions a mutant can be put into, and that it runs there."""

from __future__ import annotations

import functools
import gc
from typing import TYPE_CHECKING

import pytest

from tests.mutants import baseline
from tests.mutants.trial import _clear_caches, _find_functions

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


@functools.cache
def _cached() -> object:
    return object()


@pytest.mark.usefixtures("_frozen")
def test_what_a_cached_function_has_returned_is_forgotten() -> None:
    first = _cached()
    _clear_caches({"tests/mutants/baseline.py"})
    assert _cached() is first
    _clear_caches({"tests/mutants/test_trial.py"})
    assert _cached() is not first
