"""A field for JSON that keeps the order in which its properties were written. ``jsonb`` does not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


class JSONTextField(models.JSONField):
    """JSON in a column of text. Queries cannot look into it."""

    def get_internal_type(self) -> str:
        return "TextField"

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> str:  # noqa: ARG002, FBT001, FBT002 - Django's signature
        return json.dumps(value)
