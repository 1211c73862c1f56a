"""The release before this one, with which this one shares a database during a deployment."""

from __future__ import annotations

from typing import Final

#: Its last migrations. Replace them when a release is made.
MIGRATIONS: Final = {
    "accounts": "0032_words",
    "analytics": "0017_variants_of_recommendations",
    "logs": "0011_query_engine",
    "rules": "0005_markers_made_by",
    "tosapp": "0002_lists_at_scale",
}
