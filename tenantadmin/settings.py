"""Settings of the service. Operators set them by environment variables.

`tenantadmin.conf.variables` lists the variables, and ``docs/configuration.md`` describes each.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF, UNSAFE_EVAL
from environ import Env
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from logs.sql.options import options_from
from tenantadmin.conf.kinds import PRIVATE_FILES
from tenantadmin.conf.reading import read_configuration
from tenantadmin.conf.secrets import kept_secret, new_secret_key, new_signing_key
from tenantadmin.lib.core import queues
from tenantadmin.lib.core.log_lines import logging_config
from tenantadmin.lib.objectstore import storage_settings
from tenantadmin.run import embedded

BASE_DIR = Path(__file__).resolve().parent.parent
env = read_configuration(os.environ)

# --- Paths and addresses ----------------------------------------------------------------------

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
DASHBOARD_URL: str = env["DASHBOARD_URL"] or f"{PUBLIC_BASE_URL}/dashboard/"
ALLOWED_HOSTS: list[str] = env["ALLOWED_HOSTS"] or (
    ["*"] if DEBUG else [re.sub(r":[0-9]+$", "", urlsplit(PUBLIC_BASE_URL).netloc)]
)
#: Origins to which sign-in may redirect: scheme and host, and the port if it is not the default.
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
    *("X-Row-Count", "X-Truncated", "X-Result-Cache", "X-Engine", "X-Tos-Hash", "Content-Disposition"),
]
#: Networks of proxies whose X-Forwarded-For is trusted.
TRUSTED_PROXIES: list[str] = env["TRUSTED_PROXIES"]

_DATABASE = env["DATABASE_URL"] or Env.db_url_config(_EMBEDDED.database_url)
DATABASES = {
    "default": {
        **_DATABASE,
        "ENGINE": "tenantadmin.lib.database",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "application_name": "tenantadmin",
            # After a few executions on a connection, a statement is prepared, which saves planning it.
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
#: Previous public keys (PEM, one after the other). Their tokens are still accepted during a rotation.
JWT_PREVIOUS_PUBLIC_KEYS = env["JWT_PREVIOUS_PUBLIC_KEYS"] or ""
#: The public key that will sign next: published and accepted before any process signs with it.
JWT_NEXT_PUBLIC_KEYS = env["JWT_NEXT_PUBLIC_KEYS"] or ""
JWT_AUDIENCE = "tenant-admin"
ACCESS_TOKEN_LIFETIME = timedelta(seconds=env["ACCESS_TOKEN_SECONDS"])
REFRESH_TOKEN_LIFETIME = timedelta(days=env["REFRESH_TOKEN_DAYS"])
#: The lifetime of a personal access token whose creator gives none, and how many a user may have.
PAT_DEFAULT_DAYS = env["PAT_DEFAULT_DAYS"]
PAT_MAX_ACTIVE = env["PAT_MAX_ACTIVE"]
#: How long a process remembers what a token may do; revocation acts within this time.
PRINCIPAL_CACHE_SECONDS = env["PRINCIPAL_CACHE_SECONDS"]
#: A function of the user. If it returns True, a new token has the claim ``tos_required``.
TOS_REQUIRED_CHECK = "tosapp.acknowledgements.must_acknowledge"
#: Within this time, a process uses the terms of service that another process has published.
TOS_REFRESH_SECONDS = env["TOS_REFRESH_SECONDS"]

# --- SQL over the log -------------------------------------------------------------------------

#: Limits of queries, and the service that runs them.
SQL_OPTIONS = options_from(env)

# --- Signing in -------------------------------------------------------------------------------

#: Email domains whose users may sign in. If empty, all may.
SIGNIN_EMAIL_DOMAINS: list[str] = env["SIGNIN_EMAIL_DOMAINS"]
#: Identity providers in the order of the sign-in page. The first is the default.
SIGNIN_PROVIDERS: list[str] = env["SIGNIN_PROVIDERS"]
SOCIALACCOUNT_PROVIDERS = env["SOCIALACCOUNT_PROVIDERS"]
SOCIALACCOUNT_ADAPTER = "accounts.signin.adapter.SettingsOnlyAdapter"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
# Of allauth, the providers are used for everybody; login stages and second factors for the admin site.
ACCOUNT_ADAPTER = "accounts.signin.staff.adapters.StaffAccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
#: Seconds for which a sign-in, or its confirmation, is enough for what ends somebody's rights.
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
MFA_ADAPTER = "accounts.signin.staff.adapters.StaffMfaAdapter"
MFA_FORMS = {"authenticate": "accounts.signin.staff.trail.CodeForm"}
MFA_SUPPORTED_TYPES = ["webauthn", "totp", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Tenant administration"
#: Whether platform admins need a second factor for the admin site.
STAFF_SECOND_FACTOR: bool = not DEBUG if env["STAFF_SECOND_FACTOR"] is None else env["STAFF_SECOND_FACTOR"]
#: A session of the admin site ends after this time, and when it was idle for `SESSION_COOKIE_AGE` seconds.
STAFF_SESSION_SECONDS = 12 * 3600
SESSION_COOKIE_AGE = 30 * 60
#: A sign-in that was begun is forgotten after this time.
SIGNIN_STATE_SECONDS = 600

MAGIC_LINK_SECONDS = 900
MAGIC_LINK_EMAIL_LIMIT = env["MAGIC_LINK_EMAIL_LIMIT"]
MAGIC_LINK_ADDRESS_LIMIT = env["MAGIC_LINK_ADDRESS_LIMIT"]
PASSWORD_ADDRESS_LIMIT = env["PASSWORD_ADDRESS_LIMIT"]
RATE_LIMIT_NAMESPACE = "tenantadmin-limits"
PAT_LIMIT = env["PAT_LIMIT"]
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
STATIC_ROOT: Path = env["STATIC_ROOT"] or VAR_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    #: Raw logs, compacted logs, rollups and terms of service, on S3 or in files.
    "objects": storage_settings(env["OBJECT_STORE_URL"] or (VAR_DIR / "objects").as_uri()),
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
if env["BEHIND_TLS_PROXY"]:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = env["HSTS_SECONDS"]
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
    # The other enumerations are named after their member.
    "ENUM_NAME_OVERRIDES": {
        "AdapterType": "accounts.serializers.tenants.ADAPTER_TYPES",
        "CacheStatus": "logs.columns.CACHE_STATUSES",
        "ChallengeType": ["TXT"],
        "DigestFrequency": "analytics.models.DigestFrequency.values",
        "DigestKind": "analytics.serializers.digests.DIGEST_KINDS",
        "DigestUnit": "analytics.serializers.digests.DIGEST_UNITS",
        "DomainState": "accounts.billing.domains.DomainState.__args__",
        "EventKind": "accounts.models.events.EventKind.values",
        "FindingCode": "rules.serializers.rulesets.FINDING_CODES",
        "FqdnState": "accounts.serializers.billing.FQDN_STATES",
        "GrantResource": "accounts.models.billing.GrantResource.values",
        "GrantablePermission": "accounts.serializers.billing.PERMISSIONS",
        "HttpMethod": "accounts.serializers.pats.METHODS",
        "LeakGrade": "analytics.reports.leaks.LeakGrade.__args__",
        "MembershipRole": "accounts.models.users.MembershipRole.choices",
        "MagicLinkStatus": ["sent"],
        "MissReason": "analytics.explain.MissReason.__args__",
        "OAuthErrorCode": "accounts.serializers.oauth.ERRORS",
        "PatExchangeGrantType": ["pat_exchange"],
        "Plan": "accounts.models.billing.Plan.values",
        "PrimaryRole": "accounts.models.users.PrimaryRole.choices",
        "ReplayGrade": "analytics.serializers.replays.REPLAY_GRADES",
        "ReplayState": "analytics.serializers.replays.REPLAY_STATES",
        "RevisionAction": "accounts.models.history.RevisionAction.values",
        "RevisionKind": "accounts.models.history.RevisionKind.values",
        "RuleAction": "rules.serializers.rulesets.ACTIONS",
        "Scope": "accounts.serializers.users.SCOPES",
        "SummaryKind": "analytics.models.Kind.values",
        "TenantRevisionKind": "analytics.reports.timeline.TENANT_REVISION_KINDS",
        "TimelineStep": "analytics.reports.timeline.TimelineStep.__args__",
        "TokenRefreshGrantType": ["refresh_token"],
        "UserType": ["user"],
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

SIMPLE_JWT = {"TOKEN_TYPE_CLAIM": "typ", "USER_ID_CLAIM": "sub", "ALGORITHM": "ES256"}

# --- Tenants ----------------------------------------------------------------------------------

#: Classes that create and delete a tenant's other documents together with the tenant.
TENANT_DOCUMENTS = ["rules.ruleset.RulesetDocument"]
#: How long a deleted tenant stays in the manifest, and a released FQDN reserved for its tenant.
TOMBSTONE_LIFETIME = timedelta(days=env["TOMBSTONE_DAYS"])
#: Domains in which any tenant may claim FQDNs, in lower case.
PLATFORM_DOMAINS: list[str] = env["PLATFORM_DOMAINS"]
#: The limits of each plan. None: no limit.
PLAN_LIMITS: dict[str, dict[str, int | None]] = {
    "free": {"tenants": 1, "fqdns": 2, "rules": 25},
    "team": {"tenants": 10, "fqdns": 10, "rules": 250},
    "enterprise": {"tenants": None, "fqdns": None, "rules": None},
}
#: How many drafts of its rules a tenant may have at a time.
MAX_RULE_DRAFTS = 25
#: Name servers (addresses) asked for domain challenges; empty for the system's own. Port and seconds.
DNS_NAMESERVERS: list[str] = env["DNS_NAMESERVERS"]
DNS_PORT = env["DNS_PORT"]
DNS_TIMEOUT_SECONDS = env["DNS_TIMEOUT_SECONDS"]

# --- Events and audits ------------------------------------------------------------------------

#: How long rows are kept, at least: their tables are dropped by the month.
EVENT_RETENTION = timedelta(days=env["EVENT_RETENTION_DAYS"])
AUDIT_RETENTION = timedelta(days=env["AUDIT_RETENTION_DAYS"])

# --- Raw logs and summaries -------------------------------------------------------------------

#: Within this time, the logs of every tenant are listed once. In development nothing announces new logs.
LOG_SWEEP_SECONDS: float = env["LOG_SWEEP_SECONDS"] or (60 if DEBUG else 86_400)
#: The SQS queue of S3 event notifications, if there is one.
OBJECT_EVENTS_QUEUE_URL: str | None = env["OBJECT_EVENTS_QUEUE_URL"]
#: How long the admin site shows builds of days, months and years. Each minute may add some per tenant.
BUILD_LIFETIME = timedelta(days=env["BUILD_DAYS"])
#: A day whose raw objects have more bytes is built by hours.
BUILD_BY_HOURS_BYTES: int = env["BUILD_BY_HOURS_BYTES"]

# --- Replays ----------------------------------------------------------------------------------

#: The most days and rows that one replay reads, warm-up included in the rows.
REPLAY_MAX_DAYS = env["REPLAY_MAX_DAYS"]
REPLAY_MAX_ROWS = env["REPLAY_MAX_ROWS"]
#: What one replay may take; more memory spills to the disk.
REPLAY_TIMEOUT_SECONDS = env["REPLAY_TIMEOUT_SECONDS"]
REPLAY_MEMORY_BYTES = env["REPLAY_MEMORY_BYTES"]
REPLAY_THREADS = env["REPLAY_THREADS"]
#: How many replays of a tenant may wait. One at a time runs.
REPLAY_QUEUE = env["REPLAY_QUEUE"]
REPLAY_LIMIT = env["REPLAY_LIMIT"]

# --- Digests ----------------------------------------------------------------------------------

#: An endpoint that is compatible with OpenAI's ``/chat/completions``, below this address. Without it and a
#: model, no digest is rewritten.
LLM_URL: str = env["LLM_URL"] or ""
LLM_MODEL: str = env["LLM_MODEL"] or ""
LLM_API_KEY: str = env["LLM_API_KEY"] or ""
LLM_TIMEOUT_SECONDS: float = env["LLM_TIMEOUT_SECONDS"]

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
# A worker that stops waits so many seconds for its tasks, then returns them to the queue.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3.0
CELERY_TIMEZONE = "UTC"
# Beat's own default is the working directory, which an image does not let it write.
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

# --- Logging and metrics ----------------------------------------------------------------------

LOGGING = logging_config(
    level=env["LOG_LEVEL"], is_json=not DEBUG if env["LOG_FORMAT"] is None else env["LOG_FORMAT"] == "JSON"
)
#: Whether each answered request leaves a line in the log.
ACCESS_LOG: bool = not DEBUG if env["ACCESS_LOG"] is None else env["ACCESS_LOG"]
#: Where errors are reported; empty: nowhere.
SENTRY_DSN: str = env["SENTRY_DSN"] or ""
#: Host and port at which Prometheus reads metrics, or None.
METRICS_ADDRESS: tuple[str, int] | None = env["METRICS_ADDRESS"]
if METRICS_ADDRESS is not None:
    # The processes of a container count in files of this folder. prometheus_client reads the variable.
    _folder = VAR_DIR / "run" / f"metrics-{METRICS_ADDRESS[1]}"
    os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(_folder))
