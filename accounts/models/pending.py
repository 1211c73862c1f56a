"""What waits for an answer until it expires: invitations of people, and requests of staff for access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from typing import Any


class Pending(models.Model):
    """Something about a tenant that is answered once. ``outcome`` is empty until then."""

    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    #: Null until it is answered or withdrawn.
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)

    outcome: Any

    class Meta:
        abstract = True

    @property
    def state(self) -> str:
        """How it ended, ``open`` or ``expired``."""
        return self.outcome or ("open" if self.expires_at > now() else "expired")

    def end(self, outcome: str, **values: Any) -> bool:
        """Set the outcome, and other fields. Return False if it is no longer open.

        Of two transactions that end it at the same time, one gets True.
        """
        changes = {"ended_at": now(), "outcome": outcome, **values}
        rows = type(self)._default_manager.filter(pk=self.pk, ended_at=None, expires_at__gt=now())
        if not rows.update(**changes):
            return False
        for name, value in changes.items():
            setattr(self, name, value)
        return True
