"""Settings of the service. Operators set the first part by environment variables.

`docs/configuration.md` describes each variable.
"""

from __future__ import annotations

import logging
import os
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from csp.constants import NONE, SELF, UNSAFE_EVAL
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from logs.sql.options import SqlOptions, options_from
from tenantadmin.conf.environment import Environment, Range
from tenantadmin.conf.parsers import check_rate_limit
from tenantadmin.conf.providers import read_providers
from tenantadmin.conf.secrets import kept_secret, new_secret_key, new_signing_key
from tenantadmin.lib.core import queues
from tenantadmin.lib.core.log_lines import logging_config
from tenantadmin.lib.http.enumerations import ENUMERATIONS
from tenantadmin.lib.objectstore import storage_settings
from tenantadmin.run import embedded

BASE_DIR = Path(__file__).resolve().parent.parent
_YEAR = 31_536_000
_DAYS = Range(1, 36_500)
_BYTES = Range(1, 1 << 50)

# --- Environment variables: nothing is computed from them before `seal` ------------------------

env = Environment()
DEBUG = env.bool("DJANGO_DEBUG", default=False)

# Data
DEFAULT_VAR_DIR = BASE_DIR / "var"
VAR_DIR = env.path("VAR_DIR", DEFAULT_VAR_DIR).resolve()
_embedded = embedded.endpoints(VAR_DIR)
_database = env.database("DATABASE_URL", _embedded.database_url, required=True)
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
DEFAULT_FROM_EMAIL: str = env.sender("EMAIL_FROM", "Tenant administration <no-reply@localhost>")
MAGIC_LINK_EMAIL_LIMIT = env.str("MAGIC_LINK_EMAIL_LIMIT", "5 per 15 minutes", validate=check_rate_limit)
MAGIC_LINK_ADDRESS_LIMIT = env.str("MAGIC_LINK_ADDRESS_LIMIT", "20 per 15 minutes", validate=check_rate_limit)
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
}
PAT_LIMIT = env.str("PAT_LIMIT", "1000 per hour", validate=check_rate_limit)

# Tenants
TOMBSTONE_DAYS = env.int("TOMBSTONE_DAYS", 30, validate=_DAYS)
#: Domains in which any tenant may claim FQDNs, in lower case.
PLATFORM_DOMAINS: list[str] = env.domains("PLATFORM_DOMAINS", "gateway.localhost")
#: Name servers (addresses) asked for domain challenges; empty for the system's own. Port and seconds.
DNS_NAMESERVERS: list[str] = env.addresses("DNS_NAMESERVERS", "")
DNS_PORT = env.int("DNS_PORT", 53, validate=Range(1, 65535))
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
BUILD_DAYS = env.int("BUILD_DAYS", 7, validate=_DAYS)
#: A day whose raw objects have more bytes is built by hours.
BUILD_BY_HOURS_BYTES = env.int("BUILD_BY_HOURS_BYTES", 8 << 30, validate=_BYTES)

# Replays
#: The most days and rows that one replay reads, warm-up included in the rows.
REPLAY_MAX_DAYS = env.int("REPLAY_MAX_DAYS", 31, validate=Range(1, 366))
REPLAY_MAX_ROWS = env.int("REPLAY_MAX_ROWS", 20_000_000, validate=Range(1, 1_000_000_000))
#: What one replay may take; more memory spills to the disk.
REPLAY_TIMEOUT_SECONDS = env.float("REPLAY_TIMEOUT_SECONDS", 120.0, validate=Range(1, 540))
REPLAY_MEMORY_BYTES = env.int("REPLAY_MEMORY_BYTES", 2 << 30, validate=Range(64 << 20, 1 << 50))
REPLAY_THREADS = env.int("REPLAY_THREADS", 1, validate=Range(1, 1024))
#: How many replays of a tenant may wait. One at a time runs.
REPLAY_QUEUE = env.int("REPLAY_QUEUE", 3, validate=Range(1, 1000))
REPLAY_LIMIT = env.str("REPLAY_LIMIT", "10 per hour", validate=check_rate_limit)

# Digests
#: An endpoint that is compatible with OpenAI's ``/chat/completions``, below this address. Without it and a
#: model, no digest is rewritten.
LLM_URL: str = env.web_address("LLM_URL", "")
LLM_MODEL = env.str("LLM_MODEL", "")
LLM_API_KEY = env.str("LLM_API_KEY", "")
LLM_TIMEOUT_SECONDS = env.float("LLM_TIMEOUT_SECONDS", 20.0, validate=Range(0.1, 600))

# SQL over the log
#: Limits of queries, and the service that runs them.
SQL_OPTIONS: SqlOptions = options_from(env, store_url=OBJECT_STORE_URL)

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

# --- What follows from them -------------------------------------------------------------------

PUBLIC_BASE_URL = PUBLIC_BASE_URL or f"http://127.0.0.1:{PORT}"
DASHBOARD_URL = DASHBOARD_URL or f"{PUBLIC_BASE_URL}/dashboard/"
ALLOWED_HOSTS = ALLOWED_HOSTS or [re.sub(r":[0-9]+$", "", urlsplit(PUBLIC_BASE_URL).netloc)]
# Pages that may call the API. They send tokens themselves, so credentials (cookies) are not allowed.
_dashboard = urlsplit(DASHBOARD_URL)
CORS_ALLOWED_ORIGINS = sorted(
    {*CORS_ALLOWED_ORIGINS, *ALLOWED_REDIRECT_HOSTS, f"{_dashboard.scheme}://{_dashboard.netloc}"}
)

if DEBUG and not (SECRET_KEY and JWT_PRIVATE_KEY):
    embedded.prepare_var_dir(VAR_DIR)
    SECRET_KEY = SECRET_KEY or kept_secret(VAR_DIR / "secrets" / "django.key", new_secret_key)
    JWT_PRIVATE_KEY = JWT_PRIVATE_KEY or kept_secret(VAR_DIR / "secrets" / "jwt.pem", new_signing_key)

ACCESS_TOKEN_LIFETIME = timedelta(seconds=ACCESS_TOKEN_SECONDS)
REFRESH_TOKEN_LIFETIME = timedelta(days=REFRESH_TOKEN_DAYS)
#: How long a deleted tenant stays in the manifest, and a released FQDN reserved for its tenant.
TOMBSTONE_LIFETIME = timedelta(days=TOMBSTONE_DAYS)
#: How long rows are kept, at least: their tables are dropped by the month.
EVENT_RETENTION = timedelta(days=EVENT_RETENTION_DAYS)
AUDIT_RETENTION = timedelta(days=AUDIT_RETENTION_DAYS)
#: How long the admin site shows builds of days, months and years. Each minute may add some per tenant.
BUILD_LIFETIME = timedelta(days=BUILD_DAYS)

EMAIL_BACKEND = "tenantadmin.mail.PrivateFileBackend"
EMAIL_FILE_PATH = str(VAR_DIR / "mail")
EMAIL_TIMEOUT = 10
MAGIC_LINKS_ENABLED = EMAIL_URL != ""
if EMAIL_URL not in {"", "files"}:
    _mail = urlsplit(EMAIL_URL)
    EMAIL_BACKEND = "tenantadmin.mail.CountedSmtpBackend"
    EMAIL_HOST, EMAIL_PORT = _mail.hostname, _mail.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
    EMAIL_USE_TLS = _mail.scheme in {"smtps", "smtp+tls"}
    EMAIL_USE_SSL = _mail.scheme == "smtp+ssl"

DATABASES = {
    "default": {
        **_database,
        "ENGINE": "django.db.backends.postgresql",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "application_name": "tenantadmin",
            # After a few executions on a connection, a statement is prepared, which saves planning it.
            "server_side_binding": True,
            "prepare_threshold": 3,
            **_database["OPTIONS"],
        },
    }
}

LOGGING = logging_config(level=LOG_LEVEL, is_json=LOG_FORMAT == "json")
if METRICS_ADDRESS is not None:
    # The processes of a container count in files of this folder. prometheus_client reads the variable.
    _folder = VAR_DIR / "run" / f"metrics-{METRICS_ADDRESS[1]}"
    os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(_folder))

# --- Signing in -------------------------------------------------------------------------------

JWT_AUDIENCE = "tenant-admin"
SIMPLE_JWT = {"TOKEN_TYPE_CLAIM": "typ", "USER_ID_CLAIM": "sub", "ALGORITHM": "ES256"}
#: A function of the user. If it returns True, a new token has the claim ``tos_required``.
TOS_REQUIRED_CHECK = "tosapp.acknowledgements.must_acknowledge"
SOCIALACCOUNT_ADAPTER = "accounts.signin.adapter.SettingsOnlyAdapter"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
# Of allauth, the providers are used for everybody; login stages and second factors for the admin site.
ACCOUNT_ADAPTER = "accounts.signin.staff.adapters.StaffAccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
#: For this many seconds after a sign-in or its confirmation, staff may end users' rights without another one.
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
MFA_ADAPTER = "accounts.signin.staff.adapters.StaffMfaAdapter"
MFA_FORMS = {"authenticate": "accounts.signin.staff.trail.CodeForm"}
MFA_SUPPORTED_TYPES = ["webauthn", "totp", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Tenant administration"
#: A session of the admin site ends after this time, and when it was idle for `SESSION_COOKIE_AGE` seconds.
STAFF_SESSION_SECONDS = 12 * 3600
SESSION_COOKIE_AGE = 30 * 60
#: A sign-in that was begun is forgotten after this time.
SIGNIN_STATE_SECONDS = 600
MAGIC_LINK_SECONDS = 900
RATE_LIMIT_NAMESPACE = "tenantadmin-limits"

# --- Django -----------------------------------------------------------------------------------

INSTALLED_APPS = [
    # Before the admin, whose templates it replaces. Its default configuration would replace our site too.
    "unfold.apps.BasicAppConfig",
    "tenantadmin.apps.StaffSiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    # For the pages of allauth.mfa.
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.google",
    "allauth.socialaccount.providers.microsoft",
    "allauth.socialaccount.providers.openid_connect",
    "corsheaders",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    # Static files only: the editor of the dashboard.
    "django_ace",
    "accounts",
    "tosapp",
    "rules",
    "logs",
    "analytics",
    "tenantadmin.backoffice",
    # Last, because it removes models of the apps above from the admin site.
    "tenantadmin.apps.TenantadminConfig",
]
MIDDLEWARE = [
    "tenantadmin.lib.http.middleware.request_id",
    "corsheaders.middleware.CorsMiddleware",
    "tenantadmin.lib.http.middleware.health",
    "tenantadmin.lib.http.middleware.security_headers",
    "tenantadmin.lib.http.middleware.refuse_nul",
    "tenantadmin.lib.http.middleware.body_limit",
    "tenantadmin.lib.http.middleware.json_errors",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tenantadmin.lib.http.middleware.PageSessions",
    # Sets Content-Length. Without it, the server would send the body in chunks.
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "tenantadmin.lib.http.middleware.PageUsers",
    "accounts.signin.staff.sessions.StaffSessions",
    "tenantadmin.lib.http.middleware.PageMessages",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
ROOT_URLCONF = "tenantadmin.urls"
WSGI_APPLICATION = "tenantadmin.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "tenantadmin.backoffice.navigation.site_context",
            ]
        },
    }
]
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
LOGOUT_REDIRECT_URL = "admin:login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
FORMAT_MODULE_PATH = "tenantadmin.formats"
STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    #: Raw logs, compacted logs, rollups and terms of service, on S3 or in files.
    "objects": storage_settings(OBJECT_STORE_URL),
}
# A file that is edited in development is sent as it is now.
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_USE_FINDERS = DEBUG
if DEBUG:
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}

#: Of pages that send no policy of their own. No inline script or style, no other host.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        # QR codes, and the icons of Swagger UI.
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
#: What the pages of the admin site need beside that: the scripts of django-unfold contain expressions of
#: Alpine, which evaluates them.
STAFF_SECURITY_POLICY = {"script-src": [UNSAFE_EVAL]}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_BASE_URL.startswith("https://")
if SESSION_COOKIE_SECURE:
    # Browsers take cookies of such a name from this host by HTTPS alone.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
if BEHIND_TLS_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# The proxy redirects from plain HTTP, because health checks of the container use no TLS. The owner of the
# domain decides about subdomains and preload lists.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]

#: No request waits longer than this for the cache or for rate limits. A connection that the server has closed
#: is opened again once; by default, redis-py also repeats a command that timed out, three times.
REDIS_OPTIONS = {
    "socket_timeout": 2.0,
    "socket_connect_timeout": 2.0,
    "retry": Retry(NoBackoff(), 1, (RedisConnectionError,)),
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": REDIS_OPTIONS,
    }
}

# --- Admin site -------------------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": "Tenant administration",
    "SITE_HEADER": "Tenant administration",
    "SITE_SYMBOL": "database",
    "SITE_URL": "/docs",
    "SITE_FAVICONS": [{"rel": "icon", "href": "data:,"}],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": False,
    "STYLES": ["tenantadmin.backoffice.navigation.stylesheet"],
    "ACCOUNT": {"navigation": "tenantadmin.backoffice.navigation.account_links"},
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": "tenantadmin.backoffice.navigation.sidebar",
    },
}

# --- API --------------------------------------------------------------------------------------

CORS_URLS_REGEX = r"^/(?!admin/|static/)"
CORS_ALLOW_HEADERS = ["accept", "authorization", "content-type", "if-match", "if-none-match", "x-request-id"]
CORS_EXPOSE_HEADERS = [
    "ETag",
    "X-Request-Id",
    "Retry-After",
    "Location",
    "X-Row-Count",
    "X-Truncated",
    "X-Result-Cache",
    "X-Engine",
    "X-Tos-Hash",
    "Content-Disposition",
]

#: A POST, PUT or PATCH with a larger body gets 413 (contract: Limits).
MAX_BODY_BYTES = 1_048_576
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["tenantadmin.lib.http.defaults.DenyByDefault"],
    "DEFAULT_RENDERER_CLASSES": ["tenantadmin.lib.http.defaults.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tenantadmin.lib.http.parsers.StrictJsonParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "tenantadmin.lib.http.defaults.OneRepresentation",
    "DEFAULT_SCHEMA_CLASS": "tenantadmin.lib.http.schema.ContractSchema",
    "EXCEPTION_HANDLER": "tenantadmin.lib.http.handler.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Tenant Administration and Analytics Service",
    "DESCRIPTION": "Administration and analytics of a SQL caching proxy: tenants, cache rules, logs, usage.",
    "VERSION": "2.0.0",
    "OAS_VERSION": "3.0.3",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATIONS": False,
    "PATH_CONVERTER_OVERRIDES": {
        "email": {
            "type": "string",
            "anyOf": [{"format": "email"}, {"enum": ["me"]}],
            "description": "An email address. `me` is the address of the caller.",
        }
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "tenantadmin.contract.add_from_apps",
        "tenantadmin.lib.http.finishing.finish_contract",
    ],
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_SUFFIX": "",
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": ENUMERATIONS,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# --- Tenants ----------------------------------------------------------------------------------

#: Classes that create and delete a tenant's other documents together with the tenant.
TENANT_DOCUMENTS = ["rules.ruleset.RulesetDocument"]
#: The limits of each plan. None: no limit.
PLAN_LIMITS: dict[str, dict[str, int | None]] = {
    "free": {"tenants": 1, "fqdns": 2, "rules": 25},
    "team": {"tenants": 10, "fqdns": 10, "rules": 250},
    "enterprise": {"tenants": None, "fqdns": None, "rules": None},
}
#: How many drafts of its rules a tenant may have at a time.
MAX_RULE_DRAFTS = 25
# --- Celery -----------------------------------------------------------------------------------

CELERY_BROKER_URL = embedded.celery_broker_url(REDIS_URL)
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
# A task is acknowledged after it ran, so the task of a killed worker runs again.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker asks for tasks with a timeout of a second, so a longer silence means that Redis hangs. A request
# that publishes a task does not wait longer either.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 5.0,
    "socket_connect_timeout": 5.0,
}
# On shutdown, a worker waits this many seconds for its tasks, then returns them to the queue.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3.0
CELERY_TIMEZONE = "UTC"
# Beat's own default is the working directory, which an image does not let it write.
CELERY_BEAT_SCHEDULER = "tenantadmin.run.beat.SteadyScheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "beat-schedule")
# A worker serves all queues unless it is told which: `celery worker --queues replays`.
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {name: {} for name in queues.QUEUES}
CELERY_TASK_ROUTES = {
    "analytics.tasks.run_replay": {"queue": queues.REPLAYS},
    "analytics.tasks.mine_tenant": {"queue": queues.REPLAYS},
    "analytics.tasks.measure_tenant": {"queue": queues.REPLAYS},
    "analytics.tasks.queue_builds": {"queue": queues.FINDING},
    "analytics.tasks.sweep_logs": {"queue": queues.FINDING},
    "analytics.tasks.refresh_tenant": {"queue": queues.FINDING},
    "analytics.tasks.refresh_outdated_days": {"queue": queues.FINDING},
    "analytics.tasks.receive_object_events": {"queue": queues.FINDING},
    "analytics.tasks.refresh_day": {"queue": queues.BUILDING},
    "analytics.tasks.build_day_part": {"queue": queues.BUILDING},
    "analytics.tasks.refresh_periods": {"queue": queues.BUILDING},
    "analytics.tasks.refresh_digests": {"queue": queues.FINDING},
    "analytics.tasks.refresh_digest": {"queue": queues.BUILDING},
    "analytics.tasks.clean_up": {"queue": queues.CLEANING},
    "analytics.tasks.remove_unfinished_writes": {"queue": queues.CLEANING},
}
