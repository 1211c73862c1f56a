"""The environment variables that operators set, and their defaults. `docs/configuration.md` describes each.

Nothing is computed from them before `env.seal`, which reports all values that are not valid.
"""

from __future__ import annotations

import logging
from pathlib import Path

from logs.sql.options import SqlOptions, options_from
from tenantadmin.conf.environment import Environment, Range, check_rate_limit, read_providers
from tenantadmin.run import embedded

#: The name of the product on pages and in mails.
PRODUCT_NAME = "tenantadmin"
BASE_DIR = Path(__file__).resolve().parents[2]
_YEAR = 31_536_000
_DAYS = Range(1, 36_500)
_BYTES = Range(1, 1 << 50)

env = Environment()
DEBUG = env.bool("DJANGO_DEBUG", default=False)

# Data
DEFAULT_VAR_DIR = BASE_DIR / "var"
VAR_DIR = env.path("VAR_DIR", DEFAULT_VAR_DIR).resolve()
_embedded = embedded.endpoints(VAR_DIR)
database = env.database("DATABASE_URL", _embedded.database_url, required=True)
#: How long a statement may take in a web process and in a job, and how long a transaction may wait for its
#: next statement; 0 for no limit.
DATABASE_STATEMENT_SECONDS = env.float("DATABASE_STATEMENT_SECONDS", 5.0, validate=Range(0, 3600))
DATABASE_JOB_STATEMENT_SECONDS = env.float("DATABASE_JOB_STATEMENT_SECONDS", 600.0, validate=Range(0, 86_400))
DATABASE_IDLE_SECONDS = env.float("DATABASE_IDLE_SECONDS", 60.0, validate=Range(0, 3600))
REDIS_URL: str = env.redis_server("REDIS_URL", _embedded.redis_url, required=True)
OBJECT_STORE_URL: str = env.object_store("OBJECT_STORE_URL", (VAR_DIR / "objects").as_uri(), required=True)
STATIC_ROOT = env.path("STATIC_ROOT", VAR_DIR / "static").resolve()

# Addresses
#: Where `manage.py serve` listens.
HOST: str = env.host("HOST", "127.0.0.1")
PORT = env.int("PORT", 8000, validate=Range(1, 65535))
#: How many requests a web process answers at a time. More than SQL queries can hold (SQL_SLOTS + SQL_QUEUE),
#: so that other requests are answered meanwhile.
WEB_THREADS = env.int("WEB_THREADS", 32, validate=Range(1, 1024))
#: Within this time the body of a request must arrive.
BODY_TIMEOUT_SECONDS = env.float("BODY_TIMEOUT_SECONDS", 10.0, validate=Range(1, 3600))
PUBLIC_BASE_URL: str = env.web_address("PUBLIC_BASE_URL", "")
DASHBOARD_URL: str = env.web_address("DASHBOARD_URL", "")
#: Origins to which sign-in may redirect: scheme and host, and the port if it is not the default.
ALLOWED_REDIRECT_HOSTS: list[str] = env.origins("ALLOWED_REDIRECT_HOSTS", "")
CORS_ALLOWED_ORIGINS: list[str] = env.origins("CORS_ALLOWED_ORIGINS", "")
ALLOWED_HOSTS: list[str] = env.host_patterns("ALLOWED_HOSTS", "*" if DEBUG else "")
#: Networks of proxies whose X-Forwarded-For is trusted.
TRUSTED_PROXIES: list[str] = env.networks("TRUSTED_PROXIES", "")
BEHIND_TLS_PROXY = env.bool("BEHIND_TLS_PROXY", default=False)
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", _YEAR, validate=Range(0, 10 * _YEAR))

# Secrets and tokens. Without development mode, the first two must be set.
SECRET_KEY: str = env.secret_key("DJANGO_SECRET_KEY", "", required=not DEBUG)
JWT_PRIVATE_KEY: str = env.signing_key("JWT_PRIVATE_KEY", "", required=not DEBUG)
#: Previous public keys (PEM, one after the other). Their tokens are still accepted during a rotation.
JWT_PREVIOUS_PUBLIC_KEYS: str = env.public_keys("JWT_PREVIOUS_PUBLIC_KEYS", "")
#: The public key that will sign next: published and accepted before any process signs with it.
JWT_NEXT_PUBLIC_KEYS: str = env.public_keys("JWT_NEXT_PUBLIC_KEYS", "")
ACCESS_TOKEN_SECONDS = env.int("ACCESS_TOKEN_SECONDS", 3600, validate=Range(1, _YEAR))
REFRESH_TOKEN_DAYS = env.int("REFRESH_TOKEN_DAYS", 30, validate=_DAYS)
#: The lifetime of a personal access token whose creator gives none, and how many a user may have.
PAT_DEFAULT_DAYS = env.int("PAT_DEFAULT_DAYS", 365, validate=_DAYS)
#: Two years, of which one may be a leap year.
PAT_MAX_DAYS = env.int("PAT_MAX_DAYS", 731, validate=_DAYS)
PAT_MAX_ACTIVE = env.int("PAT_MAX_ACTIVE", 50, validate=Range(1, 10_000))
#: How long a process remembers what a token may do; revocation acts within this time.
PRINCIPAL_CACHE_SECONDS = env.float("PRINCIPAL_CACHE_SECONDS", 3.0, validate=Range(0, 5))

# Signing in
#: Identity providers in the order of the sign-in page. The first is the default.
SIGNIN_PROVIDERS: list[str] = env.providers("SIGNIN_PROVIDERS", "")
SOCIALACCOUNT_PROVIDERS = read_providers(SIGNIN_PROVIDERS or [], env)
#: Email domains whose users may sign in. If empty, all may.
SIGNIN_EMAIL_DOMAINS: list[str] = env.domains("SIGNIN_EMAIL_DOMAINS", "")
#: A mail server, or "files". If empty, there are no magic links. Without development mode, it must be set.
EMAIL_URL: str = env.mail_server("EMAIL_URL", "files" if DEBUG else None)
DEFAULT_FROM_EMAIL: str = env.sender("EMAIL_FROM", f"{PRODUCT_NAME} <no-reply@localhost>")
MAGIC_LINK_EMAIL_LIMIT = env.str("MAGIC_LINK_EMAIL_LIMIT", "5 per 15 minutes", validate=check_rate_limit)
MAGIC_LINK_ADDRESS_LIMIT = env.str("MAGIC_LINK_ADDRESS_LIMIT", "20 per 15 minutes", validate=check_rate_limit)
INVITATION_LIMIT = env.str("INVITATION_LIMIT", "20 per hour", validate=check_rate_limit)
#: Of one recipient, over all tenants.
INVITATION_RECIPIENT_LIMIT = env.str("INVITATION_RECIPIENT_LIMIT", "10 per day", validate=check_rate_limit)
PASSWORD_ADDRESS_LIMIT = env.str("PASSWORD_ADDRESS_LIMIT", "20 per 15 minutes", validate=check_rate_limit)
#: Whether platform admins need a second factor for the admin site.
STAFF_SECOND_FACTOR = env.bool("STAFF_SECOND_FACTOR", default=not DEBUG)
#: Within this time, a process uses the terms of service that another process has published.
TOS_REFRESH_SECONDS = env.float("TOS_REFRESH_SECONDS", 30.0, validate=Range(0, 86_400))

# Expensive work of one caller
#: Seconds of work that one caller may ask for (`accounts.budgets`).
CALLER_BUDGETS = {
    "lint": env.str("LINT_BUDGET", "30 per minute", validate=check_rate_limit),
    "query": env.str("QUERY_BUDGET", "600 per minute", validate=check_rate_limit),
    "request": env.str("REQUEST_BUDGET", "60 per minute", validate=check_rate_limit),
}
#: All callers of one network may together ask for so many times as much.
NETWORK_BUDGET_FACTOR = env.int("NETWORK_BUDGET_FACTOR", 10, validate=Range(1, 1_000_000))
#: Seconds of processor time after which a request that computes ends (`tenantadmin.lib.core.serving`).
REQUEST_SECONDS = env.float("REQUEST_SECONDS", 5.0, validate=Range(0.1, 600))
PAT_LIMIT = env.str("PAT_LIMIT", "1000 per hour", validate=check_rate_limit)

# Tenants
TOMBSTONE_DAYS = env.int("TOMBSTONE_DAYS", 30, validate=_DAYS)
#: Domains in which any tenant may claim FQDNs, in lower case.
PLATFORM_DOMAINS: list[str] = env.domains("PLATFORM_DOMAINS", "gateway.localhost")
#: Name servers (addresses) asked for domain challenges; empty for the system's own. Port and seconds.
DNS_NAMESERVERS: list[str] = env.addresses("DNS_NAMESERVERS", "")
DNS_PORT = env.int("DNS_PORT", 53, validate=Range(1, 65535))
#: How many checks of its domains an account may ask for.
DOMAIN_CHECK_LIMIT = env.str("DOMAIN_CHECK_LIMIT", "10 per minute", validate=check_rate_limit)
DNS_TIMEOUT_SECONDS = env.float("DNS_TIMEOUT_SECONDS", 5.0, validate=Range(0.1, 60))

# Events and audits. Less than a month would drop rows that have just been written.
EVENT_RETENTION_DAYS = env.int("EVENT_RETENTION_DAYS", 730, validate=Range(31, 36_500))
AUDIT_RETENTION_DAYS = env.int("AUDIT_RETENTION_DAYS", 400, validate=Range(31, 36_500))

# Raw logs and summaries
#: Within this time, the logs of every tenant are listed once. In development nothing announces new logs.
LOG_SWEEP_SECONDS = env.float(
    "LOG_SWEEP_SECONDS", 60.0 if DEBUG else 86_400.0, validate=Range(10, 30 * 86_400)
)
#: The SQS queue of S3 event notifications, if there is one.
OBJECT_EVENTS_QUEUE_URL: str = env.web_address("OBJECT_EVENTS_QUEUE_URL", "")
#: How many days of one tenant may wait to be built because of notifications.
BUILD_QUEUE = env.int("BUILD_QUEUE", 1_000, validate=Range(1, 100_000))
BUILD_DAYS = env.int("BUILD_DAYS", 7, validate=_DAYS)
#: A day whose raw objects have more bytes is built by hours.
BUILD_BY_HOURS_BYTES = env.int("BUILD_BY_HOURS_BYTES", 8 << 30, validate=_BYTES)

# Replays
#: The most days and rows that one replay reads, warm-up included in the rows.
REPLAY_MAX_DAYS = env.int("REPLAY_MAX_DAYS", 31, validate=Range(1, 366))
REPLAY_MAX_ROWS = env.int("REPLAY_MAX_ROWS", 20_000_000, validate=Range(1, 1_000_000_000))
#: Of more rows, a replay and a search for recommendations read a sample.
REPLAY_EXACT_ROWS = env.int("REPLAY_EXACT_ROWS", 5_000_000, validate=Range(1, 1_000_000_000))
#: What one replay may take; more memory spills to the disk.
REPLAY_TIMEOUT_SECONDS = env.float("REPLAY_TIMEOUT_SECONDS", 300.0, validate=Range(1, 540))
REPLAY_MEMORY_BYTES = env.int("REPLAY_MEMORY_BYTES", 2 << 30, validate=Range(384 << 20, 1 << 50))
REPLAY_THREADS = env.int("REPLAY_THREADS", 2, validate=Range(1, 1024))
#: How many replays of a tenant may wait. One at a time runs.
REPLAY_QUEUE = env.int("REPLAY_QUEUE", 3, validate=Range(1, 1000))
REPLAY_LIMIT = env.str("REPLAY_LIMIT", "10 per hour", validate=check_rate_limit)

# Alerts
ALERT_TEST_LIMIT = env.str("ALERT_TEST_LIMIT", "20 per hour", validate=check_rate_limit)
#: Hosts and networks that webhooks may reach although they are private.
WEBHOOK_EXCEPTIONS: list[str] = env.hosts_and_networks("WEBHOOK_EXCEPTIONS", "")
#: Addresses and URLs (as for Slack) that are told about the whole service. Without any, nothing is watched.
SERVICE_ALERT_CHANNELS: list[str] = env.alert_receivers("SERVICE_ALERT_CHANNELS", "")
#: The thresholds of the service's alerts; 0 for none.
SERVICE_ALERT_LOG_LATE_MINUTES = env.int("SERVICE_ALERT_LOG_LATE_MINUTES", 60, validate=Range(0, 525_600))
SERVICE_ALERT_FAILED_BUILDS = env.int("SERVICE_ALERT_FAILED_BUILDS", 1, validate=Range(0, 1_000_000))
SERVICE_ALERT_QUEUE_MINUTES = env.int("SERVICE_ALERT_QUEUE_MINUTES", 30, validate=Range(0, 525_600))

# SQL over the log
#: Limits of queries, and the service that runs them.
SQL_OPTIONS: SqlOptions = options_from(env, store_url=OBJECT_STORE_URL)
#: A PostgreSQL of its own for the catalog that tools ask, and the certificate (`logs.wire`).
SQL_CATALOG = env.database("SQL_CATALOG_URL", "")
SQL_TLS_CERTIFICATE: str = env.str("SQL_TLS_CERTIFICATE", "")
SQL_TLS_KEY: str = env.str("SQL_TLS_KEY", "")
SQL_CONNECTIONS = env.int("SQL_CONNECTIONS", 100, validate=Range(1, 1000))

# Logging and metrics
LOG_FORMAT: str = env.log_format("LOG_FORMAT", "text" if DEBUG else "json")
LOG_LEVEL = env.log_level("LOG_LEVEL", logging.INFO)
#: Whether each answered request leaves a line in the log.
ACCESS_LOG = env.bool("ACCESS_LOG", default=not DEBUG)
#: Where errors are reported; empty: nowhere.
SENTRY_DSN = env.str("SENTRY_DSN", "")
#: Host and port at which Prometheus reads metrics, if it does.
METRICS_ADDRESS: tuple[str, int] | None = env.listening_address("METRICS_ADDRESS", "") or None

env.seal()
