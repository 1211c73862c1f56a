"""A stub receiver of webhooks that the settings allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.receiver import Receiver, running_receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_EXCEPTIONS = ["127.0.0.0/8"]
    with running_receiver(tmp_path) as stub:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        yield stub
