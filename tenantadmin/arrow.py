"""Arrow's compute functions, without their stubs, which do not know that plain values are taken too."""

from __future__ import annotations

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
