"""An application whose workers die on request; while the file ``all`` exists, each dies when it starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["HALF_DEAD"])

if (FOLDER / "all").exists():
    os._exit(3)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer with the id of the process. ``/die`` ends it."""
    if scope["path"] == "/die":
        os._exit(3)
    body = str(os.getpid()).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
