"""The default classes of DRF's settings. Imports no view, because DRF imports this with its own views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer

from tenantadmin.lib.core.rendering import dump_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rest_framework.parsers import BaseParser
    from rest_framework.request import Request
    from rest_framework.views import APIView


class DenyByDefault(BasePermission):
    """The permission of a view that sets none: refuse every request."""

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        return False


class OneRepresentation(BaseContentNegotiation):
    """Use the view's first renderer and ignore ``Accept``. A view with several media types chooses itself.

    A body of a type such as ``application/merge-patch+json`` is JSON (RFC 6839, 3.1).
    """

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        if media_type.startswith("application/") and media_type.endswith("+json"):
            media_type = "application/json"
        return next((parser for parser in parsers if not media_type or parser.media_type == media_type), None)

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,  # noqa: ARG002
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, str(first.media_type)


class JsonRenderer(BaseRenderer):
    """Render ``application/json``. Bytes must be JSON already and are sent unchanged."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,  # noqa: ARG002
        renderer_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> bytes:
        if data is None:
            return b""
        return data if isinstance(data, bytes) else dump_json(data)
