"""The port, for each test."""

from tests.logs.wire.scene import filled, scene

__all__ = ["filled", "scene"]
