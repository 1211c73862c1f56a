"""The backends of mails: a mail server, whose failures are counted, or files on a development machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.core.mail.backends import filebased, smtp

from tenantadmin.lib.core.metrics import count_mails

if TYPE_CHECKING:
    from django.core.mail import EmailMessage


class CountedSmtpBackend(smtp.EmailBackend):
    """Django's SMTP backend, which counts the mails that the server accepted and the mails that failed."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        sent = 0
        try:
            sent = super().send_messages(email_messages) or 0
        finally:
            count_mails(state="sent", count=sent)
            count_mails(state="failed", count=len(email_messages) - sent)
        return sent


class PrivateFileBackend(filebased.EmailBackend):
    """Django's file backend with folder mode 0700 and file mode 0600, also for an existing folder.

    The mails hold one-time sign-in links.
    """

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
