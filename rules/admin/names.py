"""Pages that name a tenant's rules."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from accounts.admin.pages.base import TenantPage
from rules.admin.text import name_rules
from rules.models import Ruleset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class NamesRules(TenantPage):
    """A page of one tenant that names rules, with the tag ``{% rule %}``."""

    @cached_property
    def live_ruleset(self) -> Ruleset | None:
        """The rules in force and when they were published. None of a deleted tenant."""
        return Ruleset.objects.filter(pk=self.tenant.pk).first()

    @cached_property
    def live_rules(self) -> Sequence[dict[str, Any]]:
        """The rules in force, in their order."""
        return self.live_ruleset.rules if self.live_ruleset else []

    @cached_property
    def rule_names(self) -> Mapping[str, str]:
        """The names of the rules in force, by id."""
        return name_rules(self.live_rules)
