"""Times in texts of staff pages."""

from __future__ import annotations

import pytest

from tenantadmin.lib.http.formats import with_moments


def test_a_time_in_a_text_is_marked_for_the_zone_of_the_reader() -> None:
    assert with_moments("<b> at 2026-11-27 12:12 UTC.") == (
        '&lt;b&gt; at <time class="moment " datetime="2026-11-27T12:12:00.000Z" '
        'title="2026-11-27 12:12:00 UTC">2026-11-27 12:12:00 UTC</time>.'
    )


@pytest.mark.parametrize("name", ["2026-99-99 99:99 UTC", "0000-00-00 00:00 UTC", "٢٠٢٦-11-27 10:10 UTC"])
def test_a_name_that_only_looks_like_a_time_stays(name: str) -> None:
    assert with_moments(f"Invalidated: {name}") == f"Invalidated: {name}"
