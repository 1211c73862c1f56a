"""An application whose first worker dies while the second one is still starting, which never ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

FOLDER = Path(os.environ["HALF_DEAD"])

try:
    (FOLDER / "first").touch(exist_ok=False)
except FileExistsError:
    with (FOLDER / "fifo").open("w"):
        pass
    while True:
        signal.pause()
# The other worker opens its end when it gets there.
with (FOLDER / "fifo").open():
    os._exit(3)
