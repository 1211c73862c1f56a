"""The addresses of the dashboard's pages, as its main module and the menu name them."""

from __future__ import annotations

import re
from typing import Any

from accounts.dashboard import PAGES
from tests.browser.dashboard.contract_types import MODULES


def dashboard_pages(known: dict[str, Any]) -> dict[str, str]:
    """Return the address of each page behind ``#``, by name. ``known`` has the values in the addresses."""
    pages = {page.path: f"/t/{known['tenant']}/{page.path}" for page in PAGES if page.section}
    for function, path in re.findall(r'\b(page|ofTenant)\("([^"]*)"', (MODULES / "main.js").read_text()):
        name = path.replace(":", "").strip("/").replace("/", "-") or "tenants"
        pattern = path if function == "page" else f"/t/:tenant/{path}"
        pages[name] = re.sub(r":(\w+)", lambda it: str(known[it[1]]), pattern)
    # All modules of pages but the question before a sign-in, which has no address.
    assert len(pages) == len(list((MODULES / "pages").glob("*.js"))) - 1, pages
    return pages
