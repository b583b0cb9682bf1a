"""The page that holds the whole front end."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

_NOT_BUILT = "The front end is not built. Run `make frontend`; the API is at /api/v1/ and the admin at /admin/."


@require_safe
@never_cache
@ensure_csrf_cookie
def index(request: HttpRequest) -> HttpResponse:
    """Serve the front end at any address; its own router reads the address. 503 if it has not been built."""
    page = settings.FRONTEND_DIST / "index.html"
    try:
        return HttpResponse(_read(page, page.stat().st_mtime_ns))
    except FileNotFoundError:
        return HttpResponse(_NOT_BUILT, status=503, content_type="text/plain; charset=utf-8")


@lru_cache(maxsize=1)
def _read(page: Path, changed_at: int) -> bytes:
    """With its links below BASE_PATH, which its scripts find in its head."""
    text = page.read_text(encoding="utf-8").replace('="/static/', f'="{settings.STATIC_URL}')
    return text.replace('name="base-path" content=""', f'name="base-path" content="{settings.BASE_PATH}"').encode()
