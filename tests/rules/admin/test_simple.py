from __future__ import annotations

from typing import Any

import pytest

from rules.admin.simple import say_conditions
from tests.format_cases import CONDITIONS


@pytest.mark.parametrize(("conditions", "text"), CONDITIONS)
def test_conditions_are_said_in_words(conditions: dict[str, Any], text: str) -> None:
    assert say_conditions(conditions) == text
