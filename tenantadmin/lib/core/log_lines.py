"""The lines of the log: JSON for machines, or text. Web, workers, beat and the SQL service write the same.

Each line has the id of the request or task and, as far as they are known, its user and tenant.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, Final

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

from tenantadmin.lib.core.request_context import current_description, current_request_id
from tenantadmin.lib.core.timestamps import format_timestamp

#: Left out: Django's `request` has the query string with one-time tokens, Celery's `data` a task's arguments.
_LEFT_OUT: Final = ("request", "request_id", "data")


class JsonLine(JsonFormatter):
    """Writes a JSON object on each line: time, level, logger, message, context and ``extra``."""

    def __init__(self) -> None:
        super().__init__("{message}", style="{", reserved_attrs=[*RESERVED_ATTRS, *_LEFT_OUT])

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        log_data["time"] = format_timestamp(datetime.fromtimestamp(record.created, UTC))
        log_data["level"] = record.levelname
        log_data["logger"] = record.name
        log_data["requestId"] = current_request_id()
        log_data.update(current_description())
        super().add_fields(log_data, record, message_dict)


def logging_config(*, level: int, is_json: bool) -> dict[str, Any]:
    """Return the configuration of `logging.config.dictConfig`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "request_id": {"()": "tenantadmin.lib.core.request_context.RequestIdFilter"},
            "no_outage_traceback": {"()": "tenantadmin.lib.database.connections.NoOutageTraceback"},
        },
        "formatters": {
            "json": {"()": "tenantadmin.lib.core.log_lines.JsonLine"},
            "line": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "json" if is_json else "line",
                "filters": ["request_id", "no_outage_traceback"],
            },
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # No handler: Django's own would write every line a second time in development.
            "django": {"level": "INFO"},
            "django.request": {"level": "ERROR"},
            "django.server": {"level": "WARNING"},
            # Celery would log start and end of every task, each minute. Tasks log their results themselves.
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            # The same of each job of beat that expired, which is sent again.
            "celery.worker.request": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            # Each process would say where it found the credentials of the object store.
            "botocore": {"level": "WARNING"},
        },
    }
