"""The S3 server of the tests: moto over real HTTP, or another at ``TEST_S3_ENDPOINT`` (decision 13)."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """Return the URL of a running server: ``TEST_S3_ENDPOINT`` if set, else ``http://127.0.0.1:<port>``."""
    if given := os.environ.get("TEST_S3_ENDPOINT"):
        yield given
        return
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line for each request costs time
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_url(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Create a bucket, set the environment to reach it, and return the URL of an empty store in it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    if "TEST_S3_ENDPOINT" not in os.environ:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    bucket = f"logs-{uuid.uuid4()}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    return f"s3://{bucket}/some/prefix"
