"""The system checks of the settings for SQL over the log."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.conf import settings as current

from logs.checks import check_sql_options


@pytest.mark.parametrize(
    ("options", "warnings"),
    [
        ({}, []),
        ({"slots": 2, "slots_per_tenant": 3}, ["logs.W001"]),
    ],
)
def test_a_tenant_that_can_use_all_slots_is_a_warning(
    settings: Any, options: dict[str, Any], warnings: list[str]
) -> None:
    settings.SQL_OPTIONS = dataclasses.replace(current.SQL_OPTIONS, **options)
    assert [message.id for message in check_sql_options()] == warnings
