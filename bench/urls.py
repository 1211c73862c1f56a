"""The service's addresses, and ``/bare/<name>``: the bytes of a file without authentication and database."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from django.urls import path
from rest_framework.permissions import AllowAny
from rest_framework.response import Response
from rest_framework.views import APIView

import tenantadmin.urls

if TYPE_CHECKING:
    from typing import Any

    from rest_framework.request import Request


@cache
def stored_json(name: str) -> Any:
    """Return the JSON value that the benchmark left for ``name``."""
    return orjson.loads((Path(os.environ["BENCH_BARE_DIR"]) / f"{name}.json").read_bytes())


class BareView(APIView):
    """The practical limit: DRF answers a value that is there already."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request, name: str) -> Response:  # noqa: ARG002
        return Response(stored_json(name))


# No address of the service is a level further down for it.
urlpatterns = [path("bare/<str:name>", BareView.as_view()), *tenantadmin.urls.urlpatterns]
