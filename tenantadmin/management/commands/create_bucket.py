"""``manage.py create_bucket``: create the bucket of the object store if there is none."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from django.core.management.base import BaseCommand, CommandError

from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.objectstore.s3 import S3Store


class Command(BaseCommand):
    help = "Makes the bucket of OBJECT_STORE_URL if there is none. A store of files needs none."

    def handle(self, **_: Any) -> None:
        store = default_store()
        if not isinstance(store, S3Store):
            self.stdout.write("The object store is a directory and needs no bucket.")
            return
        name = store.bucket_name
        region = store.client.meta.region_name
        # The first region must not be named.
        where: Any = (
            {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        )
        try:
            store.client.head_bucket(Bucket=name)
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"404", "NoSuchBucket"}:
                raise CommandError(f"The bucket {name} cannot be read: {error}") from error
        except BotoCoreError as error:
            raise CommandError(f"The object store cannot be reached: {error}") from error
        else:
            self.stdout.write(f"The bucket {name} exists.")
            return
        try:
            store.client.create_bucket(Bucket=name, **where)
        except (BotoCoreError, ClientError) as error:
            raise CommandError(f"The bucket {name} cannot be made: {error}") from error
        self.stdout.write(f"Made the bucket {name}.")
