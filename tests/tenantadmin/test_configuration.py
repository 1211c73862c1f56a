"""Tests of the configuration: values of the environment, their documentation, and refused unsafe values."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

import manage
from tenantadmin.conf.reading import ConfigurationError, read_configuration
from tenantadmin.conf.secrets import is_weak_secret, kept_secret, new_secret_key, new_signing_key
from tenantadmin.conf.variables import VARIABLES, Variable

ROOT = Path(__file__).resolve().parents[2]
SECRETS = {"DJANGO_SECRET_KEY": new_secret_key(), "JWT_PRIVATE_KEY": new_signing_key()}
PRODUCTION = {"DATABASE_URL": "postgres://db/x", "EMAIL_URL": "", **SECRETS}


def documented() -> dict[str, str]:
    """Return the default that docs/configuration.md gives for each variable."""
    rows = re.findall(
        r"^\| ((?:`[A-Z_]+`(?:, )?)+) \| (.*?) \|", (ROOT / "docs/configuration.md").read_text(), re.MULTILINE
    )
    found: dict[str, str] = {}
    for cell, defaults in rows:
        names = cell.split(", ")
        found.update(
            zip(
                [name.strip("`") for name in names],
                defaults.split(", ") if len(names) > 1 else [defaults],
                strict=True,
            )
        )
    return found


def as_documented(default: Any) -> str:
    """Return how the page writes this default."""
    if default == []:
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, list):
        return f"`{','.join(default)}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def test_the_page_lists_exactly_the_variables_that_are_read() -> None:
    assert sorted(documented()) == sorted(variable.name for variable in VARIABLES)


@pytest.mark.parametrize(
    "variable", [it for it in VARIABLES if it.default is not None], ids=lambda it: it.name
)
def test_the_page_gives_the_default(variable: Variable) -> None:
    given = documented()[variable.name]
    # The page may explain "none" and "0": "none: the system's".
    expected = as_documented(variable.default)
    assert given == expected or (expected in {"none", "`0`"} and given.startswith(f"{expected}: "))


def test_nothing_else_reads_the_environment() -> None:
    """Variables that are no configuration: how processes of ours are told what they are."""
    own = {"TENANTADMIN_SUPERVISED", "DJANGO_SETTINGS_MODULE", "SUDO_UID"}
    # manage.py gives it to what `serve` starts.
    own.add("DJANGO_DEBUG")
    # OpenTelemetry's own.
    own.add("OTEL_EXPORTER_OTLP_ENDPOINT")
    # The settings give it to prometheus_client.
    own.add("PROMETHEUS_MULTIPROC_DIR")
    # The probe reads no settings, so that it takes little time.
    own.add("VAR_DIR")
    apps = ["accounts", "analytics", "logs", "rules", "tenantadmin", "tosapp"]
    files = [file for app in apps for file in (ROOT / app).rglob("*.py")]
    read = {
        name
        for file in [ROOT / "manage.py", *files]
        for name in re.findall(
            r"environ(?:\.get\(|\.setdefault\(|\[)\s*\"([A-Z_]+)\"|getenv\(\"([A-Z_]+)\"", file.read_text()
        )
        for name in name
        if name
    }
    assert read - own == set()


#: Variable, a value that it refuses, and the message after "<variable> is ".
REFUSED = [
    ("TRUSTED_PROXIES", "10.0.0.0/8, nonsense", "'nonsense': set it to an IP address or a network"),
    ("OBJECT_STORE_URL", "/tmp/x", "'/tmp/x': set it to file:///directory or s3://bucket/prefix."),
    ("OBJECT_STORE_URL", "", "empty: set it to file:///directory or s3://bucket/prefix, or remove it."),
    ("REDIS_URL", "foo", "not valid (not shown): set it to redis://host:6379/0, rediss://"),
    ("REDIS_URL", "redis://cache/x", "not valid (not shown): set it to redis://"),
    ("REDIS_URL", "", "empty: set it to redis://"),
    ("DATABASE_URL", "mysql://u:hush@db/x", "not valid (not shown): set it to postgres://user:password@host"),
    ("DATABASE_URL", "postgres://db", "not valid (not shown): set it to postgres://"),
    ("DATABASE_URL", "postgres://db:port/x", "not valid (not shown): set it to postgres://"),
    ("DATABASE_URL", "", "empty: set it to postgres://"),
    ("PUBLIC_BASE_URL", "nonsense", "'nonsense': set it to an address such as https://tenants.example.com."),
    ("PUBLIC_BASE_URL", "https://a.example?x=1", "'https://a.example?x=1': set it to an address"),
    ("DASHBOARD_URL", "//a.example", "'//a.example': set it to an address"),
    ("ALLOWED_REDIRECT_HOSTS", "app.example.com", "'app.example.com': set it to scheme and host"),
    ("ALLOWED_REDIRECT_HOSTS", "https://a.example/x", "'https://a.example/x': set it to scheme and host"),
    ("ALLOWED_HOSTS", "https://a.example", "'https://a.example': set it to a host name without scheme"),
    ("ALLOWED_HOSTS", "a.example:8000", "'a.example:8000': set it to a host name without scheme and port"),
    ("HOST", "http://x", "'http://x': set it to a host name or an address."),
    *(
        ("PORT", port, f"{port!r}: set it to a number from 1 to 65535.")
        for port in ("0", "65536", "-1", "web")
    ),
    ("PORT", "８０００", "'８０００': set it to a number from 1 to 65535."),
    ("BEHIND_TLS_PROXY", "si", "'si': set it to true or false."),
    ("HSTS_SECONDS", "-1", "'-1': set it to a number from 0 to 315360000."),
    ("ACCESS_TOKEN_SECONDS", "0", "'0': set it to a number from 1 to 31536000."),
    ("TOMBSTONE_DAYS", "x", "'x': set it to a number from 1 to 36500."),
    ("PRINCIPAL_CACHE_SECONDS", "60", "'60': set it to a number of seconds from 0 to 5."),
    ("SQL_TIMEOUT_SECONDS", "abc", "'abc': set it to a number of seconds from 0.1 to 3600."),
    ("SQL_TIMEOUT_SECONDS", "nan", "'nan': set it to a number of seconds from 0.1 to 3600."),
    ("SQL_MAX_ROWS", "-5", "'-5': set it to a number from 1 to 1000000000."),
    ("SQL_SERVICE_URL", "sql:8100", "'sql:8100': set it to an address"),
    ("SQL_SPARK_URL", "http://spark:15002", "not valid (not shown): set it to an address such as sc://"),
    ("SQL_SERVICE_SECRET", "hush", "not valid (not shown): set it to 32 random characters or more"),
    ("SQL_SERVICE_SECRET", "x" * 40, "not valid (not shown): set it to 32 random characters or more"),
    ("MAGIC_LINK_EMAIL_LIMIT", "lots", "'lots': set it to a limit such as '5 per 15 minutes'."),
    ("PLATFORM_DOMAINS", "a.example,-bad-", "'-bad-': set it to a domain name such as example.com"),
    ("SIGNIN_EMAIL_DOMAINS", "example", "'example': set it to a domain name such as example.com"),
    ("DNS_NAMESERVERS", "dns.example", "'dns.example': set it to an IP address;"),
    ("EMAIL_URL", "mail.example.com", "not valid (not shown): set it to smtp+tls://"),
    ("EMAIL_URL", "smtp+tls://", "not valid (not shown): set it to smtp+tls://"),
    ("EMAIL_FROM", "nobody", "'nobody': set it to an email address, or 'Name <address>'."),
    ("JWT_PRIVATE_KEY", "hush", "not valid (not shown): set it to a P-256 private key in PEM"),
    ("JWT_PREVIOUS_PUBLIC_KEYS", "hush", "not valid (not shown): set it to P-256 public keys in PEM"),
    ("LOG_LEVEL", "LOUD", "'LOUD': set it to one of DEBUG, INFO, WARNING, ERROR, CRITICAL."),
]


@pytest.mark.parametrize(("name", "value", "said"), REFUSED)
def test_a_bad_value_is_refused_with_its_name_and_the_cure(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_configuration({"DJANGO_DEBUG": "true", name: value})
    assert [problem[: len(f"{name} is {said}")] for problem in caught.value.problems] == [f"{name} is {said}"]
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("PORT", " 80 ", 80),
        ("PORT", "", 8000),
        ("HOST", "::", "::"),
        ("DJANGO_DEBUG", "Off", False),
        ("PUBLIC_BASE_URL", "https://a.example/x/", "https://a.example/x"),
        (
            "ALLOWED_REDIRECT_HOSTS",
            "https://a.example/, http://localhost:3000",
            ["https://a.example", "http://localhost:3000"],
        ),
        (
            "ALLOWED_HOSTS",
            "a.example,.b.example,*,[::1],10.0.0.1",
            ["a.example", ".b.example", "*", "[::1]", "10.0.0.1"],
        ),
        ("TRUSTED_PROXIES", "10.0.0.0/8, 192.168.1.7,", ["10.0.0.0/8", "192.168.1.7"]),
        ("PLATFORM_DOMAINS", "", []),
        ("PLATFORM_DOMAINS", "Gateway.Example", ["gateway.example"]),
        ("SIGNIN_EMAIL_DOMAINS", "@Example.com", ["example.com"]),
        ("REDIS_URL", "rediss://:secret@host:6379/3", "rediss://:secret@host:6379/3"),
        ("REDIS_URL", "unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("EMAIL_URL", "", {}),
        ("EMAIL_FROM", "Ops <ops@example.com>", "Ops <ops@example.com>"),
        ("LOG_LEVEL", "warning", "WARNING"),
        ("SQL_TIMEOUT_SECONDS", "2.5", 2.5),
        ("SQL_SERVICE_URL", "", None),
    ],
)
def test_a_valid_value_is_read(name: str, text: str, value: Any) -> None:
    assert read_configuration({**PRODUCTION, name: text})[name] == value


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda it: it.name)
def test_a_default_is_valid(variable: Variable) -> None:
    if variable.default is not None:
        text = ",".join(variable.default) if isinstance(variable.default, list) else str(variable.default)
        assert variable.kind.read(text) == variable.default


def test_a_key_may_be_written_on_one_line() -> None:
    key = new_signing_key()
    assert (
        read_configuration({**PRODUCTION, "JWT_PRIVATE_KEY": key.replace("\n", "\\n")})["JWT_PRIVATE_KEY"]
        == key
    )


def test_an_sql_service_needs_the_secret() -> None:
    with pytest.raises(ConfigurationError, match=r"^SQL_SERVICE_SECRET is missing\."):
        read_configuration({**PRODUCTION, "SQL_SERVICE_URL": "http://sql:8100"})


def test_development_is_off_by_default() -> None:
    without_database = {name: value for name, value in PRODUCTION.items() if name != "DATABASE_URL"}
    assert read_configuration(without_database)["DJANGO_DEBUG"] is False
    assert read_configuration({"DJANGO_DEBUG": "true"})["DJANGO_DEBUG"] is True
    with pytest.raises(ConfigurationError, match=r"^DJANGO_SECRET_KEY is missing"):
        read_configuration({})


@pytest.mark.parametrize(
    ("environ", "is_development"),
    [
        ({}, True),
        ({"DJANGO_DEBUG": "false"}, False),
        ({"DATABASE_URL": "postgres://db/x"}, False),
        ({"PUBLIC_BASE_URL": "https://tenants.example.com"}, False),
        ({"DJANGO_SECRET_KEY": "x"}, False),
    ],
)
def test_serve_is_in_development_if_no_variable_of_a_deployment_is_set(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], is_development: bool
) -> None:
    for name in ("DJANGO_DEBUG", *manage.DEPLOYMENT):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    def read(environ: Any) -> NoReturn:
        raise ConfigurationError([environ.get("DJANGO_DEBUG", "false")])

    monkeypatch.setattr(manage, "read_configuration", read)
    with pytest.raises(ConfigurationError) as caught:
        manage.main(["manage.py", "serve"])
    assert caught.value.problems == ["true" if is_development else "false"]
    monkeypatch.delenv("DJANGO_DEBUG", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        manage.main(["manage.py", "migrate"])
    assert caught.value.problems == ["false"]


def test_production_needs_a_mail_setting() -> None:
    without_mail = {name: value for name, value in PRODUCTION.items() if name != "EMAIL_URL"}
    with pytest.raises(ConfigurationError, match=r"^EMAIL_URL is missing\. Set it to smtp"):
        read_configuration(without_mail)
    for told in ("files", "", "smtp://mail.example.com"):
        read_configuration({**without_mail, "EMAIL_URL": told})
    assert read_configuration({"DJANGO_DEBUG": "true"})["EMAIL_URL"] is None


@pytest.mark.parametrize("address", ["files", "filemail:///tmp/mail"])
def test_mails_in_files_are_private(address: str) -> None:
    read = read_configuration({**PRODUCTION, "EMAIL_URL": address})["EMAIL_URL"]
    assert read["EMAIL_BACKEND"] == "tenantadmin.mail.PrivateFileBackend"


def test_all_problems_are_reported_at_once() -> None:
    started = check(PORT="web", TRUSTED_PROXIES="nonsense", SIGNIN_PROVIDERS="google")
    assert started.returncode == 1
    assert started.stdout == ""
    assert started.stderr.splitlines() == [
        "manage.py: PORT is 'web': set it to a number from 1 to 65535.",
        (
            "manage.py: TRUSTED_PROXIES is 'nonsense': set it to an IP address or a network such as "
            "10.0.0.0/8; several with commas in between."
        ),
        "manage.py: SIGNIN_GOOGLE_CLIENT_ID is missing: the identity provider 'google' needs it.",
        "manage.py: SIGNIN_GOOGLE_CLIENT_SECRET is missing: the identity provider 'google' needs it.",
        (
            "manage.py: DJANGO_SECRET_KEY is missing, short, repetitive or a known default. "
            "Set it to 50 random characters or more; on a development machine set DJANGO_DEBUG=true instead."
        ),
        (
            "manage.py: JWT_PRIVATE_KEY is missing. Set it to a P-256 private key in PEM "
            "(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)."
        ),
        (
            "manage.py: EMAIL_URL is missing. Set it to smtp+tls://user:password@host:587, to nothing to "
            "turn sign-in links off, or to 'files' to write mails to files under VAR_DIR."
        ),
    ]


def check(**environ: str) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py check`` as in production, with only ``environ`` set."""
    base = {"PATH": os.environ["PATH"], "VAR_DIR": os.environ["VAR_DIR"]}
    return subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**base, "DATABASE_URL": "postgres://db/x", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "secret",
    ["", "short", "x" * 60, "abab" * 20, "django-insecure-" + "xyz123" * 10, "change-me" + "xyz123" * 10],
)
def test_production_refuses_a_missing_or_known_secret(secret: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^DJANGO_SECRET_KEY is missing, short, repetitive"):
        read_configuration({**PRODUCTION, "DJANGO_SECRET_KEY": secret})


def test_production_refuses_a_missing_signing_key() -> None:
    with pytest.raises(ConfigurationError, match=r"^JWT_PRIVATE_KEY is missing\."):
        read_configuration({**PRODUCTION, "JWT_PRIVATE_KEY": ""})


def test_production_starts_with_both() -> None:
    started = check(**SECRETS, EMAIL_URL="")
    assert started.returncode == 0, started.stderr


def test_a_generated_secret_is_strong() -> None:
    assert not is_weak_secret(new_secret_key())


def test_concurrent_callers_get_the_same_secret(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "django.key"
    with ThreadPoolExecutor(8) as pool:
        values = set(pool.map(lambda _: kept_secret(path, new_secret_key), range(64)))
    assert values == {path.read_text()}
    assert [entry.name for entry in path.parent.iterdir()] == ["django.key"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    secret, other = tmp_path / "secret", tmp_path / "other"
    secret.write_text(f"{'abcdefgh' * 8}\n")
    other.write_text("hush\n")
    environ = {
        "DJANGO_DEBUG": "true",
        "DJANGO_SECRET_KEY_FILE": str(secret),
        "SIGNIN_PROVIDERS": "google",
        "SIGNIN_GOOGLE_CLIENT_ID": "id",
        "SIGNIN_GOOGLE_CLIENT_SECRET_FILE": str(other),
        "PORT_FILE": str(other),  # no secret, so nobody reads it
    }
    values = read_configuration(environ)
    assert values["DJANGO_SECRET_KEY"] == "abcdefgh" * 8
    assert values["PORT"] == 8000
    assert "hush" in str(values["SOCIALACCOUNT_PROVIDERS"])


def test_a_secret_comes_from_one_place_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError) as failed:
        read_configuration(
            {
                "DJANGO_DEBUG": "true",
                "REDIS_URL": "redis://localhost/0",
                "REDIS_URL_FILE": "/nowhere",
                "EMAIL_URL_FILE": "/nowhere",
                "DATABASE_URL_FILE": str(tmp_path / "binary"),
            }
        )
    assert failed.value.problems == [
        "REDIS_URL and REDIS_URL_FILE are both set: remove one of them.",
        "EMAIL_URL_FILE is '/nowhere' and cannot be read (No such file or directory): name a text file.",
        f"DATABASE_URL_FILE is '{tmp_path}/binary' and cannot be read (it is not a text): name a text file.",
    ]
