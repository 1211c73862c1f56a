"""Reading of responses, streamed or not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from django.http import StreamingHttpResponse


def body_of(answer: Any) -> Any:
    """Return the parsed JSON of a response."""
    if isinstance(answer, StreamingHttpResponse):
        return json.loads(b"".join(cast("Iterable[bytes]", answer.streaming_content)))
    return json.loads(answer.content)
