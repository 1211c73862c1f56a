"""Read the connection to a warehouse from text that its tools show: a URL, a JDBC string, libpq's keywords.

Contract: TenantConfig (`warehouse`). Credentials in the text are never returned, nor repeated in errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import psycopg
from msgspec import Meta
from psycopg.conninfo import conninfo_to_dict

from tenantadmin.lib.core.errors import Detail, ValidationFailed
from tenantadmin.lib.core.hosts import normalize_fqdn
from tenantadmin.lib.core.structs import JsonStruct, one_of

_SECRET_PATTERNS: Final = re.compile(
    r"""
      -----BEGIN                              # PEM
    | \beyJ[A-Za-z0-9_-]{8,}\.                # a JWT
    | \b(dapi|dkea)[0-9a-f]{16,}              # Databricks
    | \b(gh[pousr]_|github_pat_|glpat-|xox[abposr]-|sk-|sk_live_|npg_)[A-Za-z0-9_-]{8,}
    | \b(AKIA|ASIA)[A-Z0-9]{16}\b             # AWS key ids
    | \bAIza[A-Za-z0-9_-]{20,}                # Google API keys
    | \btas_(pat|refresh)_                    # this service's own
    | ://[^/\s:@]+:[^/\s@]+@                  # a URL with a password
    | (?i:\b(password|passwd|pwd)\s*[=:]\s*\S)
    | (?i:\b(secret|token|api[_-]?key|access[_-]?key)\s*=\s*\S)
    """,
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[A-Za-z0-9+]{24,}={0,2}")
_HEX: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")


def looks_like_secret(text: str) -> bool:
    """Return True if ``text`` looks like a credential, not like the name of one.

    Patterns find known token formats, assignments and URLs with a password. Other credentials are found as
    long runs of mixed letters and digits, which names of hosts and of secret store entries do not have.
    """
    if _SECRET_PATTERNS.search(text):
        return True
    return any(_looks_random(word) for word in _WORD.findall(text))


def _looks_random(word: str) -> bool:
    if _HEX.fullmatch(word):
        return len(word) >= 32 and any(character.isdigit() for character in word)
    kinds = (str.isdigit, str.islower, str.isupper)
    return all(any(kind(character) for character in word) for kind in kinds)


ADAPTER_TYPES: Final = ("databricks", "snowflake", "postgresql")
_ADAPTERS: Final[Mapping[str, str]] = {
    "databricks": "databricks",
    "spark": "databricks",
    "snowflake": "snowflake",
    "postgres": "postgresql",
    "postgresql": "postgresql",
}
#: Hosts that only one kind of warehouse has.
_HOSTS: Final[Mapping[str, str]] = {
    "databricks.com": "databricks",
    "azuredatabricks.net": "databricks",
    "databricks.azure.cn": "databricks",
    "databricks.azure.us": "databricks",
    "databricks.us": "databricks",
    "snowflakecomputing.com": "snowflake",
    "snowflakecomputing.cn": "snowflake",
    "app.snowflake.com": "snowflake",
}
_SNOWFLAKE: Final = "snowflakecomputing.com"
_KEYWORDS: Final = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|sslmode|options)\s*=", re.ASCII)
#: The last part is the cloud: xy12345, xy12345.us-east-1, xy12345.east-us-2.azure.privatelink.
_ACCOUNT: Final = re.compile(
    r"([a-z0-9_-]+)((?:\.[a-z]+(?:-[a-z0-9]+)+)?)((?:\.(?:aws|azure|gcp))?(?:\.privatelink)?)", re.IGNORECASE
)
_REGION: Final = re.compile(r"[a-z]+(-[a-z0-9]+)+(\.(aws|azure|gcp))?", re.IGNORECASE)
#: The page of a SQL warehouse in Databricks, with its id.
_WAREHOUSE_PAGE: Final = re.compile(r"/sql/(?:warehouses|endpoints)/([0-9a-z]+)(?:/.*)?")
_HTTP_PATH: Final = re.compile(r"/?sql/(?:1\.0/(?:warehouses|endpoints)|protocolv1/o)/[\w./-]+")
#: Hosts of Databricks that are no workspace, by their first label.
_NO_WORKSPACE: Final = frozenset({"accounts", "community", "docs", "login", "www"})

#: Hosts of PostgreSQL in a local network: one label, or an IP address.
_LOCAL_HOST: Final = re.compile(
    r"[a-z0-9]([a-z0-9-]*[a-z0-9])?|[0-9.]+|[0-9a-f:.]*:[0-9a-f:.]*", re.IGNORECASE
)

_HELP: Final = (
    "Give the address that the warehouse's own tools show: a URL, a JDBC string, or 'host=… port=… dbname=…'."
)


class WarehouseConnection(JsonStruct):
    """A connection, as `warehouse` of a tenant's configuration takes it. Never a credential."""

    adapter_type: Annotated[str, one_of(ADAPTER_TYPES)]
    server_hostname: str
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    http_path: str | None = None
    database: str | None = None
    schema: str | None = None
    warehouse_name: str | None = None


def parse_warehouse(text: str) -> WarehouseConnection:
    """Return the connection that ``text`` describes, without its credentials.

    Raises:
        ValidationFailed: it describes none, or a part of it looks like a credential in the wrong place.
    """
    text = text.strip()
    found = _from_keywords(text) if _KEYWORDS.match(text) else _from_url(text)
    for value in (found.http_path, found.database, found.schema, found.warehouse_name):
        if value is not None and looks_like_secret(value):
            raise _refusal("A part of the address looks like a credential. Remove it.")
    return found


def _from_keywords(text: str) -> WarehouseConnection:
    """Read libpq's ``host=… dbname=…``."""
    try:
        keywords = conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        raise _refusal(_HELP) from None
    host, port = keywords.get("host") or keywords.get("hostaddr"), keywords.get("port")
    return WarehouseConnection(
        adapter_type="postgresql",
        server_hostname=_host(str(host or ""), may_be_local=True),
        port=_port(None if port is None else str(port)),
        database=_text(keywords.get("dbname")),
    )


def _from_url(text: str) -> WarehouseConnection:
    text = re.sub(r"^jdbc:", "", text, flags=re.IGNORECASE)
    if "://" not in text:
        text = f"https://{text}"
    # JDBC drivers of Databricks separate their parameters by semicolons.
    address, *pairs = text.split(";")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", _port(None if parts.port is None else str(parts.port))
    except ValueError:
        raise _refusal(_HELP) from None
    if "@" in parts.path + parts.query + parts.fragment:
        raise _refusal("The password has a character that must be percent-encoded. Remove user and password.")
    options = {name.lower(): value for name, value in parse_qsl(parts.query)}
    options |= {name.strip().lower(): value for name, _, value in (pair.partition("=") for pair in pairs)}
    scheme = parts.scheme.partition("+")[0]
    adapter = _ADAPTERS.get(scheme)
    if adapter is None and scheme in {"http", "https"}:
        adapter = next((kind for suffix, kind in _HOSTS.items() if f".{host}".endswith(f".{suffix}")), None)
    if adapter is None:
        raise _refusal(f"This is no address of Databricks, Snowflake or PostgreSQL. {_HELP}")
    names = _names(parts)
    # The path of a page names no database.
    own = [] if scheme in {"http", "https"} else names
    if adapter == "databricks":
        return _databricks(parts, _host(host), port, options, names=own)
    if adapter == "snowflake":
        if host == "app.snowflake.com":
            host = _of_page(names)
        return _snowflake(host, port, options, names=own)
    return WarehouseConnection(
        adapter_type="postgresql",
        server_hostname=_host(host or options.get("host", ""), may_be_local=True),
        port=port or _port(options.get("port")),
        database=names[0] if names else _text(options.get("dbname")),
        schema=_text(options.get("currentschema")),
    )


def _databricks(
    parts: SplitResult, host: str, port: int | None, options: Mapping[str, str], *, names: list[str]
) -> WarehouseConnection:
    if host.partition(".")[0] in _NO_WORKSPACE:
        raise _refusal("This is no workspace of Databricks. Give the address of the workspace.")
    page = _WAREHOUSE_PAGE.fullmatch(parts.path)
    path = options.get("httppath") or options.get("http_path")
    if page is not None:
        path = f"/sql/1.0/warehouses/{page[1]}"
    elif path is None and _HTTP_PATH.fullmatch(parts.path):
        path = parts.path
    if _HTTP_PATH.match(parts.path):
        names = []
    return WarehouseConnection(
        adapter_type="databricks",
        server_hostname=host,
        port=port,
        http_path=_text(path),
        database=_text(options.get("conncatalog") or options.get("catalog")),
        schema=_text(options.get("connschema") or options.get("schema") or (names[0] if names else None)),
    )


def _of_page(names: list[str]) -> str:
    """Return the account of a page of Snowflake: ``/<organization or region>/<account>/…``."""
    if len(names) > 1 and _REGION.fullmatch(names[0]):
        return f"{names[1]}.{names[0]}"
    # The name of an organization has letters and digits alone. /console/login is of no account.
    if len(names) > 1 and names[0].isalnum() and names[0] != "console":
        return f"{names[0]}-{names[1]}"
    raise _refusal("Give the address of the account: https://app.snowflake.com/<organization>/<account>.")


def _snowflake(
    host: str, port: int | None, options: Mapping[str, str], *, names: list[str]
) -> WarehouseConnection:
    if found := _ACCOUNT.fullmatch(host):
        # SQLAlchemy's URLs name the account and its region alone. One region has no name in hosts.
        region = "" if found[2].lower() == ".us-west-2" else found[2]
        top = "snowflakecomputing.cn" if region.lower().startswith(".cn-") else _SNOWFLAKE
        host = f"{found[1]}{region}{found[3] if region or 'privatelink' in found[3] else ''}.{top}"
    return WarehouseConnection(
        adapter_type="snowflake",
        server_hostname=_host(host.replace("_", "-")),
        port=port,
        database=_text(options.get("db") or options.get("database") or (names[0] if names else None)),
        schema=_text(options.get("schema") or (names[1] if len(names) > 1 else None)),
        warehouse_name=_text(options.get("warehouse")),
    )


def _names(parts: SplitResult) -> list[str]:
    return [unquote(name) for name in parts.path.split("/") if name]


def _host(name: str, *, may_be_local: bool = False) -> str:
    if may_be_local and _LOCAL_HOST.fullmatch(name):
        return name.lower()
    try:
        return normalize_fqdn(name)
    except ValueError:
        raise _refusal(f"The address names no host. {_HELP}") from None


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise _refusal("The port is a number from 1 to 65535.")
    return int(text)


def _text(value: object) -> str | None:
    return str(value) if value else None


def _refusal(message: str) -> ValidationFailed:
    return ValidationFailed(message, details=[Detail("/text", "invalid-warehouse", message)])
