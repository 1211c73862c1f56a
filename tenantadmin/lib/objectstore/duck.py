"""Access to the object store for DuckDB: local paths need nothing, S3 needs the ``httpfs`` extension."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3
import duckdb

from tenantadmin.lib.objectstore.keys import StoreError
from tenantadmin.lib.objectstore.s3 import S3Store

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore.storage import ObjectStore


def attach_store(connection: duckdb.DuckDBPyConnection, store: ObjectStore) -> None:
    """Let ``connection`` read ``store.uri(key)``. The extension is an installed package, not a download.

    Raises:
        StoreError: there are no credentials for S3.
    """
    if not isinstance(store, S3Store):
        return
    extension = files("duckdb_extension_httpfs") / f"extensions/v{duckdb.__version__}/httpfs.duckdb_extension"
    session = boto3.Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise StoreError("there are no AWS credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    frozen = credentials.get_frozen_credentials()
    endpoint = urlsplit(store.client.meta.endpoint_url)
    options = {
        "TYPE": "s3",
        "KEY_ID": frozen.access_key or "",
        "SECRET": frozen.secret_key or "",
        "SESSION_TOKEN": frozen.token or "",
        "REGION": store.client.meta.region_name,
        "ENDPOINT": endpoint.netloc,
        # Path style works with every S3 store. Virtual hosts need a DNS name for each bucket.
        "URL_STYLE": "path",
        "USE_SSL": "true" if endpoint.scheme == "https" else "false",
    }
    settings = ", ".join(f"{name} {_literal(value)}" for name, value in options.items())
    connection.execute(f"LOAD {_literal(str(extension))}")
    connection.execute(f"CREATE OR REPLACE SECRET object_store ({settings})")


def _literal(value: str) -> str:
    quoted = value.replace("'", "''")
    return f"'{quoted}'"
