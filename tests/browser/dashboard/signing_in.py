"""Sign in to the dashboard without its sign-in page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from accounts.signin.flow import Device, Identity, complete_sign_in
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from accounts.models import User


def sign_in(user: User) -> str:
    """Return the query with the tokens of a new sign-in, after ``user`` has accepted the terms."""
    user.refresh_from_db()
    client = ApiClient(factories.sign_in(user))
    terms = client.get("/tos").content.decode()
    assert client.post("/users/me/tos", {"markdown": terms}).status_code == 204
    return urlencode(
        msgspec.structs.asdict(complete_sign_in(Identity(email=user.email, email_verified=True), Device()))
    )
