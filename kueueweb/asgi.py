"""The application of uvicorn: plain HTTP through WSGI threads, websockets through Channels.

Django's middleware under ASGI hops between threads for every layer; through WSGI the same requests take an eighth of
the time. Websockets have no middleware and stay on the event loop, and so do the bodies of requests and the probes.
"""

import os

from a2wsgi import WSGIMiddleware
from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

from foundation.serving.bodies import BodyReader
from kueueweb.web.base_path import BelowPath
from kueueweb.web.gate import THREADS, Gate
from kueueweb.web.large import LargeRequests, answer_with_django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")

# The queue of responses is unbounded; otherwise a thread would wait for every slow reader.
_threads = WSGIMiddleware(get_wsgi_application(), workers=THREADS, send_queue_size=0)  # type: ignore[arg-type]  # Django's stubs name the wider type
_answers = LargeRequests(_threads, answer_with_django)  # type: ignore[arg-type]  # its types are narrower than ours

from clusters.pod_logs import follow_log  # noqa: E402 (models load only now that Django is set up)
from kueueweb.api.health import readiness  # noqa: E402 (models load only now that Django is set up)
from kueueweb.consumers import LiveConsumer  # noqa: E402 (models load only now that Django is set up)
from kueueweb.web.credentials import are_known  # noqa: E402 (as above)
from kueueweb.web.following import Followers  # noqa: E402 (as above)
from kueueweb.web.watching import Watchers  # noqa: E402 (as above)
from kueueweb.web.wire_watching import WireWatchers  # noqa: E402 (as above)
from kueueweb.wire.watches import read_markers  # noqa: E402 (as above)
from queues.api.watches import read_versions  # noqa: E402 (as above)
from scheduler.live.authentication import by_session_or_token  # noqa: E402

_bodies = BodyReader(
    max_bytes=settings.MAXIMUM_BODY_BYTES,
    max_held_bytes=4 * settings.MAXIMUM_BODY_BYTES,
    max_held_by_address=2 * settings.MAXIMUM_BODY_BYTES,
    is_known=are_known,
)
_gate = Gate(_answers, readiness, _bodies)
watchers = Watchers(Followers(_gate, follow_log), read_versions)
wire_watchers = WireWatchers(watchers, read_markers)
_protocols = ProtocolTypeRouter(
    {
        "http": wire_watchers,
        "websocket": by_session_or_token(URLRouter([path("ws/live/", LiveConsumer.as_asgi())])),
    }
)
application = BelowPath(_protocols, settings.BASE_PATH) if settings.BASE_PATH else _protocols
