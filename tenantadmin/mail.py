"""Mails as files that only the service's user can read, because they hold one-time sign-in links."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from django.core.mail.backends.filebased import EmailBackend

if TYPE_CHECKING:
    from collections.abc import Callable


class PrivateFileBackend(EmailBackend):
    """Django's file backend with folder mode 0700 and file mode 0600, also for an existing folder."""

    # Django has both; the type stubs do not, or have another type.
    file_path: str
    stream: Any
    _get_filename: Callable[[], str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        os.chmod(self.file_path, 0o700)  # noqa: PTH101  # Django holds a text

    def open(self) -> bool:
        if self.stream is not None:
            return False
        descriptor = os.open(self._get_filename(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.fchmod(descriptor, 0o600)
        self.stream = os.fdopen(descriptor, "ab")
        return True
