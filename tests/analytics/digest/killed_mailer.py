"""Send the queued digests in a process that the SMTP server of a test kills.

python -m tests.analytics.digest.killed_mailer DATABASE PORT
"""

from __future__ import annotations

import sys

import django
from django.conf import settings


def main(database: str, port: str) -> None:
    settings.DATABASES["default"]["NAME"] = database
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", int(port)
    django.setup()
    from tenantadmin.lib.jobs.outbox import MAIL  # needs Django
    from tests.sending import send_all

    # One at a time, so that no other mail arrives while the server kills this process.
    object.__setattr__(MAIL, "size", 1)
    sys.stdin.readline()
    print(send_all(), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
