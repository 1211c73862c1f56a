"""``manage.py create_bucket`` and the checks of a deployment's servers."""

from __future__ import annotations

import io
from typing import Any

import boto3
import pytest
from django.core.management import CommandError, call_command

from tests.objects import use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures


def run() -> str:
    out = io.StringIO()
    call_command("create_bucket", stdout=out)
    return out.getvalue().strip()


@pytest.mark.usefixtures("s3_url")
def test_a_bucket_is_made_once(settings: Any) -> None:
    use_store(settings, "s3://a-new-bucket/prefix")
    assert run() == "Made the bucket a-new-bucket."
    assert run() == "The bucket a-new-bucket exists."
    boto3.client("s3").delete_bucket(Bucket="a-new-bucket")


def test_a_directory_needs_none() -> None:
    assert run() == "The object store is a directory and needs no bucket."


def test_a_store_that_cannot_be_reached_is_named(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    use_store(settings, "s3://bucket")
    with pytest.raises(CommandError, match="cannot be reached"):
        run()
