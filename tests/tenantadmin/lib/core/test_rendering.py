"""Tests of entity tags."""

from __future__ import annotations

import pytest

from tenantadmin.lib.core.errors import Conflict
from tenantadmin.lib.core.rendering import names_etag, require_etag, strong_etag

ETAG = strong_etag("rules", 1)
BARE = ETAG.strip('"')


@pytest.mark.parametrize(
    "header",
    [
        ETAG,
        "*",
        f"W/{ETAG}",
        f'"{BARE}-gzip"',
        f'"{BARE}--gzip"',
        f'"{BARE};gzip"',
        f'W/"{BARE}-br"',
        f'"other", {ETAG}',
        f' "other" ,W/"{BARE}-gzip" ',
    ],
)
def test_a_tag_is_known_as_proxies_change_it(header: str) -> None:
    assert names_etag(header, ETAG)
    require_etag(ETAG, expected=header)


@pytest.mark.parametrize(
    "header", ["", '"other"', BARE, f'"{BARE}gzip"', f'"{BARE}-2"', f'"x{BARE}"', f'w/"{BARE}"', '"*"']
)
def test_another_tag_is_refused(header: str) -> None:
    assert not names_etag(header, ETAG)
    with pytest.raises(Conflict):
        require_etag(ETAG, expected=header)


def test_without_a_tag_nothing_is_expected() -> None:
    require_etag(ETAG, expected=None)
