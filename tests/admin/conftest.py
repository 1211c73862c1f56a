"""A browser in which a platform admin is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.test import Client

    from tests import factories


@pytest.fixture
def staff(client: Client, world: factories.World) -> Client:
    client.force_login(world.platform_admin)
    return client
