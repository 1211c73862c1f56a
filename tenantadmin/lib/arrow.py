"""Functions of Arrow as `Any`, because the type stubs lack some functions and argument types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute
arange: Any = getattr(pa, "arange")  # noqa: B009
