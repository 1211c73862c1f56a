"""JSON out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import orjson
from rest_framework.renderers import BaseRenderer

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPTIONS = orjson.OPT_NON_STR_KEYS


def dump_json(data: Any) -> bytes:
    """Return ``data`` as compact UTF-8 JSON, integers of any size in full."""
    try:
        return orjson.dumps(data, option=_OPTIONS)
    except orjson.JSONEncodeError:
        # An integer of more than 64 bits; PostgreSQL gives 1e300 back as one.
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


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
