"""Access review: rights that reach far, of all people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import reverse

from accounts.admin.forms import CompletedInput
from accounts.admin.pages.base import StaffPage
from accounts.admin.pages.rights import RevokePage, RightsPage
from accounts.admin.rights import MAX_ROWS, far_reaching_rights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.admin.rights import Rights


class ReviewScope(StaffPage):
    """A page of the access review."""

    def rights(self, *, limit: int | None) -> Rights:
        return far_reaching_rights(limit=limit)

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": "access-review"}

    def done_at(self) -> str:
        return reverse("admin:people")


class ReviewPage(ReviewScope, RightsPage):
    """Access review: staff, wildcard tokens, and access for a limited time."""

    title = "Access review"
    template_name = "backoffice/people/review.html"
    file_name = "access-review.csv"

    def revoke_at(self) -> str:
        return reverse("admin:people-revoke")

    def read(self) -> Mapping[str, Any]:
        field = CompletedInput("people", placeholder="Name or email of a person", required=True)
        attributes = {"id": "email", "class": "box"}
        return {
            "rights": self.rights(limit=MAX_ROWS),
            "person_field": field.render("email", None, attributes),
        }


class ReviewRevokePage(ReviewScope, RevokePage):
    """Revoke rights of the access review."""
