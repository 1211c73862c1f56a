"""The limits of one lint."""

from __future__ import annotations

from typing import Final

#: Seconds of processor time after which a lint stops to look for errors, and for warnings. The whole takes at
#: most 1 s for 1 MiB. A realistic ruleset of this size takes a third of it.
ERRORS_SECONDS: Final = 0.8
WARNINGS_SECONDS: Final = 0.95
#: Maximum number of errors, and of warnings, before the finding that says how many more there are.
MAX_FINDINGS: Final = 1_000
#: Maximum number of condition nodes of a rule whose meaning is looked at.
MAX_PARTS: Final = 10_000
