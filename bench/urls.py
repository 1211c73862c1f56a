"""The service's URLs, and ``/bare/<name>``: the JSON in a file, without authentication and database."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.urls import path
from rest_framework.permissions import AllowAny
from rest_framework.response import Response
from rest_framework.views import APIView

import tenantadmin.urls

if TYPE_CHECKING:
    from rest_framework.request import Request


@cache
def stored_json(name: str) -> Any:
    """Return the JSON value that the benchmark stored as ``name``."""
    return json.loads((Path(os.environ["BENCH_BARE_DIR"]) / f"{name}.json").read_bytes())


class BareView(APIView):
    """The practical limit: DRF sends a value that is in memory."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request, name: str) -> Response:  # noqa: ARG002
        return Response(stored_json(name))


# The service's patterns are listed, because `include` would add a step to resolve each of them.
urlpatterns = [path("bare/<str:name>", BareView.as_view()), *tenantadmin.urls.urlpatterns]
