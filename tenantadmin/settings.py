"""Settings of the service. Every one that an operator may set comes from the environment.

Each variable is described in ``docs/configuration.md``; a test keeps the two equal.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

from logs.sql.options import read_options
from tenantadmin import embedded
from tenantadmin.conf.providers import read_providers
from tenantadmin.conf.secrets import is_weak_secret, kept_secret, new_secret_key, new_signing_key

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

# --- Where things are -------------------------------------------------------------------------

VAR_DIR = Path(env.str("VAR_DIR", default=str(BASE_DIR / "var"))).resolve()
_EMBEDDED = embedded.endpoints(VAR_DIR)

#: Development is on by itself only while the embedded database stands in for a real one.
DEBUG = env.bool("DJANGO_DEBUG", default="DATABASE_URL" not in env.ENVIRON)

PUBLIC_BASE_URL = env.str(
    "PUBLIC_BASE_URL", default=f"http://127.0.0.1:{env.int('PORT', default=8000)}"
).rstrip("/")
DASHBOARD_URL = env.str("DASHBOARD_URL", default=f"{PUBLIC_BASE_URL}/docs").rstrip("/")
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", default=["*"] if DEBUG else [PUBLIC_BASE_URL.partition("://")[2].partition(":")[0]]
)
#: Scheme and host, with the port where it is not the scheme's own, that sign-in may return to.
ALLOWED_REDIRECT_HOSTS: list[str] = env.list("ALLOWED_REDIRECT_HOSTS", default=[])
#: Networks whose X-Forwarded-For is believed.
TRUSTED_PROXIES: list[str] = env.list("TRUSTED_PROXIES", default=[])

_DATABASE = env.db_url("DATABASE_URL", default=_EMBEDDED.database_url)
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
REDIS_URL = env.str("REDIS_URL", default=_EMBEDDED.redis_url)
OBJECT_STORE_URL = env.str("OBJECT_STORE_URL", default=f"file://{VAR_DIR / 'objects'}")

# --- Secrets ----------------------------------------------------------------------------------

if DEBUG:
    SECRET_KEY = env.str("DJANGO_SECRET_KEY", default="") or kept_secret(
        VAR_DIR / "secrets" / "django.key", new_secret_key
    )
    JWT_PRIVATE_KEY = env.str("JWT_PRIVATE_KEY", default="", multiline=True) or kept_secret(
        VAR_DIR / "secrets" / "jwt.pem", new_signing_key
    )
else:
    SECRET_KEY = env.str("DJANGO_SECRET_KEY", default="")
    JWT_PRIVATE_KEY = env.str("JWT_PRIVATE_KEY", default="", multiline=True)
    if is_weak_secret(SECRET_KEY):
        raise ImproperlyConfigured(
            "DJANGO_SECRET_KEY is missing, short or a known default. Set it to 50 random characters or more."
        )
    if not JWT_PRIVATE_KEY:
        raise ImproperlyConfigured(
            "JWT_PRIVATE_KEY is missing. Set it to a P-256 private key in PEM "
            "(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)."
        )

#: Public keys (PEM, one after the other) whose tokens are still accepted during a rotation.
JWT_PREVIOUS_PUBLIC_KEYS = env.str("JWT_PREVIOUS_PUBLIC_KEYS", default="", multiline=True)
JWT_AUDIENCE = "tenant-admin"
ACCESS_TOKEN_LIFETIME = timedelta(seconds=env.int("ACCESS_TOKEN_SECONDS", default=3600))
REFRESH_TOKEN_LIFETIME = timedelta(days=env.int("REFRESH_TOKEN_DAYS", default=30))
#: How long a process remembers what a token may do; revocation acts within this time.
PRINCIPAL_CACHE_SECONDS = env.float("PRINCIPAL_CACHE_SECONDS", default=3.0)
#: Asked at token minting whether the claim ``tos_required`` is due: a function of the user.
TOS_REQUIRED_CHECK = "tosapp.acknowledgements.must_acknowledge"
#: Within this time a process adopts the terms of service that another one has published.
TOS_REFRESH_SECONDS = env.float("TOS_REFRESH_SECONDS", default=30.0)

# --- SQL over the log -------------------------------------------------------------------------

#: How queries run, and where.
SQL_OPTIONS = read_options(env)

# --- Signing in -------------------------------------------------------------------------------

#: Domains whose addresses may sign in; empty permits all.
SIGNIN_EMAIL_DOMAINS: list[str] = env.list("SIGNIN_EMAIL_DOMAINS", default=[])
#: Identity providers in the order in which they are offered: the first is the default.
SIGNIN_PROVIDERS, SOCIALACCOUNT_PROVIDERS = read_providers(env)
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
MAGIC_LINK_EMAIL_LIMIT = env.str("MAGIC_LINK_EMAIL_LIMIT", default="5 per 15 minutes")
MAGIC_LINK_ADDRESS_LIMIT = env.str("MAGIC_LINK_ADDRESS_LIMIT", default="20 per 15 minutes")
RATE_LIMIT_NAMESPACE = "tenantadmin-limits"

#: Mail is written to files until a server is named; an empty EMAIL_URL turns magic links off.
if "EMAIL_URL" not in env.ENVIRON:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = str(VAR_DIR / "mail")
elif env.str("EMAIL_URL"):
    vars().update(env.email_url("EMAIL_URL"))
MAGIC_LINKS_ENABLED = bool(env.str("EMAIL_URL", default="file"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default="Tenant administration <no-reply@localhost>")

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
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(VAR_DIR / "static")))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = False
WHITENOISE_USE_FINDERS = DEBUG
if DEBUG:
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_BASE_URL.startswith("https://")
if env.bool("BEHIND_TLS_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=0)
# Redirects from plain HTTP are the proxy's, since probes of the container come without TLS; subdomains and
# preload lists are the domain owner's to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]

CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

# --- API --------------------------------------------------------------------------------------

#: Over this, a POST, PUT or PATCH is answered with 413 (contract: Limits).
MAX_BODY_BYTES = 1_048_576
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["tenantadmin.http.defaults.DenyByDefault"],
    "DEFAULT_RENDERER_CLASSES": ["tenantadmin.http.renderers.JsonRenderer"],
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
    "POSTPROCESSING_HOOKS": ["tenantadmin.http.schema.finish_contract"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

SIMPLE_JWT = {"TOKEN_TYPE_CLAIM": "typ", "USER_ID_CLAIM": "sub", "ALGORITHM": "ES256"}

# --- Tenants ----------------------------------------------------------------------------------

#: Who keeps a tenant's documents beside its configuration: made and deleted with the tenant.
TENANT_DOCUMENTS = ["rules.ruleset.RulesetKeeper"]
#: How long a deleted tenant stays in the manifest, and a released FQDN with whoever held it.
TOMBSTONE_LIFETIME = timedelta(days=env.int("TOMBSTONE_DAYS", default=30))
#: Domains under which any tenant may claim names; host names in lower case.
PLATFORM_DOMAINS: list[str] = env.list("PLATFORM_DOMAINS", default=["gateway.localhost"])
#: The most of each that a plan allows; None for no limit.
PLAN_LIMITS: dict[str, dict[str, int | None]] = {
    "free": {"tenants": 1, "fqdns": 2, "rules": 25},
    "team": {"tenants": 10, "fqdns": 10, "rules": 250},
    "enterprise": {"tenants": None, "fqdns": None, "rules": None},
}
#: Name servers (addresses) asked for domain challenges; empty for the system's own. Port and seconds.
DNS_NAMESERVERS: list[str] = env.list("DNS_NAMESERVERS", default=[])
DNS_PORT = env.int("DNS_PORT", default=53)
DNS_TIMEOUT_SECONDS = env.float("DNS_TIMEOUT_SECONDS", default=5.0)

# --- Summaries --------------------------------------------------------------------------------

#: How long the admin site shows a build of a day, a month or a year; each minute may add some per tenant.
BUILD_LIFETIME = timedelta(days=env.int("BUILD_DAYS", default=7))

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
    "filters": {"request_id": {"()": "tenantadmin.http.request_ids.RequestIdFilter"}},
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request_id"]},
    },
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.server": {"level": "WARNING"},
        # Jobs that find nothing to do come and go every minute; what others did, they say themselves.
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
