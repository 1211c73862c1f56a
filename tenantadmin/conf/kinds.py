"""The kinds of values of environment variables: how to parse and how to describe each. No side effects.

Parsing raises ValueError if the value is not valid, and `BadEntry` if one entry of a list is not valid.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from email.utils import parseaddr
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import environ
import redis.connection
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

from tenantadmin.conf.secrets import is_monotonous, read_public_keys, read_signing_key
from tenantadmin.lib.core.hosts import normalize_fqdn, origin_of
from tenantadmin.lib.objectstore import storage_settings

if TYPE_CHECKING:
    from collections.abc import Callable

_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_HOST: Final = re.compile(r"\*|\.?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9a-fA-F:.]+\]")
#: The mail backend that writes files. A dotted path, so that this module need not import Django's mail.
PRIVATE_FILES: Final = "tenantadmin.mail.PrivateFileBackend"
_PROVIDER: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")


class BadEntry(ValueError):
    """One entry of a list is not valid. ``str()`` returns the entry."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``read`` parses the text. ``expected`` completes the sentence "set it to …"."""

    read: Callable[[str], Any]
    expected: str


def whole(low: int, high: int) -> Kind:
    """Return the kind of whole numbers from ``low`` to ``high``."""

    def read(value: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,20}", value) or not low <= int(value) <= high:
            raise ValueError
        return int(value)

    return Kind(read, f"a number from {low} to {high}")


def seconds(low: float, high: float) -> Kind:
    """Return the kind of durations from ``low`` to ``high`` seconds. Fractions are allowed."""

    def read(value: str) -> float:
        number = float(value)
        if not math.isfinite(number) or not low <= number <= high:
            raise ValueError
        return number

    return Kind(read, f"a number of seconds from {low:g} to {high:g}")


def one_of(*names: str) -> Kind:
    """Return the kind of ``names``, which are upper case. The text may have any case."""

    def read(value: str) -> str:
        if value.upper() not in names:
            raise ValueError
        return value.upper()

    return Kind(read, f"one of {', '.join(names)}")


def list_of(entry: Kind, *, unique: bool = False) -> Kind:
    """Return the kind of lists of any length, separated by commas. If ``unique``, refuse duplicates."""

    def read(value: str) -> list[Any]:
        entries: list[Any] = []
        for text in filter(None, map(str.strip, value.split(","))):
            try:
                entries.append(entry.read(text))
            except ValueError:
                raise BadEntry(text) from None
            if unique and entries[-1] in entries[:-1]:
                raise BadEntry(text)
        return entries

    return Kind(read, f"{entry.expected}; several{', each once,' if unique else ''} with commas in between")


def _checked(check: Callable[[str], Any]) -> Callable[[str], str]:
    """Return a reader that returns the text unchanged. It fails if ``check`` raises or returns False."""

    def read(value: str) -> str:
        if check(value) is False:
            raise ValueError
        return value

    return read


def _read_boolean(value: str) -> bool:
    if value.lower() not in _BOOLEANS:
        raise ValueError
    return _BOOLEANS[value.lower()]


def _read_spark_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "sc" or not parts.hostname or parts.query or parts.fragment:
        raise ValueError
    return value


def _read_web_address(value: str) -> str:
    parts = urlsplit(value)
    if origin_of(value) is None or parts.query or parts.fragment or re.search(r"\s", value):
        raise ValueError
    return value.rstrip("/")


def _read_origin(value: str) -> str:
    if _read_web_address(value).count("/") != 2:
        raise ValueError
    return value.rstrip("/")


def _read_database(value: str) -> dict[str, Any]:
    if urlsplit(value).scheme not in {"postgres", "postgresql", "pgsql", "psql"}:
        raise ValueError
    config: dict[str, Any] = environ.Env.db_url_config(value)
    if not config.get("NAME"):
        raise ValueError
    return config


def _read_redis(value: str) -> str:
    options = redis.connection.parse_url(value)  # type: ignore[no-untyped-call]
    parts = urlsplit(value)
    if not options.get("host") and not options.get("path"):
        raise ValueError
    # redis-py ignores a database that is not a number, but Celery refuses it.
    if parts.scheme != "unix" and not re.fullmatch(r"/?[0-9]*", parts.path):
        raise ValueError
    return value


def _read_mail_server(value: str) -> dict[str, Any]:
    if not value:
        return {}
    if value == "files":
        return {"EMAIL_BACKEND": PRIVATE_FILES}
    try:
        config: dict[str, Any] = environ.Env.email_url_config(value)
    except ImproperlyConfigured:
        raise ValueError from None
    if "smtp" in config["EMAIL_BACKEND"] and not config["EMAIL_HOST"]:
        raise ValueError
    if "filebased" in config["EMAIL_BACKEND"]:
        config["EMAIL_BACKEND"] = PRIVATE_FILES
    return config


def _check_sender(value: str) -> bool:
    try:
        validate_email(re.sub(r"@localhost$", "@localhost.localdomain", parseaddr(value)[1]))
    except ValidationError:
        return False
    return not re.search(r"[\r\n]", value)


def _check_rate_limit(value: str) -> bool:
    # This import takes a fifth of a second, which commands that set no limit should not pay.
    import limits  # noqa: PLC0415

    return bool(limits.parse(value).amount > 0)


def _read_pem(value: str) -> str:
    """Return the PEM with real line breaks. Some tools write a variable on one line, with ``\\n``."""
    return value.replace("\\n", "\n")


def _read_signing_key(value: str) -> str:
    read_signing_key(_read_pem(value))
    return _read_pem(value)


def _read_public_keys(value: str) -> str:
    if not read_public_keys(_read_pem(value)):
        raise ValueError
    return _read_pem(value)


def _read_listening_address(value: str) -> tuple[str, int]:
    host_part, _, port = value.rpartition(":")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\]", host_part):
        raise ValueError
    return host_part.strip("[]"), whole(1, 65535).read(port)


text: Final = Kind(str, "a text")
folder: Final = Kind(lambda value: Path(value).resolve(), "a folder")
boolean: Final = Kind(_read_boolean, "true or false")
host: Final = Kind(
    _checked(lambda value: re.fullmatch(r"[A-Za-z0-9_.:-]+", value) is not None), "a host name or an address"
)
listening_address: Final = Kind(_read_listening_address, "host:port, such as 0.0.0.0:9100")
host_pattern: Final = Kind(
    _checked(lambda value: _HOST.fullmatch(value) is not None),
    "a host name without scheme and port, .example.com for all under it, or *",
)
domain: Final = Kind(
    lambda value: normalize_fqdn(value.removeprefix("@")), "a domain name such as example.com"
)
address: Final = Kind(_checked(ip_address), "an IP address")
network: Final = Kind(
    _checked(lambda value: ip_network(value, strict=False)), "an IP address or a network such as 10.0.0.0/8"
)
spark_address: Final = Kind(
    _read_spark_address, "an address such as sc://spark.example.com:15002/;use_ssl=true"
)
web_address: Final = Kind(_read_web_address, "an address such as https://tenants.example.com")
origin: Final = Kind(_read_origin, "scheme and host, and the port if any, such as https://app.example.com")
database: Final = Kind(_read_database, "postgres://user:password@host:5432/name")
redis_server: Final = Kind(_read_redis, "redis://host:6379/0, rediss://host:6379/0 or unix:///path?db=0")
object_store: Final = Kind(_checked(storage_settings), "file:///directory or s3://bucket/prefix")
mail_server: Final = Kind(
    _read_mail_server,
    "smtp+tls://user:password@host:587, to 'files' for files under VAR_DIR, or to nothing, which turns the "
    "links off",
)
sender: Final = Kind(_checked(_check_sender), "an email address, or 'Name <address>'")
rate_limit: Final = Kind(_checked(_check_rate_limit), "a limit such as '5 per 15 minutes'")
provider: Final = Kind(
    lambda value: _checked(lambda name: _PROVIDER.fullmatch(name) is not None)(value.lower()),
    "google, github, microsoft, or a name of letters, digits and hyphens",
)
signing_key: Final = Kind(
    _read_signing_key,
    "a P-256 private key in PEM (openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)",
)
public_keys: Final = Kind(_read_public_keys, "P-256 public keys in PEM, one after the other")
shared_secret: Final = Kind(
    _checked(lambda value: len(value) >= 32 and not is_monotonous(value)),
    "32 random characters or more (openssl rand -hex 32)",
)
