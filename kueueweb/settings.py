"""The one settings file: every value is a literal or read by `env` from a variable that docs/operations.md lists."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from kueueweb import __version__, env

BASE_DIR = Path(__file__).resolve().parent.parent

# --- Who may reach us -------------------------------------------------------------------------------------------------

DEBUG = env.boolean("DEBUG", default=False)
# The demo makes accounts with public passwords and shows them on the login page; so it needs no secrets.
DEMO = env.boolean("DEMO", default=False)
_DEMO_USERS = ("admin", "researcher", "operator", "student")
DEMO_ACCOUNTS = [{"username": name, "password": name} for name in _DEMO_USERS] if DEMO else []
SECRET_KEY = env.secret("SECRET_KEY", lenient=DEMO)  # Django refuses to sign anything while it is empty
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", default="localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

# The path below which kueueweb is served; empty: the root of its host.
BASE_PATH = env.base_path("BASE_PATH")
FORCE_SCRIPT_NAME = BASE_PATH or None

# X-Forwarded-For and X-Forwarded-Proto are trusted only from these proxies (`manage.py serve`).
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
BEHIND_TLS_PROXY = env.boolean("BEHIND_TLS_PROXY", default=False)
if BEHIND_TLS_PROXY and not TRUSTED_PROXIES:
    raise ImproperlyConfigured(
        "BEHIND_TLS_PROXY is true, but TRUSTED_PROXIES is empty. Set it to the addresses or networks of "
        "the proxy, such as 10.0.0.7 or 10.0.0.0/8; otherwise every request would be redirected to "
        "https:// forever."
    )
SECURE_SSL_REDIRECT = BEHIND_TLS_PROXY
SECURE_REDIRECT_EXEMPT = [rf"^(?:{BASE_PATH[1:]}/)?metrics$"]  # Prometheus scrapes from inside the cluster
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if BEHIND_TLS_PROXY else 0
# Other hosts of the domain, and browser preload lists, are not ours to decide about.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
MAX_CONNECTIONS_PER_ADDRESS = env.integer("MAX_CONNECTIONS_PER_ADDRESS", default=100, minimum=1)

SECURE_COOKIES = env.boolean("SECURE_COOKIES", default=BEHIND_TLS_PROXY)
SESSION_COOKIE_SECURE = SECURE_COOKIES
CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = f"{BASE_PATH}/"
SESSION_COOKIE_AGE = 60 * env.integer("SESSION_IDLE_MINUTES", default=8 * 60, minimum=1)
SESSION_MAX_SECONDS = 3600 * env.integer("SESSION_MAX_HOURS", default=7 * 24, minimum=1)
SECURE_REFERRER_POLICY = "same-origin"
CSRF_FAILURE_VIEW = "kueueweb.api.errors.csrf_failed"
# The sites that may embed the pages in a frame. X-Frame-Options cannot list sites, so it is omitted if this is set.
FRAME_ANCESTORS = env.origins("FRAME_ANCESTORS")
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "style-src": ["'self'", "'unsafe-inline'"],  # the component kit sizes elements by their style attribute
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": FRAME_ANCESTORS or ["'none'"],
    }
}

# --- What we are made of ----------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "kueueweb",
    "accounts",
    "queues",
    "gpus",
    "scheduler",
    "clusters",
    "history",
    "notifications",
    "studio",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "rest_framework",
    "csp",
    "django_filters",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
]

MIDDLEWARE = [
    "kueueweb.api.traced.traced",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "kueueweb.api.middleware.CompressedAnswers",
    "kueueweb.api.problem_details.problem_details",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "kueueweb.api.middleware.session_limits",
    "accounts.api.audited.audited",
    "kueueweb.api.middleware.no_store",
    "kueueweb.api.middleware.without_options",
    "kueueweb.api.query_parameters.RefuseUnknownParameters",
    "django.contrib.messages.middleware.MessageMiddleware",
    *([] if FRAME_ANCESTORS else ["django.middleware.clickjacking.XFrameOptionsMiddleware"]),
]

ROOT_URLCONF = "kueueweb.urls"
ASGI_APPLICATION = "kueueweb.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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

# --- Where rows and messages live -------------------------------------------------------------------------------------

# A web process serves requests from a few threads, each with its own connection, so a pool would add nothing.
_database = env.database("DATABASE_URL", lenient=DEMO)
DATABASES = {
    "default": {
        **_database,
        # PostgreSQL would compile each report's statement with JIT: seconds of compilation for hundredths of a second
        # of work.
        "OPTIONS": {
            "application_name": env.process_name(sys.argv),
            "options": "-c jit=off",
            **_database.get("OPTIONS", {}),
        },
        # A network that forgets idle connections without a word does so later than this.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "TEST": {"TEMPLATE": "template0"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.redis_url("REDIS_URL", default="redis://127.0.0.1:6379/0", lenient=DEMO)
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "kueueweb",
        # Django's own serializer is pickle: anyone who can write to Redis could run code in every process.
        "OPTIONS": {"serializer": "kueueweb.cache.JSONSerializer"},
    }
}
CHANNEL_LAYERS = {
    "default": {
        # The list-based layer loses its groups when Redis restarts; this one recovers by itself.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}], "prefix": "kueueweb"},
    }
}

MAXIMUM_BODY_BYTES = 2**20 * env.integer("MAXIMUM_BODY_MIB", 64, minimum=1)

# --- What one tenant may have (0: no limit) ---------------------------------------------------------------------------

MAX_UNFINISHED_PER_NAMESPACE = env.integer("MAX_UNFINISHED_PER_NAMESPACE", default=100_000)
MAX_UNFINISHED_PER_LOCAL_QUEUE = env.integer("MAX_UNFINISHED_PER_LOCAL_QUEUE", default=50_000)
MAX_UNFINISHED_PER_USER = env.integer("MAX_UNFINISHED_PER_USER", default=100_000)
MAX_SOCKETS_PER_USER = env.integer("MAX_SOCKETS_PER_USER", default=30)
MAX_TOKENS_PER_USER = env.integer("MAX_TOKENS_PER_USER", default=50)
MAX_SUBMISSIONS_PER_MINUTE = env.integer("MAX_SUBMISSIONS_PER_MINUTE", default=20_000)

# --- Clusters ---------------------------------------------------------------------------------------------------------

KUBERNETES_API_URL = env.text("KUBERNETES_API_URL")  # empty: in a pod its own cluster, otherwise the kubeconfig's
KUBERNETES_EVENTS = env.boolean("KUBERNETES_EVENTS", default=True)
"""Whether events of workloads are written into clusters whose Kueue objects kueueweb serves."""
POD_SECURITY_LEVEL = env.choice("POD_SECURITY_LEVEL", "baseline", ("privileged", "baseline", "restricted"))
"""Kubernetes' Pod Security level of namespaces without the label pod-security.kubernetes.io/enforce."""
CLOSED_NAMESPACES = env.words("CLOSED_NAMESPACES", "kube-*,kueueweb")
"""Patterns of namespaces that take no jobs, because their service accounts have more rights than a tenant's."""
# The maximum per process and API server, as in Kueue; the server's answers (429, Retry-After) reduce it.
KUBERNETES_REQUESTS_PER_SECOND = env.number("KUBERNETES_REQUESTS_PER_SECOND", 300.0, minimum=0.1)
KUBERNETES_REQUEST_BURST = env.number("KUBERNETES_REQUEST_BURST", 500.0, minimum=1.0)
# The accounts with which kueueweb writes to a cluster: the admission webhook accepts their objects unchanged.
WEBHOOK_TRUSTED_USERS = env.cluster_accounts(
    "WEBHOOK_TRUSTED_USERS", default="system:serviceaccount:kueueweb:kueueweb-push"
)

HEARTBEAT_PATH = env.text("HEARTBEAT_PATH")  # touched every few seconds by healthy workers, beat and watcher

# --- Workers ----------------------------------------------------------------------------------------------------------

CELERY_BROKER_URL = env.celery_broker_url(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # Redis may be down for any length of time
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "global_keyprefix": "kueueweb:celery:",
    "visibility_timeout": 300,  # seconds; longer than the longest task, which would otherwise be delivered twice
    "socket_connect_timeout": 2,
    # A hanging Redis closes no connection: without these time-outs a worker would wait forever.
    "socket_timeout": 5,
    "health_check_interval": 5,
}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True  # rows record the effects of tasks
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# Celery would open a connection for each task, and PostgreSQL compile every trigger again. `kueueweb.celery` closes
# connections that broke or are old, as a web process does after a request.
CELERY_DB_REUSE_MAX = sys.maxsize
CELERY_TIMEZONE = "UTC"
CELERY_TASK_DEFAULT_QUEUE = "push"
CELERY_TASK_ROUTES = {"scheduler.tasks.run_cycles": {"queue": "scheduler"}}
# Clusters that workers of the queue `scheduler-NAME` schedule. Workers of `scheduler` schedule all others.
OWN_SCHEDULERS = env.words("OWN_SCHEDULERS")
CELERY_BEAT_SCHEDULER = "kueueweb.celery:BeatScheduler"
# Tasks with work only where it is configured are not listed: beat sends them while there is work (`foundation.chores`).
CELERY_BEAT_SCHEDULE = {
    "push-cluster": {
        "task": "clusters.tasks.push_cluster",
        "schedule": 5.0,
        "options": {"queue": "push", "expires": 5},
    },
    "audit-state": {
        "task": "clusters.tasks.audit_state",
        "schedule": 25.0,
        "options": {"queue": "push", "expires": 25},
    },
    "join-metric-counts": {
        "task": "scheduler.tasks.join_metric_counts",
        "schedule": 30.0,
        "options": {"queue": "push", "expires": 30},
    },
    "roll-up-telemetry": {
        "task": "scheduler.tasks.roll_up_telemetry",
        "schedule": 300.0,
        "options": {"queue": "push", "expires": 300},
    },
    "sample-history": {
        "task": "history.tasks.sample_history",
        "schedule": 15.0,
        "options": {"queue": "push", "expires": 15},
    },
    "roll-up-history": {
        "task": "history.tasks.roll_up_history",
        "schedule": 300.0,
        "options": {"queue": "push", "expires": 300},
    },
    "prune-history": {
        "task": "history.tasks.prune_history",
        "schedule": 3600.0,
        "options": {"queue": "push", "expires": 3600},
    },
    "prune-notifications": {
        "task": "notifications.tasks.prune_notifications",
        "schedule": 3600.0,
        "options": {"queue": "push", "expires": 3600},
    },
    "prune-questions": {
        "task": "studio.tasks.prune_questions",
        "schedule": 3600.0,
        "options": {"queue": "push", "expires": 3600},
    },
    "prune-estimates": {
        "task": "studio.tasks.prune_estimates",
        "schedule": 3600.0,
        "options": {"queue": "push", "expires": 3600},
    },
    "maintain": {"task": "scheduler.tasks.maintain", "schedule": 3600.0, "options": {"queue": "push", "expires": 3600}},
}

# The studio: how many questions it tries at a time (0: one fewer than cores, at most 4), and the limits of each.
STUDIO_CHILDREN = env.integer("STUDIO_CHILDREN", default=0)
STUDIO_SECONDS = env.number("STUDIO_SECONDS", 30.0, minimum=0.1)
STUDIO_MEMORY_MIB = env.integer("STUDIO_MEMORY_MIB", default=512, minimum=64)

# Signs the requests of webhook admission checks, so that receivers can verify their origin. Receivers know the key, so
# it differs from kueueweb's own secrets; without it, no webhook is called.
ADMISSION_CHECK_SIGNING_KEY = env.secret("ADMISSION_CHECK_SIGNING_KEY", lenient=DEMO)
RELEASE = __version__
# The receiver of submission spans, in OpenTelemetry's own variables; its exporter reads the rest of them. Empty: no
# spans.
TRACES_ENDPOINT = env.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or env.text("OTEL_EXPORTER_OTLP_ENDPOINT")
METRICS_LEGACY_HAMI_NAMES = env.boolean("METRICS_LEGACY_HAMI_NAMES", default=False)
# Allowed addresses of webhooks and telemetry; empty: all but link-local addresses and cloud metadata services.
OUTGOING_NETWORKS = env.networks("OUTGOING_NETWORKS")
# The address of the pages: links in mails and webhooks begin with it.
PUBLIC_URL = env.text("PUBLIC_URL").rstrip("/")
# Notifications by mail; without a host, none are sent.
EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_PORT = env.integer("EMAIL_PORT", default=587, minimum=1)
EMAIL_HOST_USER = env.text("EMAIL_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_PASSWORD")
EMAIL_USE_TLS = env.boolean("EMAIL_TLS", default=True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM", default="kueueweb@localhost")
EMAIL_DOMAIN = DEFAULT_FROM_EMAIL.rpartition("@")[2]
DECISION_RETENTION_DAYS = env.integer("DECISION_RETENTION_DAYS", default=180, minimum=1)
AUDIT_RETENTION_DAYS = env.integer("AUDIT_RETENTION_DAYS", default=400, minimum=1)
USAGE_RETENTION_DAYS = env.integer("USAGE_RETENTION_DAYS", default=400, minimum=1)
# The interval of checkpoints, from which `?at=` reads the past (0: none are taken), and how long they are kept.
CHECKPOINT_MINUTES = env.integer("CHECKPOINT_MINUTES", default=15)
# Whether changes between checkpoints are recorded, so that `?at=` shows each moment exactly.
CHECKPOINT_CHANGES = env.boolean("CHECKPOINT_CHANGES", default=False)
CHECKPOINT_RETENTION_DAYS = env.integer("CHECKPOINT_RETENTION_DAYS", default=30, minimum=1)

# --- REST -------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.api.permissions.Scoped"],
    "DEFAULT_SCHEMA_CLASS": "kueueweb.api.schema.Schema",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "kueueweb.api.pagination.KeysetPagination",
    "DEFAULT_PARSER_CLASSES": ["kueueweb.api.content.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["kueueweb.api.content.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "kueueweb.api.problem_details.ProblemNegotiation",
    "URL_FORMAT_OVERRIDE": None,  # `format` is a parameter of the views that have more than one
    "EXCEPTION_HANDLER": "kueueweb.api.errors.error_response",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS would describe forms that we do not have; docs/openapi.json says more
    "NUM_PROXIES": 0,  # the web server has determined the client's address already
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
REST_KNOX = {
    "TOKEN_TTL": timedelta(days=env.integer("TOKEN_DAYS", default=90, minimum=1)),
    "AUTO_REFRESH": False,
}
# Django asks for it by this name where another model refers to it.
KNOX_TOKEN_MODEL = "knox.AuthToken"  # noqa: S105 (the name of a model)
SPECTACULAR_SETTINGS = {
    "TITLE": "kueueweb",
    "DESCRIPTION": "Quota, GPU slices and the scheduler of a shared cluster.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVERS": [{"url": BASE_PATH or "/", "description": "This installation."}],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "AllocationSourceEnum": "gpus.models.AllocationSource",
        "ConditionStatusEnum": "queues.api.serializers.CONDITION_STATUSES",
        "FungibilityPolicyEnum": "queues.api.configuration_serializers.FUNGIBILITY_POLICIES",
        "NotificationChannelEnum": "notifications.models.CHANNELS",
        "NumbersSourceEnum": "scheduler.api.cohort_tree.SOURCES",
        "QuestionKindEnum": "studio.models.ASKED_KINDS",
        "QuestionStateEnum": "studio.models.QUESTION_STATES",
        "QuotaHolderKindEnum": "studio.api.effects.QUOTA_HOLDERS",
        "RemedyKindEnum": "studio.api.remedies.REMEDY_KINDS",
        "WaitStateEnum": "scheduler.api.explanation_views.WAIT_STATES",
        "WorkloadStateEnum": "queues.api.serializers.WORKLOAD_STATES",
        "WorkloadStatusEnum": "queues.api.serializers.WORKLOAD_STATUSES",
    },
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "kueueweb.api.schema.add_live_frames",
        "kueueweb.api.schema.add_examples",
        "kueueweb.api.schema.share_refusals",
    ],
}
# Login by an OpenID Connect provider; without an issuer there is no such login.
OIDC_ISSUER = env.issuer("OIDC_ISSUER", lenient=DEMO)
OIDC_CLIENT_ID = env.credential("OIDC_CLIENT_ID", lenient=DEMO)
OIDC_CLIENT_SECRET = env.credential("OIDC_CLIENT_SECRET", lenient=DEMO)
OIDC_SCOPES = env.words("OIDC_SCOPES", default="openid,profile,email")
OIDC_USERNAME_CLAIM = env.text("OIDC_USERNAME_CLAIM", default="preferred_username")
OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", default="groups")
OIDC_GROUP_ROLES = env.words("OIDC_GROUP_ROLES")
OIDC_BUTTON_TEXT = env.text("OIDC_BUTTON_TEXT", default="Log in with single sign-on")
LOCAL_LOGIN = env.boolean("LOCAL_LOGIN", default=True)
env.check_oidc(
    issuer=OIDC_ISSUER,
    client_id=OIDC_CLIENT_ID,
    scopes=OIDC_SCOPES,
    group_roles=OIDC_GROUP_ROLES,
    local_login=LOCAL_LOGIN,
)
LOGIN_URL = f"{BASE_PATH}/login"
LOGIN_REDIRECT_URL = f"{BASE_PATH}/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "accounts.services.tokens.RevokeTokens"},
]

# --- The front end and other static files -----------------------------------------------------------------------------

_PACKAGED_DIST = BASE_DIR / "kueueweb" / "frontend_dist"  # the place in the wheel
FRONTEND_DIST = _PACKAGED_DIST if _PACKAGED_DIST.is_dir() else BASE_DIR / "frontend" / "dist"
STATIC_URL = f"{BASE_PATH}/static/"
STATIC_ROOT = env.text("STATIC_ROOT") or None  # the target of collectstatic in the image
STATICFILES_DIRS = [FRONTEND_DIST] if FRONTEND_DIST.is_dir() else []
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # Not the manifest storage: it would rename files that Vite's chunks already import by their hashed names.
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = env.boolean("SERVE_UNCOLLECTED_STATIC", default=False)
WHITENOISE_IMMUTABLE_FILE_TEST = r"^.+[.-][0-9A-Za-z_-]{8}\..+$"

# --- Time, language, log ----------------------------------------------------------------------------------------------

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

LOG_FORMAT = env.choice("LOG_FORMAT", default="console", choices=("console", "json"))
LOG_LEVEL = env.choice("LOG_LEVEL", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
# The folder for failed batches, which the scheduler writes as scenarios; empty: a folder among the machine's temporary
# files.
FAILED_BATCH_FOLDER = env.text("FAILED_BATCH_FOLDER", default="")
# The audit as JSON lines, in addition to the table: a file, or the log of the worker that streams it.
AUDIT_LOG = env.text("AUDIT_LOG", default="stderr" if LOG_FORMAT == "json" else "none")
_audit_handler: dict[str, Any] = {
    "none": {"class": "logging.NullHandler"},
    "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
}.get(AUDIT_LOG) or {
    "class": "logging.handlers.WatchedFileHandler", "filename": AUDIT_LOG, "formatter": "line", "delay": True,
}  # fmt: skip
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        LOG_FORMAT: {
            "console": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
            "json": {"()": "kueueweb.logs.JsonFormatter"},
        }[LOG_FORMAT],
        "line": {"format": "%(message)s"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["outages"]},
        "audit": _audit_handler,
    },
    "filters": {"outages": {"()": "kueueweb.logs.OutageInOneLine"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "kubernetes": {"level": "WARNING"},
        "urllib3.connectionpool": {"level": "ERROR"},  # the caller logs the result
        "celery.app.trace": {"level": "WARNING"},  # one line per tick and second is noise
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.worker.request": {"level": "WARNING"},  # every late tick is logged
        "celery.beat": {"level": "WARNING"},
        "uvicorn.access": {"level": "WARNING"},
        "kueueweb.audit": {"handlers": ["audit"], "level": "INFO", "propagate": False},
    },
}
