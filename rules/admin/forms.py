"""Fields of forms that staff write rules with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from rules.wording import CONFIRM_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping


class RemovalsField(forms.MultipleChoiceField):
    """Ids of rules that may be removed although they have active markers: a box to tick for each."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self) -> None:
        super().__init__(label=CONFIRM_LABEL, required=False)

    def clean(self, value: Any) -> list[str]:
        """Return the ticked ids, also of rules whose marker has expired since."""
        return [str(rule_id) for rule_id in value or () if rule_id]


def offer_removals(form: forms.Form, names: Mapping[str, str]) -> None:
    """Let the user tick these rules in ``confirm_deletes``. Without any, the form has no such field."""
    field = form.fields["confirm_deletes"]
    if not names:
        del form.fields["confirm_deletes"]
    elif isinstance(field, RemovalsField):
        field.choices = list(names.items())
