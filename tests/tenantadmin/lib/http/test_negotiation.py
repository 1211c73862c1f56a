"""Tests of the choice of a media type by an Accept header."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.errors import NotAcceptable
from tenantadmin.lib.http.bodies import preferred_media_type

_OFFERED = ("application/json", "text/csv", "application/x-ndjson")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("TEXT/CSV; charset=utf-8", "text/csv"),
        ("text/*", "text/csv"),
        ("application/*", "application/json"),
        # Weights, the order in the header, exact names before wildcards
        ("text/csv;q=0.1, application/json", "application/json"),
        ("application/json;q=0.1, text/csv;q=0.2, application/x-ndjson;q=0.15", "text/csv"),
        ("application/x-ndjson, text/csv", "application/x-ndjson"),
        ("application/json, text/csv", "application/json"),
        ("application/json, text/plain, */*", "application/json"),
        ("*/*, text/csv", "text/csv"),
        ("text/csv;q=0.5, */*", "application/json"),
        ("application/*;q=0.9, application/x-ndjson;q=0.1, text/csv;q=0.5", "application/json"),
        # 0 excludes
        ("application/json;q=0, text/csv", "text/csv"),
        ("application/json;q=0, */*", "text/csv"),
        ("*/*, application/json;q=0, text/*;q=0", "application/x-ndjson"),
        # An invalid weight or parameter
        ("text/csv;q=high", "text/csv"),
        ("text/csv;q=nan, application/x-ndjson;q=0.1", "application/x-ndjson"),
        ("text/csv;q*=nowhere''1, application/x-ndjson;q=0.5", "text/csv"),
    ],
)
def test_preferred_media_type(accept: str, chosen: str) -> None:
    assert preferred_media_type(accept, _OFFERED) == chosen


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("text/csv; for=people", "text/csv; for=people"),
        ('text/csv;charset=utf-8;FOR="People";q=0.2', "text/csv; for=people"),
        ("text/csv", "text/csv"),
        ("text/*", "text/csv"),
        ("text/csv; for=machines; header=absent", "text/csv"),
        ("text/csv; for*=nowhere''people", "text/csv"),
        ("text/csv; for=people; q=0.1, text/csv; q=0.9", "text/csv"),
        ("text/csv; for=people; q=0.9, text/csv; q=0.1", "text/csv; for=people"),
        ("text/csv; for=people; q=0, */*", "application/json"),
    ],
)
def test_a_type_that_is_offered_with_a_parameter(accept: str, chosen: str) -> None:
    assert preferred_media_type(accept, ("application/json", "text/csv", "text/csv; for=people")) == chosen


@pytest.mark.parametrize(
    "accept", ["image/png", "text/csv;q=0", "application/json;q=0", "nonsense", "image/*, text/html"]
)
def test_a_header_that_nothing_fits_is_refused(accept: str) -> None:
    with pytest.raises(
        NotAcceptable, match=r"Ask for application/json, text/csv, application/x-ndjson or \*/\*"
    ):
        preferred_media_type(accept, _OFFERED)


@given(st.text(st.characters(max_codepoint=255)))
def test_any_header_chooses_something_or_is_refused(accept: str) -> None:
    with suppress(NotAcceptable):
        assert preferred_media_type(accept, _OFFERED) in _OFFERED
