"""The files of docs/ci, run as GitHub and GitLab would run them, against the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tenantadmin_client import Client
from tenantadmin_client.files import write_file

if TYPE_CHECKING:
    from tests.clients.programs import Service

pytestmark = [pytest.mark.usefixtures("worker"), pytest.mark.django_db(transaction=True)]

ROOT = Path(__file__).parents[2]
RULE = {"id": "orders", "varyBy": [], "conditions": {"tables": {"containsAny": ["sales.*"]}}}


@pytest.fixture
def checkout(service: Service, tmp_path: Path) -> Path:
    """A folder with rules that add one rule, and with programs in ``bin``."""
    (tmp_path / "rules").mkdir()
    write_file(tmp_path / "rules/shop.yaml", tenant=service.tenant, rules=[RULE])
    programs = {
        "tenantctl": f'exec {sys.executable} -m tenantadmin_client.cli "$@"',
        "python": f'exec {sys.executable} "$@"',
        # `gh pr comment NUMBER --body-file FILE …`
        "gh": 'test "$1 $2 $3 $4" = "pr comment 7 --body-file" && cp "$5" commented.md',
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    return tmp_path


@pytest.fixture
def comments() -> Iterator[tuple[str, list[str]]]:
    """GitLab's API for comments: its address, and what was commented."""
    written: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.path == "/projects/3/merge_requests/7/notes" and self.headers["PRIVATE-TOKEN"] == "t"
            written.append(body["body"] if known else self.path)
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", written
        server.shutdown()


def shell(script: str, checkout: Path, service: Service, **variables: str) -> None:
    environment = {
        **os.environ,
        "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "clients/python/src"),
        "TENANTADMIN_URL": service.url,
        "TENANTADMIN_PAT": service.pat,
        **variables,
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        env=environment,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def live_rules(service: Service) -> list[str]:
    with Client(service.url, service.pat) as client:
        return [rule["id"] for rule in client.rules(service.tenant).body["rules"]]


def test_github_comments_the_plan_and_applies_it(checkout: Path, service: Service) -> None:
    workflow = yaml.safe_load((ROOT / "docs/ci/github.yml").read_text())
    steps = {step["name"]: step["run"] for step in workflow["jobs"]["rules"]["steps"] if "name" in step}
    shell(steps["Plan"].replace("${{ github.event.number }}", "7"), checkout, service)
    comment = (checkout / "commented.md").read_text()
    assert comment.startswith("```\n")
    assert "+ orders" in comment
    assert "the warehouse bills: " in comment
    assert "cheapest hour to publish" in comment
    assert live_rules(service) == []
    shell(steps["Apply"], checkout, service)
    assert live_rules(service) == ["orders"]


def test_gitlab_comments_the_plan_and_applies_it(
    checkout: Path, service: Service, comments: tuple[str, list[str]]
) -> None:
    jobs = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text())
    url, written = comments
    names = {"CI_API_V4_URL": url, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "7", "COMMENT_TOKEN": "t"}
    shell("\n".join(jobs["plan"]["script"]), checkout, service, **names)
    (comment,) = written
    assert "+ orders" in comment
    assert live_rules(service) == []
    shell("\n".join(jobs["apply"]["script"]), checkout, service)
    assert live_rules(service) == ["orders"]
