"""The guides as pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tenantadmin.views import GUIDES

if TYPE_CHECKING:
    from django.test import Client


def test_the_page_of_the_api_links_to_every_guide(client: Client) -> None:
    page = client.get("/docs").content.decode()
    links = re.findall(r'href="/docs/guides/([\w-]+)"', page)
    assert links == list(GUIDES)


def test_links_of_guides_lead_to_headings(client: Client) -> None:
    pages = {}
    for name in GUIDES:
        answer = client.get(f"/docs/guides/{name}")
        assert answer.status_code == 200
        pages[name] = answer.content.decode()
    anchors = {name: set(re.findall(r'<h\d id="([^"]+)"', page)) for name, page in pages.items()}
    assert "conditions" in anchors["rules"]
    followed = 0
    for name, page in pages.items():
        for target, anchor in re.findall(r'href="(?:/docs/guides/([\w-]+))?#([^"]+)"', page):
            assert anchor in anchors[target or name], (name, target, anchor)
            followed += 1
        assert ".md" not in "".join(re.findall(r'href="([^"]+)"', page))
    assert followed > 30


def test_other_files_are_not_shown(client: Client) -> None:
    for name in ("contributing", "README", "nothing"):
        assert client.get(f"/docs/guides/{name}").status_code == 404
