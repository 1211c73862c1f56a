"""Static files in development, where no collectstatic has compressed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.http import HttpResponse

from tenantadmin.lib.http.middleware import compress_static

if TYPE_CHECKING:
    from django.test import RequestFactory


@pytest.mark.parametrize(
    ("path", "coding"),
    [
        ("/static/tenantadmin/admin.css", "gzip"),
        ("/static/dashboard/main.js", "gzip"),
        ("/static/unfold/fonts/inter/Inter-Bold.woff2", None),
        # Answers of the API are sent as in production.
        ("/tenants/a.js", None),
    ],
)
def test_text_alone_is_compressed(rf: RequestFactory, path: str, coding: str | None) -> None:
    respond = compress_static(lambda _request: HttpResponse(b"a" * 1000))
    answer = respond(rf.get(path, headers={"Accept-Encoding": "gzip"}))
    assert answer.headers.get("Content-Encoding") == coding
