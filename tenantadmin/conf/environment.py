"""Read environment variables with environs, and report all errors together. No side effects.

``SIGNIN_PROVIDERS`` names them in order, for example ``corp,google``. Each needs
``SIGNIN_<NAME>_CLIENT_ID`` and ``SIGNIN_<NAME>_CLIENT_SECRET``. ``google``, ``github`` and ``microsoft`` are
built in. Any other name is an OpenID Connect provider, which also needs ``SIGNIN_<NAME>_ISSUER``. Microsoft
also needs ``SIGNIN_MICROSOFT_TENANT``: an email address counts as verified only if this is one directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from email.utils import parseaddr
from functools import partial
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import psycopg
import redis.connection
from django.core.exceptions import ImproperlyConfigured
from django.core.exceptions import ValidationError as InvalidEmail
from django.core.validators import validate_email
from environs import FileAwareEnv, ValidationError, validate
from psycopg.conninfo import conninfo_to_dict

from tenantadmin.conf.secrets import is_monotonous, is_weak_secret, read_public_keys, read_signing_key
from tenantadmin.lib.core.hosts import normalize_fqdn, origin_of
from tenantadmin.lib.objectstore import storage_settings

if TYPE_CHECKING:
    #: Returns the value of a text, or raises ValueError.
    Reader = Callable[[str], Any]
    Parser = Callable[..., Any]


def _one(read: Reader, expected: str) -> Parser:
    """Return a parser of one value. An empty text stays empty, unless the variable is ``required``."""

    def parse(text: str, *, required: bool = False) -> Any:
        if text == "" and not required:
            return ""
        try:
            return read(text)
        except ValueError:
            raise ValidationError(f"Set it to {expected}.") from None

    return parse


def _several(read: Reader, expected: str, *, unique: bool = False) -> Parser:
    """Return a parser of a list whose entries are separated by commas, each once if ``unique``."""

    def parse(text: str) -> list[Any]:
        entries: list[Any] = []
        for entry in filter(None, map(str.strip, text.split(","))):
            try:
                entries.append(read(entry))
            except ValueError:
                message = f"{entry!r} is not {expected}. Separate several by commas."
                raise ValidationError(message) from None
        if unique and len({*entries}) < len(entries):
            raise ValidationError("Name each once.")
        return entries

    return parse


def _checked(check: Callable[[str], Any]) -> Reader:
    """Return a reader that returns the text itself, unless ``check`` raises ValueError or returns nothing."""

    def read(text: str) -> str:
        if not check(text):
            raise ValueError
        return text

    return read


def _matching(pattern: str) -> Reader:
    return _checked(re.compile(pattern).fullmatch)


def _read_web_address(text: str) -> str:
    parts = urlsplit(text)
    if origin_of(text) is None or parts.query or parts.fragment or re.search(r"\s", text):
        raise ValueError
    return text.rstrip("/")


def _read_origin(text: str) -> str:
    origin = _read_web_address(text)
    if origin.count("/") != 2:
        raise ValueError
    return origin


def _read_listening_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\]", host) or not 0 < int(port) < 1 << 16:
        raise ValueError
    return host.strip("[]"), int(port)


def _read_host_or_network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        name: str = _matching(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")(text.lower())
        return name


def _is_alert_receiver(text: str) -> bool:
    if "://" in text:
        parts = urlsplit(text)
        return parts.scheme == "https" and bool(parts.hostname) and re.fullmatch(r"[!-~]+", text) is not None
    return parseaddr(text)[1] == text and _is_sender(text)


def read_database(text: str) -> dict[str, Any]:
    """Return an entry of ``DATABASES`` without its ENGINE. Parameters of the query are OPTIONS.

    Raises:
        ValueError: it is no address of PostgreSQL, or has no name of a database.
    """
    try:
        options: dict[str, Any] = conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        raise ValueError from None
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    entry = {django_name: options.pop(name, "") for name, django_name in names.items()}
    if not entry["NAME"] or not re.fullmatch(r"[0-9,]*", entry["PORT"]):
        raise ValueError
    return {**entry, "OPTIONS": options}


def _is_redis(text: str) -> bool:
    options = redis.connection.parse_url(text)  # type: ignore[no-untyped-call]
    parts = urlsplit(text)
    # redis-py ignores a database that is not a number, but Celery refuses it.
    has_database = parts.scheme == "unix" or re.fullmatch(r"/?[0-9]*", parts.path) is not None
    return has_database and bool(options.get("host") or options.get("path"))


def _is_spark(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme == "sc" and bool(parts.hostname) and not (parts.query or parts.fragment)


def _read_mail_server(text: str | None) -> str:
    parts = urlsplit(text or "")
    is_server = parts.scheme in {"smtp", "smtps", "smtp+tls", "smtp+ssl"} and parts.hostname
    if text is None or parts.port == 0 or not (is_server or text == "files"):
        raise ValueError
    return text


def _is_sender(text: str) -> bool:
    try:
        validate_email(re.sub(r"@localhost$", "@localhost.localdomain", parseaddr(text)[1]))
    except InvalidEmail:
        return False
    return not re.search(r"[\r\n]", text)


def _read_pem(check: Callable[[str], Any], text: str) -> str:
    """Return the PEM with real line breaks. Some tools write a variable on one line, with ``\\n``."""
    pem = text.replace("\\n", "\n")
    if not check(pem):
        raise ValueError
    return pem


#: Methods of `Environment` by name.
PARSERS: Final[dict[str, Parser]] = {
    "web_address": _one(_read_web_address, "an address such as https://tenants.example.com"),
    "origins": _several(
        _read_origin, "scheme and host, and the port if any, such as https://app.example.com"
    ),
    "host": _one(_matching(r"[A-Za-z0-9_.:-]+"), "a host name or an address"),
    "host_patterns": _several(
        _matching(r"\*|\.?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9a-fA-F:.]+\]"),
        "a host name without scheme and port, .example.com for all under it, or *",
    ),
    "listening_address": _one(_read_listening_address, "host:port, such as 0.0.0.0:9100"),
    "domains": _several(
        lambda text: normalize_fqdn(text.removeprefix("@")), "a domain name such as example.com"
    ),
    "addresses": _several(_checked(ip_address), "an IP address"),
    "networks": _several(
        _checked(partial(ip_network, strict=False)), "an IP address or a network such as 10.0.0.0/8"
    ),
    "hosts_and_networks": _several(
        _read_host_or_network, "a host name, an IP address or a network such as 10.0.0.0/8"
    ),
    "alert_receivers": _several(
        _checked(_is_alert_receiver), "an email address or a URL that begins with https://"
    ),
    "database": _one(read_database, "postgres://user:password@host:5432/name"),
    "redis_server": _one(
        _checked(_is_redis), "redis://host:6379/0, rediss://host:6379/0 or unix:///path?db=0"
    ),
    "object_store": _one(_checked(storage_settings), "file:///directory or s3://bucket/prefix"),
    "spark_address": _one(
        _checked(_is_spark), "an address such as sc://spark.example.com:15002/;use_ssl=true"
    ),
    "mail_server": _one(
        _read_mail_server,
        "smtp+tls://user:password@host:587, to 'files' for files under VAR_DIR, or to nothing, which turns "
        "the links off",
    ),
    "sender": _one(_checked(_is_sender), "an email address, or 'Name <address>'"),
    "providers": _several(
        lambda text: _matching(r"[a-z][a-z0-9-]{0,30}")(text.lower()),
        "google, github, microsoft, or a name of letters, digits and hyphens",
        unique=True,
    ),
    "provider_option": _one(
        _checked(bool), "what the identity provider gave you, or remove the provider from SIGNIN_PROVIDERS"
    ),
    "secret_key": _one(
        _checked(lambda text: not is_weak_secret(text)),
        "50 random characters or more; on a development machine, set DJANGO_DEBUG=true instead",
    ),
    "signing_key": _one(
        partial(_read_pem, read_signing_key),
        "a P-256 private key in PEM (openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)",
    ),
    "public_keys": _one(
        partial(_read_pem, read_public_keys), "P-256 public keys in PEM, one after the other"
    ),
    "shared_secret": _one(
        _checked(lambda text: len(text) >= 32 and not is_monotonous(text)),
        "32 random characters or more, the same for the SQL service and its callers (openssl rand -hex 32)",
    ),
    "log_format": _one(lambda text: _matching("json|text")(text.lower()), "json or text"),
}


def check_rate_limit(text: str) -> None:
    """Raise ValidationError unless this is a limit such as ``5 per 15 minutes``."""
    # This import takes half a second, which commands that set no limit should not pay.
    import limits  # noqa: PLC0415

    try:
        is_valid = limits.parse(text).amount > 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValidationError("Set it to a limit such as '5 per 15 minutes'.")


#: Validates numbers: `Range(low, high)`.
Range = validate.Range

#: Any other variable counts as not set if it is empty.
_MAY_BE_EMPTY: Final = {"DATABASE_URL", "EMAIL_URL", "OBJECT_STORE_URL", "PLATFORM_DOMAINS", "REDIS_URL"}


class ConfigurationError(ImproperlyConfigured):
    """The environment is not valid. ``problems`` has a line for each variable. No secret is in it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Environment(FileAwareEnv):
    """The environment. ``NAME_FILE`` may name a file with the value of ``NAME``.

    If a value is not valid, its method returns None, and `seal` raises ConfigurationError with all errors. So
    compute nothing from values before `seal`.
    """

    def __init__(self) -> None:
        super().__init__(eager=False)
        for name, parser in PARSERS.items():
            self.add_parser(name, parser)

    def seal(self) -> None:
        if self._errors:
            raise ConfigurationError(
                [f"{name}: {' '.join(messages)}" for name, messages in self._errors.items()]
            )
        super().seal()

    def _get_value(self, env_key: str, default: Any) -> Any:
        file_key = f"{env_key}_FILE"
        if os.environ.get(file_key) and os.environ.get(env_key):
            self._errors[env_key].append(f"{file_key} is set too. Remove one of them.")
        try:
            value = super()._get_value(env_key, default)
        except (OSError, ValueError):
            # The message of a UnicodeDecodeError has bytes of the file.
            self._errors[env_key].append(f"{file_key} does not name a text file that can be read.")
            return default
        text = value.strip() if isinstance(value, str) else value
        return default if text == "" and env_key not in _MAY_BE_EMPTY else text


_SHARED_DIRECTORIES: Final = frozenset({"common", "organizations", "consumers"})

#: What people call the known providers.
_NAMES: Final = {"google": "Google", "github": "GitHub", "microsoft": "Microsoft"}

_SCOPES: Final = {
    "google": ["openid", "profile", "email"],
    "github": ["read:user", "user:email"],
    "microsoft": ["User.Read"],
}


def read_providers(names: Sequence[str], env: Environment) -> dict[str, Any]:
    """Return ``SOCIALACCOUNT_PROVIDERS`` for ``names``. A missing variable is an error of ``env``."""
    providers: dict[str, Any] = {}
    for name in names:
        kind = name if name in _SCOPES else "openid_connect"
        prefix = f"SIGNIN_{name.upper().replace('-', '_')}_"
        app = {
            "provider_id": name,
            "name": _NAMES.get(name, name),
            "client_id": env.provider_option(f"{prefix}CLIENT_ID", "", required=True),
            "secret": env.provider_option(f"{prefix}CLIENT_SECRET", "", required=True),
            "settings": {},
        }
        if kind == "openid_connect":
            issuer = env.web_address(f"{prefix}ISSUER", "", required=True)
            app["settings"] = {"server_url": issuer, "oauth_pkce_enabled": True}
            if env.bool(f"{prefix}TRUST_EMAIL", False):
                app["settings"]["verified_email"] = True
        if kind == "microsoft":
            directory = env.provider_option(f"{prefix}TENANT", "", required=True)
            app["settings"] = {"tenant": directory, "verified_email": directory not in _SHARED_DIRECTORIES}
        provider = providers.setdefault(kind, {"APPS": [], "OAUTH_PKCE_ENABLED": True})
        provider["APPS"].append(app)
        if kind in _SCOPES:
            provider["SCOPE"] = _SCOPES[kind]
    return providers
