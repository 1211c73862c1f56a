"""The names of the metrics, as the code declares them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from logs.sql import service
from tenantadmin.lib.core import metrics
from tenantadmin.run import metrics_server

_SOURCE: Final = "".join(
    Path(str(module.__file__)).read_text() for module in (metrics, metrics_server, service)
)

COUNTERS: Final = {f"tenantadmin_{name}_total" for name in re.findall(r'counter\("(\w+)"', _SOURCE)}
HISTOGRAMS: Final = {
    f"tenantadmin_{name}_seconds_bucket" for name in re.findall(r'seconds\("(\w+)"', _SOURCE)
}
#: An information has a suffix.
GAUGES: Final = {
    "tenantadmin_build_info" if name == "tenantadmin_build" else name
    for name in re.findall(r'"(tenantadmin_\w+)"', _SOURCE)
}
