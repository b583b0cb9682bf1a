"""Logs of pods at Kubernetes' address, for `kubectl logs`."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpResponse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework.request import Request

from clusters.api.pod_views import FOLLOW_HEADER, MAX_TAIL, refused
from clusters.api_errors import ClusterError
from clusters.pod_logs import LogQuery, read_log
from kueueweb.wire.object_views import ResourceView, flag, number
from kueueweb.wire.refusals import Refusal
from queues.api.filters import query_text
from scheduling.manifest.syntax import dns_label

_NOT_SERVED: Final = "insecureSkipTLSVerifyBackend"


class PodLogView(ResourceView):
    """`/api/v1/namespaces/NAMESPACE/pods/NAME/log`."""

    def get(self, request: Request, name: str, namespace: str = "") -> HttpResponse:
        """Return the log of a container, from the cluster; with `follow`, as it is written."""
        if self.reader().one(self.selection(namespace, name)) is None:
            raise self.not_found(name)
        query = self._query(namespace, name)
        answer = HttpResponse(content_type="text/plain; charset=utf-8")
        if flag(query_text(request.query_params, "follow"), "follow"):
            answer[FOLLOW_HEADER] = query.encoded()
            return answer
        try:
            answer.content = self._limited(read_log(self.cluster, query))
        except ClusterError as error:
            raise refused(error, self.cluster.name) from error
        return answer

    def _query(self, namespace: str, name: str) -> LogQuery:
        asked = self.request.query_params
        if flag(query_text(asked, _NOT_SERVED), _NOT_SERVED):
            raise Refusal(HTTPStatus.BAD_REQUEST, f"{_NOT_SERVED}: Unsupported value: it is not served here")
        tail = query_text(asked, "tailLines")
        return LogQuery(
            user=self.request.user.pk or 0,
            cluster=self.cluster.name,
            namespace=namespace,
            pod=name,
            container=self._container(),
            tail=_at_most(MAX_TAIL, number(tail, "tailLines"), "tailLines") if tail else None,
            since=self._since(),
            timestamps=flag(query_text(asked, "timestamps"), "timestamps"),
            previous=flag(query_text(asked, "previous"), "previous"),
        )

    def _container(self) -> str:
        name = query_text(self.request.query_params, "container")
        if name and (broken := dns_label(name)):
            raise Refusal(HTTPStatus.BAD_REQUEST, f'container: Invalid value: "{name[:100]}": {broken}')
        return name

    def _since(self) -> str:
        asked = self.request.query_params
        text, seconds = query_text(asked, "sinceTime"), query_text(asked, "sinceSeconds")
        if seconds:
            return (timezone.now() - timedelta(seconds=number(seconds, "sinceSeconds"))).isoformat()
        if not text:
            return ""
        try:
            at: Any = parse_datetime(text)
        except ValueError:
            at = None
        if at is None or at.tzinfo is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, f'sinceTime: Invalid value: "{text}": must be an RFC 3339 time')
        return str(at.isoformat())

    def _limited(self, log: bytes) -> bytes:
        text = query_text(self.request.query_params, "limitBytes")
        return log[: number(text, "limitBytes")] if text else log


def _at_most(limit: int, value: int, parameter: str) -> int:
    if value > limit:
        raise Refusal(HTTPStatus.BAD_REQUEST, f"{parameter}: Invalid value: {value}: must be at most {limit}")
    return value
