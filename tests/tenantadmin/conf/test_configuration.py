"""Tests of the configuration: values of the environment, their documentation, and refused unsafe values."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

import manage
from tenantadmin.conf.environment import ConfigurationError
from tenantadmin.conf.secrets import ensure_secret, is_weak_secret, new_secret_key, new_signing_key
from tests.environment import PRODUCTION, ROOT, SECRETS, environment, read_settings, read_variables

#: Variables whose default depends on other variables or on the machine.
DERIVED = {
    "DATABASE_URL",
    "REDIS_URL",
    "OBJECT_STORE_URL",
    "STATIC_ROOT",
    "VAR_DIR",
    "PUBLIC_BASE_URL",
    "DASHBOARD_URL",
    "ALLOWED_HOSTS",
    "DJANGO_SECRET_KEY",
    "JWT_PRIVATE_KEY",
    "EMAIL_URL",
    "STAFF_SECOND_FACTOR",
    "LOG_SWEEP_SECONDS",
    "LOG_FORMAT",
    "ACCESS_LOG",
}


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


def as_documented(name: str, default: Any) -> str:
    """Return how the page writes this default."""
    if default in ("", []):
        return "none"
    if name == "LOG_LEVEL":
        return f"`{logging.getLevelName(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, list):
        return f"`{','.join(default)}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def test_the_page_lists_exactly_the_variables_that_are_read() -> None:
    assert sorted(documented()) == sorted(read_variables({"DJANGO_DEBUG": "true"}))


def test_the_page_gives_the_defaults() -> None:
    given = documented()
    for name, default in read_variables(PRODUCTION).items():
        # The page may explain "none" and "0": "none: the system's".
        expected = as_documented(name, default)
        assert name in DERIVED or given[name].partition(": ")[0] == expected, name


def test_nothing_else_reads_the_environment() -> None:
    """Internal variables that manage.py passes to its child processes."""
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


#: Variable, a value that it refuses, and how the message goes on after the variable.
REFUSED = [
    ("TRUSTED_PROXIES", "10.0.0.0/8, nonsense", "'nonsense' is not an IP address or a network"),
    ("OBJECT_STORE_URL", "/tmp/x", "Set it to file:///directory or s3://bucket/prefix."),
    ("OBJECT_STORE_URL", "", "Set it to file:///directory or s3://bucket/prefix."),
    ("REDIS_URL", "foo", "Set it to redis://host:6379/0, rediss://"),
    ("REDIS_URL", "redis://cache/x", "Set it to redis://"),
    ("REDIS_URL", "", "Set it to redis://"),
    ("DATABASE_URL", "mysql://u:hush@db/x", "Set it to postgres://user:password@host"),
    ("DATABASE_URL", "postgres://db", "Set it to postgres://"),
    ("DATABASE_URL", "postgres://db:port/x", "Set it to postgres://"),
    ("DATABASE_URL", "postgres://u:hush@db/x?unknown=1", "Set it to postgres://"),
    ("DATABASE_URL", "", "Set it to postgres://"),
    ("PUBLIC_BASE_URL", "nonsense", "Set it to an address such as https://tenants.example.com."),
    ("PUBLIC_BASE_URL", "https://a.example?x=1", "Set it to an address"),
    ("DASHBOARD_URL", "//a.example", "Set it to an address"),
    ("ALLOWED_REDIRECT_HOSTS", "app.example.com", "'app.example.com' is not scheme and host"),
    ("ALLOWED_REDIRECT_HOSTS", "https://a.example/x", "'https://a.example/x' is not scheme and host"),
    ("ALLOWED_HOSTS", "https://a.example", "'https://a.example' is not a host name without scheme"),
    ("ALLOWED_HOSTS", "a.example:8000", "'a.example:8000' is not a host name without scheme and port"),
    ("HOST", "http://x", "Set it to a host name or an address."),
    *(
        ("PORT", port, "Must be greater than or equal to 1 and less than or equal to 65535.")
        for port in ("0", "65536", "-1")
    ),
    ("PORT", "web", "Not a valid integer."),
    ("BEHIND_TLS_PROXY", "si", "Not a valid boolean."),
    ("HSTS_SECONDS", "-1", "Must be greater than or equal to 0 and less than or equal to 315360000."),
    ("ACCESS_TOKEN_SECONDS", "0", "Must be greater than or equal to 1 and less than or equal to 31536000."),
    ("TOMBSTONE_DAYS", "x", "Not a valid integer."),
    ("PRINCIPAL_CACHE_SECONDS", "60", "Must be greater than or equal to 0 and less than or equal to 5."),
    ("SQL_TIMEOUT_SECONDS", "abc", "Not a valid number."),
    ("SQL_TIMEOUT_SECONDS", "nan", "Special numeric values (nan or infinity) are not permitted."),
    ("SQL_MAX_ROWS", "-5", "Must be greater than or equal to 1 and less than or equal to 1000000000."),
    ("SQL_SERVICE_URL", "sql:8100", "Set it to an address"),
    ("SQL_SPARK_URL", "http://spark:15002", "Set it to an address such as sc://"),
    ("SQL_SERVICE_SECRET", "hush", "Set it to 32 random characters or more"),
    ("SQL_SERVICE_SECRET", "x" * 40, "Set it to 32 random characters or more"),
    ("MAGIC_LINK_EMAIL_LIMIT", "lots", "Set it to a limit such as '5 per 15 minutes'."),
    ("PLATFORM_DOMAINS", "a.example,-bad-", "'-bad-' is not a domain name such as example.com"),
    ("SIGNIN_EMAIL_DOMAINS", "example", "'example' is not a domain name such as example.com"),
    ("DNS_NAMESERVERS", "dns.example", "'dns.example' is not an IP address."),
    ("EMAIL_URL", "mail.example.com", "Set it to smtp+tls://"),
    ("EMAIL_URL", "smtp+tls://", "Set it to smtp+tls://"),
    ("EMAIL_FROM", "not-an-address", "Set it to an email address, or 'Name <address>'."),
    ("JWT_PRIVATE_KEY", "hush", "Set it to a P-256 private key in PEM"),
    ("JWT_PREVIOUS_PUBLIC_KEYS", "hush", "Set it to P-256 public keys in PEM"),
    ("LOG_LEVEL", "LOUD", "Not a valid log level."),
    ("LOG_FORMAT", "xml", "Set it to json or text."),
    ("METRICS_ADDRESS", "localhost", "Set it to host:port, such as 0.0.0.0:9100."),
]


@pytest.mark.parametrize(("name", "value", "said"), REFUSED)
def test_a_bad_value_is_refused_with_its_name_and_the_cure(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_settings({"DJANGO_DEBUG": "true", name: value})
    assert [problem[: len(f"{name}: {said}")] for problem in caught.value.problems] == [f"{name}: {said}"]
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
        (
            "DATABASE_URL",
            "postgres://u:p%40ss+@a,b:5433/x%2Fy?sslmode=require",
            {
                "NAME": "x/y",
                "USER": "u",
                "PASSWORD": "p@ss+",
                "HOST": "a,b",
                "PORT": ",5433",
                "OPTIONS": {"sslmode": "require"},
            },
        ),
        ("REDIS_URL", "rediss://:secret@host:6379/3", "rediss://:secret@host:6379/3"),
        ("REDIS_URL", "unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("EMAIL_URL", "", ""),
        ("EMAIL_FROM", "Ops <ops@example.com>", "Ops <ops@example.com>"),
        ("LOG_LEVEL", "warning", logging.WARNING),
        ("LOG_FORMAT", "JSON", "json"),
        ("METRICS_ADDRESS", "[::1]:9100", ("::1", 9100)),
        ("SQL_TIMEOUT_SECONDS", "2.5", 2.5),
        ("SQL_SERVICE_URL", "", ""),
    ],
)
def test_a_valid_value_is_read(name: str, text: str, value: Any) -> None:
    assert read_variables({**PRODUCTION, name: text})[name] == value


def test_defaults_are_valid() -> None:
    values = read_variables(PRODUCTION)
    texts = {
        name: ",".join(value) if isinstance(value, list) else str(value)
        for name, value in values.items()
        if name not in DERIVED
    }
    assert read_variables({**PRODUCTION, **texts}) == values


def test_a_key_may_be_written_on_one_line() -> None:
    key = new_signing_key()
    settings = read_settings({**PRODUCTION, "JWT_PRIVATE_KEY": key.replace("\n", "\\n")})
    assert settings["JWT_PRIVATE_KEY"] == key


def test_an_sql_service_needs_the_secret() -> None:
    with pytest.raises(ConfigurationError, match=r"^SQL_SERVICE_SECRET: Set it to 32 random characters"):
        read_settings({**PRODUCTION, "SQL_SERVICE_URL": "http://sql:8100"})


def test_development_is_off_by_default() -> None:
    without_database = {name: value for name, value in PRODUCTION.items() if name != "DATABASE_URL"}
    assert read_settings(without_database)["DEBUG"] is False
    assert read_settings({"DJANGO_DEBUG": "true"})["DEBUG"] is True
    with pytest.raises(ConfigurationError, match=r"^DJANGO_SECRET_KEY: Set it to 50 random"):
        read_settings({})


@pytest.mark.parametrize(
    ("variables", "is_development"),
    [
        ({}, True),
        ({"DJANGO_DEBUG": "false"}, False),
        ({"DATABASE_URL": "postgres://db/x"}, False),
        ({"DATABASE_URL_FILE": "/run/secrets/database"}, False),
        ({"PUBLIC_BASE_URL": "https://tenants.example.com"}, False),
        ({"DJANGO_SECRET_KEY": "x"}, False),
    ],
)
def test_serve_is_in_development_if_no_variable_of_a_deployment_is_set(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_development: bool
) -> None:
    class Settings:
        @property
        def VAR_DIR(self) -> NoReturn:  # noqa: N802
            raise ConfigurationError([os.environ.get("DJANGO_DEBUG", "false")])

    monkeypatch.setattr(manage, "settings", Settings())
    for command, expected in (("serve", is_development), ("migrate", False)):
        with environment(variables), pytest.raises(ConfigurationError) as caught:
            manage.main(["manage.py", command])
        assert caught.value.problems == ["true" if expected else "false"]


def test_production_needs_a_mail_setting() -> None:
    without_mail = {name: value for name, value in PRODUCTION.items() if name != "EMAIL_URL"}
    with pytest.raises(ConfigurationError, match=r"^EMAIL_URL: Set it to smtp"):
        read_settings(without_mail)
    for text, has_links in (("files", True), ("", False), ("smtp://mail.example.com", True)):
        assert read_settings({**without_mail, "EMAIL_URL": text})["MAGIC_LINKS_ENABLED"] is has_links
    assert read_settings({"DJANGO_DEBUG": "true"})["MAGIC_LINKS_ENABLED"] is True


def test_mails_in_files_are_private() -> None:
    settings = read_settings({**PRODUCTION, "EMAIL_URL": "files"})
    assert settings["EMAIL_BACKEND"] == "tenantadmin.mail.PrivateFileBackend"


@pytest.mark.parametrize(
    ("scheme", "tls", "ssl"), [("smtp", False, False), ("smtp+tls", True, False), ("smtp+ssl", False, True)]
)
def test_a_mail_server_is_used(scheme: str, tls: bool, ssl: bool) -> None:
    settings = read_settings({**PRODUCTION, "EMAIL_URL": f"{scheme}://ada%40x:p%3As@mail.example.com:587"})
    assert {name: value for name, value in settings.items() if name.startswith("EMAIL_")} == {
        "EMAIL_URL": f"{scheme}://ada%40x:p%3As@mail.example.com:587",
        "EMAIL_BACKEND": "tenantadmin.mail.CountedSmtpBackend",
        "EMAIL_FILE_PATH": f"{os.environ['VAR_DIR']}/mail",
        "EMAIL_TIMEOUT": 10,
        "EMAIL_HOST": "mail.example.com",
        "EMAIL_PORT": 587,
        "EMAIL_HOST_USER": "ada@x",
        "EMAIL_HOST_PASSWORD": "p:s",
        "EMAIL_USE_TLS": tls,
        "EMAIL_USE_SSL": ssl,
    }


def test_all_problems_are_reported_at_once() -> None:
    given = "Set it to what the identity provider gave you, or remove the provider from SIGNIN_PROVIDERS."
    started = check(PORT="web", TRUSTED_PROXIES="nonsense", SIGNIN_PROVIDERS="google")
    assert started.returncode == 1
    assert started.stdout == ""
    assert started.stderr.splitlines() == [
        "manage.py: PORT: Not a valid integer.",
        (
            "manage.py: TRUSTED_PROXIES: 'nonsense' is not an IP address or a network such as 10.0.0.0/8. "
            "Separate several by commas."
        ),
        (
            "manage.py: DJANGO_SECRET_KEY: Set it to 50 random characters or more; on a development machine, "
            "set DJANGO_DEBUG=true instead."
        ),
        (
            "manage.py: JWT_PRIVATE_KEY: Set it to a P-256 private key in PEM "
            "(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)."
        ),
        f"manage.py: SIGNIN_GOOGLE_CLIENT_ID: {given}",
        f"manage.py: SIGNIN_GOOGLE_CLIENT_SECRET: {given}",
        (
            "manage.py: EMAIL_URL: Set it to smtp+tls://user:password@host:587, to 'files' for files under "
            "VAR_DIR, or to nothing, which turns the links off."
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
    with pytest.raises(ConfigurationError, match=r"^DJANGO_SECRET_KEY: Set it to 50 random"):
        read_settings({**PRODUCTION, "DJANGO_SECRET_KEY": secret})


def test_production_refuses_a_missing_signing_key() -> None:
    with pytest.raises(ConfigurationError, match=r"^JWT_PRIVATE_KEY: Set it to a P-256"):
        read_settings({**PRODUCTION, "JWT_PRIVATE_KEY": ""})


@pytest.mark.slow
def test_production_starts_with_both() -> None:
    started = check(**SECRETS, EMAIL_URL="")
    assert started.returncode == 0, started.stderr


def test_a_generated_secret_is_strong() -> None:
    assert not is_weak_secret(new_secret_key())


def test_concurrent_callers_get_the_same_secret(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "django.key"
    with ThreadPoolExecutor(8) as pool:
        values = set(pool.map(lambda _: ensure_secret(path, new_secret_key), range(64)))
    assert values == {path.read_text()}
    assert [entry.name for entry in path.parent.iterdir()] == ["django.key"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    secret, other = tmp_path / "secret", tmp_path / "other"
    secret.write_text(f"{'abcdefgh' * 8}\n")
    other.write_text("hush\n")
    settings = read_settings(
        {
            "DJANGO_DEBUG": "true",
            "DJANGO_SECRET_KEY_FILE": str(secret),
            "SIGNIN_PROVIDERS": "google",
            "SIGNIN_GOOGLE_CLIENT_ID": "id",
            "SIGNIN_GOOGLE_CLIENT_SECRET_FILE": str(other),
        }
    )
    assert settings["SECRET_KEY"] == "abcdefgh" * 8
    assert settings["SOCIALACCOUNT_PROVIDERS"]["google"]["APPS"][0]["secret"] == "hush"


def test_a_secret_comes_from_one_place_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"hush\xff")
    with pytest.raises(ConfigurationError) as failed:
        read_settings(
            {
                "DJANGO_DEBUG": "true",
                "REDIS_URL": "redis://localhost/0",
                "REDIS_URL_FILE": "/nowhere",
                "EMAIL_URL_FILE": "/nowhere",
                "DATABASE_URL_FILE": str(tmp_path / "binary"),
            }
        )
    assert sorted(failed.value.problems) == [
        "DATABASE_URL: DATABASE_URL_FILE does not name a text file that can be read.",
        "EMAIL_URL: EMAIL_URL_FILE does not name a text file that can be read.",
        (
            "REDIS_URL: REDIS_URL_FILE is set too. Remove one of them. "
            "REDIS_URL_FILE does not name a text file that can be read."
        ),
    ]
