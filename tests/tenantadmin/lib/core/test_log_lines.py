"""The log: one format for all processes, the access log, and the context of requests and tasks."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from redis import RedisError

from tenantadmin import celery
from tenantadmin.lib.core.log_lines import JsonLine, logging_config
from tenantadmin.lib.core.request_context import (
    begin_request,
    clear_description,
    current_description,
    current_request_id,
    describe_request,
)
from tenantadmin.management.commands.serve import CHILD_ENVIRONMENT
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.http import HttpRequest

ROOT: Final = Path(__file__).parents[4]


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Return what the root logger writes as JSON lines, from INFO on."""
    # An earlier test in this process may have described its request.
    clear_description()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLine())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)
    clear_description()


def read(stream: io.StringIO, logger: str) -> list[dict[str, Any]]:
    """Return the lines of a logger. Threads and objects that earlier tests left behind may log too."""
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [line for line in found if line["logger"] == logger]


def test_a_line_has_its_context_and_no_one_time_token(lines: io.StringIO, rf: Any) -> None:
    begin_request("r-1")
    describe_request(user="ada@example.org", tenant=None)
    request: HttpRequest = rf.get("/auth/magic-link/verify?t=secret")
    logging.getLogger("x.y").warning("a %s\nb", "c", extra={"request": request, "status_code": 500})
    (line,) = read(lines, "x.y")
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "WARNING",
        "logger": "x.y",
        "requestId": "r-1",
        "user": "ada@example.org",
        "message": "a c\nb",
        "status_code": 500,
    }


def test_a_traceback_is_part_of_its_line(lines: io.StringIO) -> None:
    try:
        int("no")
    except ValueError:
        logging.getLogger("x").exception("failed")
    (line,) = read(lines, "x")
    assert line["exc_info"].endswith("ValueError: invalid literal for int() with base 10: 'no'")


@pytest.mark.django_db
def test_the_access_log_names_user_tenant_and_duration_but_no_query(
    lines: io.StringIO, settings: Any, world: factories.World
) -> None:
    settings.ACCESS_LOG = True
    member = ApiClient(factories.sign_in(world.member))
    path = f"/config/tenants/{world.tenant.pk}"
    member.get(path, **{"X-Request-Id": "r-2"})
    ApiClient().get("/auth/magic-link/verify%0Ax?t=secret")
    ApiClient().get("/health")
    first, second = read(lines, "tenantadmin.access")
    assert isinstance(first.pop("durationMs"), int)
    assert first.pop("time")
    assert first == {
        "level": "INFO",
        "logger": "tenantadmin.access",
        "requestId": "r-2",
        "user": world.member.email,
        "tenant": str(world.tenant.pk),
        "message": f"GET {path} 200",
        "method": "GET",
        "path": path,
        "status": 200,
    }
    assert (second["path"], second["status"]) == ("/auth/magic-link/verify%0Ax", 404)
    assert "user" not in second
    assert "secret" not in lines.getvalue()


def test_a_task_has_the_id_of_the_request_that_asked_for_it_or_its_own() -> None:
    class Task:
        name = "analytics.tasks.refresh_day"

    for asked_by, expected in (("r-3", "r-3"), ("-", "t-1"), (None, "t-1")):
        task: Any = Task()
        task.request = _Request(request_id=asked_by)
        celery.begin_task(
            task=task, task_id="t-1", args=("11111111-2222-4333-8444-555555555555", "2026-01-01")
        )
        assert current_request_id() == expected
        assert current_description() == {
            "task": "analytics.tasks.refresh_day",
            "tenant": "11111111-2222-4333-8444-555555555555",
        }
    begin_request("r-4")
    headers: dict[str, Any] = {}
    celery.stamp_task(headers=headers)
    assert headers["request_id"] == "r-4"
    clear_description()


class _Request(dict[str, Any]):
    """What Celery's context of a task offers."""

    is_eager = False

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


@pytest.mark.parametrize(("is_json", "formatter"), [(True, "json"), (False, "line")])
def test_the_format_is_chosen(is_json: bool, formatter: str) -> None:
    config = logging_config(level=logging.INFO, is_json=is_json)
    assert config["handlers"]["stderr"]["formatter"] == formatter


@pytest.mark.slow
@pytest.mark.parametrize("command", [["worker", "--pool=solo"], ["beat", "--schedule", "{var}/schedule"]])
def test_workers_and_beat_write_json_too_and_say_that_they_are_alive(
    command: list[str], tmp_path: Path
) -> None:
    """They are stopped when they have written their first line."""
    arguments = [part.format(var=tmp_path) for part in command]
    process = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tenantadmin", "--quiet", *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "LOG_FORMAT": "json",
            "LOG_LEVEL": "DEBUG",
            "VAR_DIR": str(tmp_path),
            # As in `serve`: Celery warns root in lines of its own.
            "PYTHONWARNINGS": CHILD_ENVIRONMENT["PYTHONWARNINGS"],
        },
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    kind = command[0]
    assert process.stderr is not None
    try:
        assert json.loads(process.stderr.readline())["level"]
        probe = [sys.executable, "-m", "tenantadmin.run.alive", kind]
        environment = {**os.environ, "VAR_DIR": str(tmp_path)}
        for line in process.stderr:
            assert json.loads(line)["logger"]
            if subprocess.run(probe, cwd=ROOT, env=environment, check=False).returncode == 0:
                break
        else:
            pytest.fail("the process ended")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_libraries_do_not_say_that_all_is_well(tmp_path: Path) -> None:
    """Each process that opened the store wrote "Found credentials in environment variables"."""
    program = """
import django; django.setup()
import logging, boto3
boto3.client("s3", region_name="x")
logging.getLogger("tenantadmin").info("ours")
"""
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "LOG_FORMAT": "json",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line)["message"] for line in answer.stderr.splitlines()] == ["ours"]


@pytest.mark.parametrize(("error", "has_traceback"), [(RedisError("no space"), False), (KeyError("x"), True)])
def test_the_worker_has_no_traceback_of_a_redis_that_refuses(
    lines: io.StringIO, error: Exception, has_traceback: bool
) -> None:
    logging.getLogger("celery.worker").critical("Unrecoverable error: %r", error, exc_info=error)
    (line,) = read(lines, "celery.worker")
    assert ("exc_info" in line) is has_traceback
    assert line["message"].startswith(f"Unrecoverable error: {error!r}")
    assert line["message"].endswith("no space") is not has_traceback
