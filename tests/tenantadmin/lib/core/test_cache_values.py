"""Values in Redis are plain data. Contract: none; docs/security.md."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest
from django.core.cache import cache
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.rendering import CacheSerializer

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def stored(value: Any) -> bytes:
    """Return what Redis has of a value."""
    dumped = CacheSerializer().dumps(value)
    return str(dumped).encode() if isinstance(dumped, int) else dumped


@given(VALUES)
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    again = CacheSerializer().loads(stored(value))
    assert again == value
    assert type(again) is type(value)


def test_tuples_and_sets_are_lists() -> None:
    assert CacheSerializer().loads(stored(("a", {"b"}, b"c"))) == ["a", ["b"], b"c"]


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="does not take a Exception"):
        CacheSerializer().dumps(Exception("x"))


def test_a_pickle_is_not_run() -> None:
    with pytest.raises(msgspec.DecodeError):
        CacheSerializer().loads(pickle.dumps(("a", 1.5)))


def test_the_cache_uses_it() -> None:
    cache.set("x", ("a", 1.5))
    assert cache.get("x") == ["a", 1.5]
    cache.set("n", 1)
    assert cache.incr("n") == 2
    assert cache.get_many(["x", "n"]) == {"x": ["a", 1.5], "n": 2}
