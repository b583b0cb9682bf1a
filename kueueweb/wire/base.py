"""The base of these addresses' views: the cluster in the path, JSON, and errors as metav1.Status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import AT, ClusterView
from foundation.exceptions import InvalidRequest
from kueueweb.api.content import JSONParser, JSONRenderer
from kueueweb.wire.encodings.protobuf import ProtobufParser
from kueueweb.wire.refusals import refusal_response

_TEXT: Final = "application/json"


class _AnyJson(BaseContentNegotiation):
    """JSON, in whichever form the view chooses by `accepted`; a client that takes no JSON gets it all the same."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return the parser of the body's media type; JSON without one. None, which DRF answers with 415, for
        another."""
        sent = (request.content_type or _TEXT).partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the only renderer."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class WireView(ClusterView):
    """A view of one cluster, which the path names: that of `default` has no prefix."""

    schema = None  # the OpenAPI document describes REST; this format has discovery
    content_negotiation_class = _AnyJson
    renderer_classes = (JSONRenderer,)
    parser_classes: Sequence[type[BaseParser]] = (JSONParser, ProtobufParser)
    pagination_class = None
    writes_what_is_mirrored = False
    kind: ClassVar[str] = ""

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Take the cluster out of the path."""
        self.default_cluster = kwargs.pop("cluster", "default")  # type: ignore[misc]  # that of this request
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a read of the past, because its answer would be about the present."""
        super().initial(request, *args, **kwargs)
        if AT in request.query_params:
            raise InvalidRequest(f"{AT}: Forbidden: this format shows the present; /api/v1/ shows earlier states.")

    def get_exception_handler(self) -> Callable[[Exception, Mapping[str, Any]], Response | None]:
        """Return the handler that words every error as Kubernetes does."""
        return refusal_response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Forbid caches to store the answer, as an API server does."""
        found = super().finalize_response(request, response, *args, **kwargs)
        found.headers["Cache-Control"] = "no-cache, private"
        return found


def accepted(request: Request) -> list[dict[str, str]]:
    """Return the parameters of each JSON media type that the client accepts, in its order: `as`, `g` and `v` name a
    form."""
    found = []
    for part in request.headers.get("Accept", _TEXT).split(","):
        media_type, *parameters = (each.strip() for each in part.split(";"))
        if media_type in (_TEXT, "*/*", "application/*"):
            pairs = (each.partition("=") for each in parameters)
            found.append({key.strip(): value.strip() for key, _, value in pairs})
    return found
