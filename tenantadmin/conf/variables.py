"""Every environment variable that the service reads. `docs/configuration.md` explains each.

A test checks that this table and that page have the same names and defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tenantadmin.conf import kinds

if TYPE_CHECKING:
    from tenantadmin.conf.kinds import Kind

_YEAR_SECONDS: Final = 31_536_000
_CENTURY_DAYS: Final = 36_500
_MAX_BYTES: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable.

    Attributes:
        default: the value if the variable is not set. None: there is none, or it depends on other variables.
        reads_empty: pass an empty text to the kind. Otherwise an empty variable counts as not set.
        secret: never show the value.
    """

    name: str
    kind: Kind
    default: Any = None
    reads_empty: bool = False
    secret: bool = False


VARIABLES: Final = (
    # Data. If a variable is empty by mistake, no embedded server must start, so the text is refused.
    Variable("DATABASE_URL", kinds.database, reads_empty=True, secret=True),
    Variable("DATABASE_STATEMENT_SECONDS", kinds.seconds(0, 3600), 5.0),
    Variable("DATABASE_JOB_STATEMENT_SECONDS", kinds.seconds(0, 86_400), 600.0),
    Variable("DATABASE_IDLE_SECONDS", kinds.seconds(0, 3600), 60.0),
    Variable("REDIS_URL", kinds.redis_server, reads_empty=True, secret=True),
    Variable("OBJECT_STORE_URL", kinds.object_store, reads_empty=True),
    Variable("STATIC_ROOT", kinds.folder),
    Variable("VAR_DIR", kinds.folder),
    # Addresses
    Variable("PUBLIC_BASE_URL", kinds.web_address),
    Variable("HOST", kinds.host, "127.0.0.1"),
    Variable("PORT", kinds.whole(1, 65535), 8000),
    Variable("WEB_THREADS", kinds.whole(1, 1024), 32),
    Variable("BODY_TIMEOUT_SECONDS", kinds.seconds(1, 3600), 10.0),
    Variable("DASHBOARD_URL", kinds.web_address),
    Variable("ALLOWED_REDIRECT_HOSTS", kinds.list_of(kinds.origin), []),
    Variable("CORS_ALLOWED_ORIGINS", kinds.list_of(kinds.origin), []),
    Variable("ALLOWED_HOSTS", kinds.list_of(kinds.host_pattern)),
    Variable("TRUSTED_PROXIES", kinds.list_of(kinds.network), []),
    Variable("BEHIND_TLS_PROXY", kinds.boolean, default=False),
    Variable("HSTS_SECONDS", kinds.whole(0, 10 * _YEAR_SECONDS), _YEAR_SECONDS),
    # Secrets and tokens
    Variable("DJANGO_DEBUG", kinds.boolean, default=False),
    Variable("DJANGO_SECRET_KEY", kinds.text, secret=True),
    Variable("JWT_PRIVATE_KEY", kinds.signing_key, secret=True),
    Variable("JWT_PREVIOUS_PUBLIC_KEYS", kinds.public_keys, secret=True),
    Variable("JWT_NEXT_PUBLIC_KEYS", kinds.public_keys, secret=True),
    Variable("ACCESS_TOKEN_SECONDS", kinds.whole(1, _YEAR_SECONDS), 3600),
    Variable("REFRESH_TOKEN_DAYS", kinds.whole(1, _CENTURY_DAYS), 30),
    Variable("PAT_DEFAULT_DAYS", kinds.whole(1, _CENTURY_DAYS), 365),
    Variable("PAT_MAX_ACTIVE", kinds.whole(1, 10_000), 50),
    Variable("PRINCIPAL_CACHE_SECONDS", kinds.seconds(0, 5), 3.0),
    # Signing in
    Variable("SIGNIN_PROVIDERS", kinds.list_of(kinds.provider, unique=True), []),
    Variable("SIGNIN_EMAIL_DOMAINS", kinds.list_of(kinds.domain), []),
    Variable("EMAIL_URL", kinds.mail_server, reads_empty=True, secret=True),
    Variable("EMAIL_FROM", kinds.sender, "Tenant administration <no-reply@localhost>"),
    Variable("MAGIC_LINK_EMAIL_LIMIT", kinds.rate_limit, "5 per 15 minutes"),
    Variable("MAGIC_LINK_ADDRESS_LIMIT", kinds.rate_limit, "20 per 15 minutes"),
    Variable("PASSWORD_ADDRESS_LIMIT", kinds.rate_limit, "20 per 15 minutes"),
    Variable("STAFF_SECOND_FACTOR", kinds.boolean),
    Variable("TOS_REFRESH_SECONDS", kinds.seconds(0, 86_400), 30.0),
    # Expensive work of one caller, in seconds
    Variable("LINT_BUDGET", kinds.rate_limit, "30 per minute"),
    Variable("QUERY_BUDGET", kinds.rate_limit, "600 per minute"),
    Variable("PAT_LIMIT", kinds.rate_limit, "1000 per hour"),
    # Tenants
    Variable("TOMBSTONE_DAYS", kinds.whole(1, _CENTURY_DAYS), 30),
    Variable("PLATFORM_DOMAINS", kinds.list_of(kinds.domain), ["gateway.localhost"], reads_empty=True),
    Variable("DNS_NAMESERVERS", kinds.list_of(kinds.address), []),
    Variable("DNS_PORT", kinds.whole(1, 65535), 53),
    Variable("DNS_TIMEOUT_SECONDS", kinds.seconds(0.1, 60), 5.0),
    # Events and audits. Shorter than a month would drop what has just been written.
    Variable("EVENT_RETENTION_DAYS", kinds.whole(31, _CENTURY_DAYS), 730),
    Variable("AUDIT_RETENTION_DAYS", kinds.whole(31, _CENTURY_DAYS), 400),
    # Raw logs and summaries
    Variable("LOG_SWEEP_SECONDS", kinds.seconds(10, 30 * 86_400)),
    Variable("OBJECT_EVENTS_QUEUE_URL", kinds.web_address),
    Variable("BUILD_DAYS", kinds.whole(1, _CENTURY_DAYS), 7),
    Variable("BUILD_BY_HOURS_BYTES", kinds.whole(1, _MAX_BYTES), 8 << 30),
    # Replays
    Variable("REPLAY_MAX_DAYS", kinds.whole(1, 366), 31),
    Variable("REPLAY_MAX_ROWS", kinds.whole(1, 1_000_000_000), 20_000_000),
    Variable("REPLAY_TIMEOUT_SECONDS", kinds.seconds(1, 540), 120.0),
    Variable("REPLAY_MEMORY_BYTES", kinds.whole(64 << 20, _MAX_BYTES), 2 << 30),
    Variable("REPLAY_THREADS", kinds.whole(1, 1024), 1),
    Variable("REPLAY_QUEUE", kinds.whole(1, 1000), 3),
    Variable("REPLAY_LIMIT", kinds.rate_limit, "10 per hour"),
    # Digests
    Variable("LLM_URL", kinds.web_address),
    Variable("LLM_MODEL", kinds.text),
    Variable("LLM_API_KEY", kinds.text, secret=True),
    Variable("LLM_TIMEOUT_SECONDS", kinds.seconds(0.1, 600), 20.0),
    # SQL over the log
    Variable("SQL_TIMEOUT_SECONDS", kinds.seconds(0.1, 3600), 15.0),
    Variable("SQL_MAX_ROWS", kinds.whole(1, 1_000_000_000), 10_000),
    Variable("SQL_MAX_BYTES", kinds.whole(1, _MAX_BYTES), 32 << 20),
    Variable("SQL_MEMORY_BYTES", kinds.whole(1 << 20, _MAX_BYTES), 1 << 30),
    Variable("SQL_CACHE_BYTES", kinds.whole(0, _MAX_BYTES), 20 << 30),
    Variable("SQL_THREADS", kinds.whole(1, 1024), 2),
    Variable("SQL_SLOTS", kinds.whole(1, 1024), 12),
    Variable("SQL_SLOTS_PER_TENANT", kinds.whole(1, 1024), 8),
    Variable("SQL_QUEUE", kinds.whole(0, 65_536), 12),
    Variable("SQL_WARM_PROCESSES", kinds.whole(0, 1024), 4),
    Variable("SQL_LEASES", kinds.whole(0, 1024), 8),
    Variable("SQL_LEASE_QUERIES", kinds.whole(1, 1_000_000), 100),
    Variable("SQL_LEASE_IDLE_SECONDS", kinds.seconds(0.1, 3600), 60.0),
    Variable("SQL_LEASE_PROCESSOR_SECONDS", kinds.seconds(0.1, 3600), 10.0),
    Variable("SQL_LEASE_GROWTH_BYTES", kinds.whole(0, _MAX_BYTES), 256 << 20),
    Variable("SQL_KEPT_RESULTS_SECONDS", kinds.whole(0, 86_400), 600),
    Variable("SQL_KEPT_RESULTS_BYTES", kinds.whole(1, _MAX_BYTES), 4 << 20),
    Variable("SQL_SPARK_URL", kinds.spark_address, secret=True),
    Variable("SQL_SPARK_FROM_BYTES", kinds.whole(0, 1 << 60), 50 << 30),
    Variable("SQL_SERVICE_URL", kinds.web_address),
    Variable("SQL_SERVICE_SECRET", kinds.shared_secret, secret=True),
    # Logging and metrics
    Variable("LOG_FORMAT", kinds.one_of("JSON", "TEXT")),
    Variable("ACCESS_LOG", kinds.boolean),
    Variable("METRICS_ADDRESS", kinds.listening_address),
    Variable("SENTRY_DSN", kinds.text, secret=True),
    Variable("LOG_LEVEL", kinds.one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), "INFO"),
)
