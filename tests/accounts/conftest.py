"""Rate limits that start empty for every test."""

from __future__ import annotations

import uuid
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _unspent_limits(settings: Any) -> None:
    settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
