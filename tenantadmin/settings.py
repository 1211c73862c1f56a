"""Settings of the service. Every one that an operator may set comes from the environment.

`tenantadmin.conf.variables` lists them; each is described in ``docs/configuration.md``.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from environ import Env

from logs.sql.options import options_from
from tenantadmin import embedded
from tenantadmin.conf.kinds import PRIVATE_FILES
from tenantadmin.conf.reading import read_configuration
from tenantadmin.conf.secrets import kept_secret, new_secret_key, new_signing_key
from tenantadmin.objectstore import storage_settings

BASE_DIR = Path(__file__).resolve().parent.parent
env = read_configuration(os.environ)

# --- Where things are -------------------------------------------------------------------------

DEFAULT_VAR_DIR = BASE_DIR / "var"
VAR_DIR: Path = env["VAR_DIR"] or DEFAULT_VAR_DIR
_EMBEDDED = embedded.endpoints(VAR_DIR)

DEBUG: bool = env["DJANGO_DEBUG"]

#: Where `manage.py serve` listens.
HOST: str = env["HOST"]
PORT: int = env["PORT"]
#: How many requests a web process answers at a time. More than SQL queries can hold (SQL_SLOTS + SQL_QUEUE),
#: so that other requests are answered meanwhile.
WEB_THREADS: int = env["WEB_THREADS"]
#: Within this time the body of a request must arrive.
BODY_TIMEOUT_SECONDS: float = env["BODY_TIMEOUT_SECONDS"]
PUBLIC_BASE_URL: str = env["PUBLIC_BASE_URL"] or f"http://127.0.0.1:{PORT}"
DASHBOARD_URL: str = env["DASHBOARD_URL"] or f"{PUBLIC_BASE_URL}/docs"
ALLOWED_HOSTS: list[str] = env["ALLOWED_HOSTS"] or (
    ["*"] if DEBUG else [re.sub(r":[0-9]+$", "", urlsplit(PUBLIC_BASE_URL).netloc)]
)
#: Scheme and host, with the port where it is not the scheme's own, that sign-in may return to.
ALLOWED_REDIRECT_HOSTS: list[str] = env["ALLOWED_REDIRECT_HOSTS"]
# Pages that may call the API. They send tokens themselves, so credentials (cookies) are not allowed.
_dashboard = urlsplit(DASHBOARD_URL)
CORS_ALLOWED_ORIGINS = sorted(
    {
        *env["CORS_ALLOWED_ORIGINS"],
        *ALLOWED_REDIRECT_HOSTS,
        f"{_dashboard.scheme}://{_dashboard.netloc}",
    }
)
CORS_URLS_REGEX = r"^/(?!admin/|static/)"
CORS_ALLOW_HEADERS = [
    *("accept", "authorization", "content-type"),
    *("if-match", "if-none-match", "x-request-id"),
]
CORS_EXPOSE_HEADERS = [
    *("ETag", "X-Request-Id", "Retry-After", "Location"),
    *("X-Row-Count", "X-Truncated", "X-Tos-Hash", "Content-Disposition"),
]
#: Networks whose X-Forwarded-For is believed.
TRUSTED_PROXIES: list[str] = env["TRUSTED_PROXIES"]

_DATABASE = env["DATABASE_URL"] or Env.db_url_config(_EMBEDDED.database_url)
DATABASES = {
    "default": {
        **_DATABASE,
        "ENGINE": "tenantadmin.database",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "application_name": "tenantadmin",
            # A statement that a connection has sent a few times is planned no more.
            "server_side_binding": True,
            "prepare_threshold": 3,
            **_DATABASE.get("OPTIONS", {}),
        },
    }
}
#: How long a statement may take in a web process and in a job, and how long a transaction may wait for its
#: next statement; 0 for no limit.
DATABASE_STATEMENT_SECONDS: float = env["DATABASE_STATEMENT_SECONDS"]
DATABASE_JOB_STATEMENT_SECONDS: float = env["DATABASE_JOB_STATEMENT_SECONDS"]
DATABASE_IDLE_SECONDS: float = env["DATABASE_IDLE_SECONDS"]
REDIS_URL: str = env["REDIS_URL"] or _EMBEDDED.redis_url

# --- Secrets ----------------------------------------------------------------------------------

# Without development mode both are given: `read_configuration` has seen to it.
SECRET_KEY: str = env["DJANGO_SECRET_KEY"] or kept_secret(VAR_DIR / "secrets" / "django.key", new_secret_key)
JWT_PRIVATE_KEY: str = env["JWT_PRIVATE_KEY"] or kept_secret(VAR_DIR / "secrets" / "jwt.pem", new_signing_key)
#: Public keys (PEM, one after the other) whose tokens are still accepted during a rotation.
JWT_PREVIOUS_PUBLIC_KEYS = env["JWT_PREVIOUS_PUBLIC_KEYS"] or ""
JWT_AUDIENCE = "tenant-admin"
ACCESS_TOKEN_LIFETIME = timedelta(seconds=env["ACCESS_TOKEN_SECONDS"])
REFRESH_TOKEN_LIFETIME = timedelta(days=env["REFRESH_TOKEN_DAYS"])
#: How long a process remembers what a token may do; revocation acts within this time.
PRINCIPAL_CACHE_SECONDS = env["PRINCIPAL_CACHE_SECONDS"]
#: Asked at token minting whether the claim ``tos_required`` is due: a function of the user.
TOS_REQUIRED_CHECK = "tosapp.acknowledgements.must_acknowledge"
#: Within this time a process adopts the terms of service that another one has published.
TOS_REFRESH_SECONDS = env["TOS_REFRESH_SECONDS"]

# --- SQL over the log -------------------------------------------------------------------------

#: How queries run, and where.
SQL_OPTIONS = options_from(env)

# --- Signing in -------------------------------------------------------------------------------

#: Domains whose addresses may sign in; empty permits all.
SIGNIN_EMAIL_DOMAINS: list[str] = env["SIGNIN_EMAIL_DOMAINS"]
#: Identity providers in the order in which they are offered: the first is the default.
SIGNIN_PROVIDERS: list[str] = env["SIGNIN_PROVIDERS"]
SOCIALACCOUNT_PROVIDERS = env["SOCIALACCOUNT_PROVIDERS"]
SOCIALACCOUNT_ADAPTER = "accounts.signin.adapter.SettingsOnlyAdapter"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
# Nothing of allauth but its providers is used: no address of it is served.
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
#: A sign-in that was begun is forgotten after this time.
SIGNIN_STATE_SECONDS = 600

MAGIC_LINK_SECONDS = 900
MAGIC_LINK_EMAIL_LIMIT = env["MAGIC_LINK_EMAIL_LIMIT"]
MAGIC_LINK_ADDRESS_LIMIT = env["MAGIC_LINK_ADDRESS_LIMIT"]
PASSWORD_EMAIL_LIMIT = env["PASSWORD_EMAIL_LIMIT"]
PASSWORD_ADDRESS_LIMIT = env["PASSWORD_ADDRESS_LIMIT"]
RATE_LIMIT_NAMESPACE = "tenantadmin-limits"
#: Seconds of work that one caller may ask for (`accounts.budgets`).
CALLER_BUDGETS = {"lint": env["LINT_BUDGET"], "query": env["QUERY_BUDGET"]}

#: Mail is written to files unless a server is named; an empty EMAIL_URL turns magic links off.
EMAIL_BACKEND = PRIVATE_FILES
EMAIL_FILE_PATH = str(VAR_DIR / "mail")
vars().update(env["EMAIL_URL"] or {})
MAGIC_LINKS_ENABLED = env["EMAIL_URL"] != {}
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env["EMAIL_FROM"]

# --- Django -----------------------------------------------------------------------------------

INSTALLED_APPS = [
    "tenantadmin.apps.StaffSiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.google",
    "allauth.socialaccount.providers.microsoft",
    "allauth.socialaccount.providers.openid_connect",
    "corsheaders",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "accounts",
    "tosapp",
    "rules",
    "logs",
    "analytics",
    # Last: it takes what others brought off the admin site.
    "tenantadmin.apps.TenantadminConfig",
]
MIDDLEWARE = [
    "tenantadmin.http.middleware.request_id",
    "corsheaders.middleware.CorsMiddleware",
    "tenantadmin.http.health.health",
    "tenantadmin.http.headers.SecurityHeaders",
    "tenantadmin.http.middleware.body_limit",
    "tenantadmin.http.middleware.json_errors",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    # Content-Length: without it the server sends chunks.
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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
            ]
        },
    }
]
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
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
STATIC_ROOT: Path = env["STATIC_ROOT"] or VAR_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    #: Raw logs, compacted logs, rollups and terms of service, on S3 or in files.
    "objects": storage_settings(env["OBJECT_STORE_URL"] or (VAR_DIR / "objects").as_uri()),
}
WHITENOISE_AUTOREFRESH = False
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
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_BASE_URL.startswith("https://")
if env["BEHIND_TLS_PROXY"]:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = env["HSTS_SECONDS"]
# Redirects from plain HTTP are the proxy's, since probes of the container come without TLS; subdomains and
# preload lists are the domain owner's to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        # Nothing waits for long on what only saves work.
        "OPTIONS": {"socket_timeout": 2.0, "socket_connect_timeout": 2.0},
    }
}

# --- API --------------------------------------------------------------------------------------

#: Over this, a POST, PUT or PATCH is answered with 413 (contract: Limits).
MAX_BODY_BYTES = 1_048_576
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["tenantadmin.http.defaults.DenyByDefault"],
    "DEFAULT_RENDERER_CLASSES": ["tenantadmin.http.defaults.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tenantadmin.http.parsers.StrictJsonParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "tenantadmin.http.defaults.OneRepresentation",
    "DEFAULT_SCHEMA_CLASS": "tenantadmin.http.schema.ContractSchema",
    "EXCEPTION_HANDLER": "tenantadmin.http.handler.exception_handler",
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
    "PATH_CONVERTER_OVERRIDES": {"email": {"type": "string", "format": "email"}},
    "POSTPROCESSING_HOOKS": [
        "tenantadmin.http.schema.finish_contract",
        "tenantadmin.contract.link_operations",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

SIMPLE_JWT = {"TOKEN_TYPE_CLAIM": "typ", "USER_ID_CLAIM": "sub", "ALGORITHM": "ES256"}

# --- Tenants ----------------------------------------------------------------------------------

#: Who keeps a tenant's documents beside its configuration: made and deleted with the tenant.
TENANT_DOCUMENTS = ["rules.ruleset.RulesetKeeper"]
#: How long a deleted tenant stays in the manifest, and a released FQDN with whoever held it.
TOMBSTONE_LIFETIME = timedelta(days=env["TOMBSTONE_DAYS"])
#: Domains under which any tenant may claim names; host names in lower case.
PLATFORM_DOMAINS: list[str] = env["PLATFORM_DOMAINS"]
#: The most of each that a plan allows; None for no limit.
PLAN_LIMITS: dict[str, dict[str, int | None]] = {
    "free": {"tenants": 1, "fqdns": 2, "rules": 25},
    "team": {"tenants": 10, "fqdns": 10, "rules": 250},
    "enterprise": {"tenants": None, "fqdns": None, "rules": None},
}
#: Name servers (addresses) asked for domain challenges; empty for the system's own. Port and seconds.
DNS_NAMESERVERS: list[str] = env["DNS_NAMESERVERS"]
DNS_PORT = env["DNS_PORT"]
DNS_TIMEOUT_SECONDS = env["DNS_TIMEOUT_SECONDS"]

# --- Events and audits ------------------------------------------------------------------------

#: How long rows are kept, at least: their tables are dropped by the month.
EVENT_RETENTION = timedelta(days=env["EVENT_RETENTION_DAYS"])
AUDIT_RETENTION = timedelta(days=env["AUDIT_RETENTION_DAYS"])

# --- Summaries --------------------------------------------------------------------------------

#: How long the admin site shows a build of a day, a month or a year; each minute may add some per tenant.
BUILD_LIFETIME = timedelta(days=env["BUILD_DAYS"])

# --- Celery -----------------------------------------------------------------------------------

CELERY_BROKER_URL = embedded.celery_broker_url(REDIS_URL)
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
# A task is acknowledged when it is done: a killed worker's task runs again.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 3600}
# Told to stop, a worker gives its tasks this long, then puts them back into the queue.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3.0
CELERY_TIMEZONE = "UTC"

# --- Logging ----------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "tenantadmin.core.request_ids.RequestIdFilter"}},
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request_id"]},
    },
    "root": {"handlers": ["stderr"], "level": env["LOG_LEVEL"]},
    "loggers": {
        # Without the handler that Django gives it in development, which says everything a second time.
        "django": {"level": "INFO"},
        "django.request": {"level": "ERROR"},
        "django.server": {"level": "WARNING"},
        # Jobs that find nothing to do come and go every minute; what others did, they say themselves.
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
