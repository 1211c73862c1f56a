"""Choose one of the alternatives of a recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenantadmin.lib.core.errors import ValidationFailed

if TYPE_CHECKING:
    from analytics.models import Recommendation


def choose_variant(recommendation: Recommendation, variant: str | None) -> dict[str, Any]:
    """Make an alternative the change that the recommendation is. Return the fields that changed.

    Nothing is stored. None, and the variant that it is already, change nothing.

    Raises:
        ValidationFailed: the recommendation has no such alternative.
    """
    if variant in {None, recommendation.variant}:
        return {}
    names = [one["variant"] for one in recommendation.alternatives]
    if variant not in names:
        known = ", ".join(filter(None, [recommendation.variant, *names])) or "none"
        raise ValidationFailed.at(
            "/variant", "out-of-range", f"This recommendation has no variant '{variant}'. It has: {known}."
        )
    chosen = recommendation.alternatives[names.index(variant)]
    own = {name: getattr(recommendation, name) for name in chosen}
    # The replay belongs to the other change.
    fields = {
        **chosen,
        "alternatives": [own if one is chosen else one for one in recommendation.alternatives],
        "replay": None,
    }
    for name, value in fields.items():
        setattr(recommendation, name, value)
    return fields
