"""A control plane whose API server counts the requests of each account, by its audit log."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

from tests.kubernetes.control_plane import ControlPlane, JobServer

_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata"}],
}
_LOG: Final = "audit.log"


class AuditedServer(JobServer):
    """Without nodes: no pod is placed or runs."""

    def _further_arguments(self) -> tuple[str, ...]:
        (self._folder / "audit-policy.json").write_text(json.dumps(_POLICY))
        return ("--audit-policy-file", "audit-policy.json", "--audit-log-path", _LOG, "--audit-log-mode", "batch")

    def audited(self) -> Counter[tuple[str, str, str]]:
        """Return the number of requests so far by (user, verb, resource with its subresource)."""
        found: Counter[tuple[str, str, str]] = Counter()
        for line in (self._folder / _LOG).read_text().splitlines():
            try:
                event = json.loads(line)
            except json.JSONDecodeError:  # the last line is being written
                continue
            target = event.get("objectRef") or {}
            subresource = target.get("subresource")
            resource = target.get("resource", event["requestURI"]) + (f"/{subresource}" if subresource else "")
            found[event["user"]["username"], event["verb"], resource] += 1
        return found


class AuditedPlane(AuditedServer, ControlPlane):
    """With the default scheduler and kwok: pods run and end."""
