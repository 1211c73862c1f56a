"""JSON out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.renderers import BaseRenderer

from tenantadmin.core.jsontext import dump_json

if TYPE_CHECKING:
    from collections.abc import Mapping


class JsonRenderer(BaseRenderer):
    """``application/json``; bytes are taken for JSON that is rendered already."""

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
