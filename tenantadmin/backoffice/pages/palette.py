"""The results that the command palette loads while the user types."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.contrib import admin
from django.shortcuts import render

from tenantadmin.backoffice.finding import find_for_palette

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


def palette(request: HttpRequest) -> HttpResponse:
    """Answer the palette instead of django-unfold, which caches results for minutes."""
    started = time.monotonic()
    term = request.GET.get("s", "").strip()
    found = find_for_palette(term, admin.site.get_app_list(request)) if term else []
    context = {
        "term": term,
        "results": found,
        # Variables of django-unfold's template of results.
        "page_counter": 0,
        "page_obj": {"count": len(found)},
        "execution_time": time.monotonic() - started,
    }
    return render(request, "backoffice/palette.html", context)
