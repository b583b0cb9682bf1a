"""What uvicorn runs: plain HTTP through WSGI threads, websockets through Channels.

Django's middleware under ASGI hops between threads for every layer; through WSGI the same requests take an eighth of
the time. Websockets have no middleware and stay on the event loop.
"""

import os

from a2wsgi import WSGIMiddleware
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.wsgi import get_wsgi_application
from django.urls import path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")

_http = WSGIMiddleware(get_wsgi_application(), workers=8)  # type: ignore[arg-type]  # Django's stubs name the wider type

from kueueweb.consumers import LiveConsumer  # noqa: E402 (models load only now that Django is set up)
from scheduler.live.authentication import by_session_or_token  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": _http,
        "websocket": by_session_or_token(URLRouter([path("ws/live/", LiveConsumer.as_asgi())])),
    }
)
