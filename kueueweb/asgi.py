"""What uvicorn runs: plain HTTP through WSGI threads."""

import os

from a2wsgi import WSGIMiddleware
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")

application = WSGIMiddleware(get_wsgi_application(), workers=8)  # type: ignore[arg-type]  # Django's stubs name the wider type
