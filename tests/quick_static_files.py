"""The list of static files, which each client's middleware makes from five hundred files at its first request."""

from typing import Any

from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

_walk = WhiteNoiseMiddleware.add_files_from_finders
_walked: dict[tuple[Any, ...], dict[str, Any]] = {}


def add_files_once(middleware: WhiteNoiseMiddleware) -> None:
    """What stands in for `WhiteNoiseMiddleware.add_files_from_finders`: it walks once for the same settings."""
    folders = tuple(str(folder) for folder in settings.STATICFILES_DIRS)
    key = (folders, tuple(settings.INSTALLED_APPS), middleware.static_prefix, middleware.max_age)
    if key not in _walked:
        before = middleware.files
        middleware.files = {}
        _walk(middleware)
        _walked[key], middleware.files = middleware.files, before
    middleware.files.update(_walked[key])
