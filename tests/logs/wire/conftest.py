"""The port, for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.cache import cache

from tests.logs.wire.scene import Scene, make_scene, write_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def scene(transactional_db: None, tmp_path: Path) -> Iterator[Scene]:
    cache.clear()
    with make_scene(tmp_path) as made:
        yield made
    cache.clear()


@pytest.fixture
def filled(scene: Scene) -> Scene:
    """The port, over a log with six requests."""
    write_log(scene.world)
    return scene
