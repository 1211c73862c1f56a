"""Django's settings. They use the environment variables in `tenantadmin/settings/variables.py`."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from urllib.parse import unquote, urlsplit

from csp.constants import NONE, SELF, UNSAFE_EVAL
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from tenantadmin.conf.secrets import ensure_secret, new_secret_key, new_signing_key
from tenantadmin.lib.core.log_lines import logging_config
from tenantadmin.lib.core.queues import QUEUES
from tenantadmin.lib.objectstore import storage_settings
from tenantadmin.run import embedded
from tenantadmin.settings.api import *  # noqa: F403
from tenantadmin.settings.variables import *  # noqa: F403

# ruff: noqa: F405  # names of the star imports

# --- Addresses and secrets ------------------------------------------------------------------

PUBLIC_BASE_URL = PUBLIC_BASE_URL or f"http://127.0.0.1:{PORT}"
DASHBOARD_URL = DASHBOARD_URL or f"{PUBLIC_BASE_URL}/dashboard/"
ALLOWED_HOSTS = ALLOWED_HOSTS or [re.sub(r":[0-9]+$", "", urlsplit(PUBLIC_BASE_URL).netloc)]

if DEBUG and not (SECRET_KEY and JWT_PRIVATE_KEY):  # type: ignore[used-before-def]  # star import
    embedded.prepare_var_dir(VAR_DIR)
    SECRET_KEY = SECRET_KEY or ensure_secret(VAR_DIR / "secrets" / "django.key", new_secret_key)
    JWT_PRIVATE_KEY = JWT_PRIVATE_KEY or ensure_secret(VAR_DIR / "secrets" / "jwt.pem", new_signing_key)

# --- Apps, middleware, templates ------------------------------------------------------------

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
    # First, so that what the others answer themselves has the headers too.
    "tenantadmin.lib.http.middleware.security_headers",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "tenantadmin.lib.http.middleware.health",
    "tenantadmin.lib.http.middleware.refuse_nul",
    "tenantadmin.lib.http.middleware.body_limit",
    "tenantadmin.lib.http.middleware.json_errors",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "tenantadmin.lib.http.middleware.PageCompression",
    "tenantadmin.lib.http.middleware.PageSessions",
    # Sets Content-Length. Without it, the server would send the body in chunks.
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "tenantadmin.lib.http.middleware.PageUsers",
    "accounts.signin.staff.sessions.StaffSessions",
    "tenantadmin.lib.http.middleware.PageMessages",
    "allauth.account.middleware.AccountMiddleware",
]
ROOT_URLCONF = "tenantadmin.urls"
WSGI_APPLICATION = "tenantadmin.wsgi.application"
APPEND_SLASH = False
_LOADERS = ["django.template.loaders.filesystem.Loader", "tenantadmin.backoffice.loader.FrameLoader"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": _LOADERS if DEBUG else [("django.template.loaders.cached.Loader", _LOADERS)],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "tenantadmin.backoffice.navigation.site_context",
            ],
            "builtins": ["tenantadmin.lib.http.product"],
        },
    }
]

# --- Database, cache, object store and static files -----------------------------------------

DATABASES = {
    "default": {
        **database,
        "ENGINE": "tenantadmin.lib.database.postgresql",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "application_name": "tenantadmin",
            # A server that hangs accepts connections, and says nothing.
            "connect_timeout": 5,
            # After a few executions on a connection, a statement is prepared, which saves planning it.
            "server_side_binding": True,
            "prepare_threshold": 3,
            **database["OPTIONS"],
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SQL_CATALOG = SQL_CATALOG or (database if DEBUG else None)

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
        # Releases before version 2 pickled values, which this one neither reads nor writes.
        "VERSION": 2,
        "OPTIONS": {**REDIS_OPTIONS, "serializer": "tenantadmin.lib.core.rendering.CacheSerializer"},
    }
}
RATE_LIMIT_NAMESPACE = "tenantadmin-limits"

STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    #: Raw logs, compacted logs, rollups and terms of service, on S3 or in files.
    "objects": storage_settings(OBJECT_STORE_URL),
}
WHITENOISE_ALLOW_ALL_ORIGINS = False
if DEBUG:
    # collectstatic does it for production.
    MIDDLEWARE.insert(
        MIDDLEWARE.index("whitenoise.middleware.WhiteNoiseMiddleware"),
        "tenantadmin.lib.http.middleware.compress_static",
    )
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}

# --- Language and time ----------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "tenantadmin.formats"

# --- Security -------------------------------------------------------------------------------

CSRF_FAILURE_VIEW = "tenantadmin.lib.http.handler.answer_csrf_failure"
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
#: Alpine, which evaluates them. The form that opens a tenant leads to the dashboard, wherever that is.
STAFF_SECURITY_POLICY = {"script-src": [UNSAFE_EVAL]}
if not DASHBOARD_URL.startswith(f"{PUBLIC_BASE_URL}/"):
    STAFF_SECURITY_POLICY["form-action"] = ["{0.scheme}://{0.netloc}".format(urlsplit(DASHBOARD_URL))]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_BASE_URL.startswith("https://")
if SESSION_COOKIE_SECURE:
    # Browsers take cookies of such a name from this host by HTTPS alone.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
if BEHIND_TLS_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# The proxy redirects from plain HTTP, because health checks of the container use no TLS. The owner of the
# domain decides about subdomains and preload lists.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]

# --- Users and signing in -------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
LOGOUT_REDIRECT_URL = "admin:login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

ACCESS_TOKEN_LIFETIME = timedelta(seconds=ACCESS_TOKEN_SECONDS)
REFRESH_TOKEN_LIFETIME = timedelta(days=REFRESH_TOKEN_DAYS)
JWT_AUDIENCE = "tenant-admin"
SIMPLE_JWT = {"TOKEN_TYPE_CLAIM": "typ", "USER_ID_CLAIM": "sub", "ALGORITHM": "ES256"}
#: A function of the user. If it returns True, a new token has the claim ``tos_required``.
TOS_REQUIRED_CHECK = "tosapp.acknowledgements.must_acknowledge"
SOCIALACCOUNT_ADAPTER = "accounts.signin.providers.SettingsOnlyAdapter"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
# The API uses allauth's providers, the admin site also its login stages and second factors.
ACCOUNT_ADAPTER = "accounts.signin.staff.adapters.StaffAccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
#: For this many seconds after a sign-in or its confirmation, staff may end users' rights without another one.
ACCOUNT_REAUTHENTICATION_TIMEOUT = 900
MFA_ADAPTER = "accounts.signin.staff.adapters.StaffMfaAdapter"
# These forms record the proofs that they refuse, and refuse what is malformed.
ACCOUNT_FORMS = {"reauthenticate": "accounts.signin.staff.trail.ConfirmingPasswordForm"}
MFA_FORMS = {
    "add_webauthn": "accounts.signin.staff.trail.AddedPasskeyForm",
    "authenticate": "accounts.signin.staff.trail.CodeForm",
    "authenticate_webauthn": "accounts.signin.staff.trail.PasskeyForm",
    "login_webauthn": "accounts.signin.staff.trail.PasskeySignInForm",
    "reauthenticate": "accounts.signin.staff.trail.ConfirmingCodeForm",
    "reauthenticate_webauthn": "accounts.signin.staff.trail.ConfirmingPasskeyForm",
}
MFA_SUPPORTED_TYPES = ["webauthn", "totp", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = PRODUCT_NAME
#: A session of the admin site ends after this time, and when it was idle for `SESSION_COOKIE_AGE` seconds.
STAFF_SESSION_SECONDS = 12 * 3600
SESSION_COOKIE_AGE = 30 * 60
#: A sign-in that was begun is forgotten after this time.
SIGNIN_STATE_SECONDS = 600
MAGIC_LINK_SECONDS = 900

# --- Email ----------------------------------------------------------------------------------

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

# --- Admin site -----------------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": PRODUCT_NAME,
    "SITE_HEADER": PRODUCT_NAME,
    "SITE_ICON": "tenantadmin.backoffice.navigation.icon",
    # The sidebar leads to what the menu would call "View site".
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "href": "data:,"}],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": False,
    "STYLES": [f"tenantadmin.backoffice.navigation.{name}" for name in ("tokens", "palette", "stylesheet")],
    "ACCOUNT": {"navigation": "tenantadmin.backoffice.navigation.account_links"},
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": "tenantadmin.backoffice.navigation.sidebar",
    },
}

# --- API ------------------------------------------------------------------------------------

#: A POST, PUT or PATCH with a larger body gets 413 (contract: Limits).
MAX_BODY_BYTES = 1_048_576
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

# Pages that may call the API. They send tokens themselves, so credentials (cookies) are not allowed.
_dashboard = urlsplit(DASHBOARD_URL)
CORS_ALLOWED_ORIGINS = sorted(
    {*CORS_ALLOWED_ORIGINS, *ALLOWED_REDIRECT_HOSTS, f"{_dashboard.scheme}://{_dashboard.netloc}"}
)
CORS_URLS_REGEX = r"^/(?!admin/|static/)"
CORS_ALLOW_HEADERS = [
    "accept",
    "authorization",
    "content-type",
    "if-match",
    "if-none-match",
    "x-reason",
    "x-request-id",
]
CORS_EXPOSE_HEADERS = [
    "ETag",
    "X-Request-Id",
    "Retry-After",
    "Location",
    "Link",
    "X-Row-Count",
    "X-Truncated",
    "X-Result-Cache",
    "X-Engine",
    "X-Tos-Hash",
    "Content-Disposition",
]

# --- Tenants --------------------------------------------------------------------------------

#: Classes that create and delete a tenant's other documents together with the tenant.
TENANT_DOCUMENTS = ["rules.ruleset.RulesetDocument"]
#: A function of the id of a tenant. It returns how the log spells the names of tables.
LOGGED_TABLES = "logs.table_names.spelled_tables"
#: A function of the id of a deleted assessment. It removes its logs and all that was made of them.
ASSESSMENT_DATA = "analytics.assessments.removal.remove_data"
#: The limits of each plan (`accounts.limits`). None: no limit.
PLAN_LIMITS: dict[str, dict[str, int | None]] = {
    plan: {
        **limits,
        "stored_bytes": size * (20 << 20),
        "markers": size * 100_000,
        "cache_entries": size * 100_000,
    }
    for plan, size, limits in (
        ("free", 1, {"tenants": 1, "fqdns": 2, "rules": 25}),
        ("team", 10, {"tenants": 10, "fqdns": 10, "rules": 250}),
        ("enterprise", 100, {"tenants": None, "fqdns": None, "rules": None}),
    )
}
#: Bytes of events a day that belong to no tenant, of one client network (`accounts.limits`).
NETWORK_STORED_BYTES = 20 << 20
#: How many drafts of its rules a tenant may have at a time.
MAX_RULE_DRAFTS = 25
#: How long a deleted tenant stays in the manifest, and a released FQDN reserved for its tenant.
TOMBSTONE_LIFETIME = timedelta(days=TOMBSTONE_DAYS)

# --- Retention ------------------------------------------------------------------------------

#: Rows are kept at least this long: a job drops whole months.
EVENT_RETENTION = timedelta(days=EVENT_RETENTION_DAYS)
AUDIT_RETENTION = timedelta(days=AUDIT_RETENTION_DAYS)
#: How long the admin site shows builds of days, months and years. Each minute may add some per tenant.
BUILD_LIFETIME = timedelta(days=BUILD_DAYS)

# --- Celery ---------------------------------------------------------------------------------

CELERY_BROKER_URL = embedded.celery_broker_url(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
# A task is acknowledged after it ran, so the task of a killed worker runs again.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# KiB. DuckDB keeps memory that it freed, so a child that has ever held more ends after its task.
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 400_000
# A worker asks for tasks with a timeout of a second, so a longer silence means that Redis hangs. A request
# that publishes a task does not wait longer either.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 5.0,
    "socket_connect_timeout": 5.0,
}
# On shutdown, a worker waits this many seconds for its tasks, then returns them to the queue.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3.0
# Beat's own default is the working directory, which an image does not let it write.
CELERY_BEAT_SCHEDULER = "tenantadmin.run.beat.SteadyScheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "beat-schedule")
# `tenantadmin/celery.py` names the queue of each task. A worker serves all queues unless it is told which:
# `celery worker --queues replays`.
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {name: {} for name in QUEUES}

# --- Logging and metrics --------------------------------------------------------------------

LOGGING = logging_config(level=LOG_LEVEL, is_json=LOG_FORMAT == "json")
if METRICS_ADDRESS is not None:
    # The processes of a container count in files of this folder. prometheus_client reads the variable.
    _folder = VAR_DIR / "run" / f"metrics-{METRICS_ADDRESS[1]}"
    os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(_folder))
