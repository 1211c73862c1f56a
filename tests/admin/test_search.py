"""The search of the admin site's palette."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.test import Client


@pytest.mark.parametrize("page", ["0", "-1", "x", "²", "9", "9" * 5000, ""])
def test_a_page_of_the_palette_that_there_is_not(staff: Client, page: str) -> None:
    for extended in ({}, {"extended": "1"}):
        assert staff.get("/admin/search/", {"s": "wareh", "page": page, **extended}).status_code == 404
    assert staff.get("/admin/search/", {"s": "wareh", "extended": "1"}).status_code == 200
