"""The ASGI application that granian serves."""

from __future__ import annotations

import resource
import sys
from typing import Final

from django.conf import settings

from tenantadmin.lib.core.memory import give_memory_back
from tenantadmin.lib.core.serving import UnreadBytes
from tenantadmin.lib.http.budgets import ALL_UNREAD_BYTES, MOST_UNREAD_BYTES
from tenantadmin.run.front.answers import AnswerLimits, Answers
from tenantadmin.run.front.application import Front
from tenantadmin.run.front.bodies import BodyLimits

from tenantadmin.wsgi import application as django_application  # isort: skip  # the next line needs Django
from tenantadmin.run import metrics_server

#: Limit of file descriptors: each connection needs one. Many systems allow 1,024 by default.
_OPEN_FILES: Final = 16_384

_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
_wanted = _OPEN_FILES if _hard == resource.RLIM_INFINITY else min(_OPEN_FILES, _hard)
if _soft != resource.RLIM_INFINITY and _soft < _wanted:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_wanted, _hard))

# A thread that computes keeps others waiting, by default for 5 ms each time.
sys.setswitchinterval(0.0005)
give_memory_back()
application = Front(
    django_application,
    threads=settings.WEB_THREADS,
    limits=BodyLimits(max_bytes=settings.MAX_BODY_BYTES, seconds=settings.BODY_TIMEOUT_SECONDS),
    answers=Answers(
        AnswerLimits(waiting=settings.WEB_THREADS // 4),
        UnreadBytes(per_caller=MOST_UNREAD_BYTES, total=ALL_UNREAD_BYTES),
    ),
)
metrics_server.start()
