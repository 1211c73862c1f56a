"""Reading of responses, streamed or not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from django.http import StreamingHttpResponse

if TYPE_CHECKING:
    from collections.abc import Iterable


def body_of(answer: Any) -> Any:
    """Return the parsed JSON of a response."""
    if isinstance(answer, StreamingHttpResponse):
        return json.loads(b"".join(cast("Iterable[bytes]", answer.streaming_content)))
    return json.loads(answer.content)
