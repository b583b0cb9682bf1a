"""In the place of the operators: the simulated cluster's controllers of jobs, at work on a real API server."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import yaml

from clusters.api_errors import ClusterError
from clusters.api_objects import PODS, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.registry import JOB_KINDS
from clusters.served.kueue_kinds import KUEUE_KINDS
from simulation.api.objects import name_of, namespace_of, uid_of
from simulation.api.registry import Registry
from simulation.api.store import ObjectStore
from simulation.clock import WallClock
from simulation.controllers.operators import REPORTS, OperatedJobController
from simulation.controllers.set_controllers import LeaderWorkerSetController
from simulation.environment import Controller, Environment, Options
from tests.acceptance.processes import wait_for

DEFINITIONS: Final = sorted((Path(__file__).parent / "crds").glob("*.yaml.gz"))
KUEUE_DEFINITIONS: Final = sorted((Path(__file__).parent / "crds" / "kueue").glob("*.yaml.gz"))
CRDS: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
OPERATED: Final = tuple(rules for rules in JOB_KINDS.values() if rules.optional)
_POLL_SECONDS: Final = 0.3
_LOST: Final = (403, 404, 409)
"""A controller that meets these was late: it looks again."""


def install_definitions(admin: ClusterClient) -> None:
    """Has the API server serve every kind that an operator runs."""
    _install(admin, DEFINITIONS, {rules.resource for rules in OPERATED})


def install_kueue(admin: ClusterClient) -> None:
    """Has the API server serve Kueue's objects."""
    _install(admin, KUEUE_DEFINITIONS, {kinds[0] for kinds in KUEUE_KINDS.values()})


def remove_kueue(admin: ClusterClient) -> None:
    """What the other tests of this folder begin with."""
    for path in KUEUE_DEFINITIONS:
        admin.delete(CRDS, "", name_of(_read(path)))


def _install(admin: ClusterClient, definitions: Sequence[Path], wanted: set[Kind]) -> None:
    for path in definitions:
        definition = _read(path)
        if admin.get(CRDS, "", name_of(definition)) is None:
            admin.create(CRDS, definition)
    wait_for("the kinds that were defined", lambda: admin.served(wanted) == wanted, 30)


def _read(path: Path) -> JsonObject:
    found: JsonObject = yaml.load(gzip.decompress(path.read_bytes()), Loader=yaml.CSafeLoader)  # quicker by a minute
    return found


class MirroredEnvironment(Environment):
    """What the controllers read is a copy of the API server's objects; what they write goes there."""

    def __init__(self, admin: ClusterClient, kinds: Sequence[Kind]) -> None:
        super().__init__(Registry(ObjectStore(), WallClock(), "operators"), Options())
        self._admin = admin
        self._kinds = {kind.plural: kind for kind in kinds}
        self._versions: dict[str, dict[tuple[str, str], str]] = {plural: {} for plural in self._kinds}

    def read(self) -> None:
        """Bring the copy up to date. Raises ClusterError."""
        for plural, kind in self._kinds.items():
            found = {(namespace_of(item), name_of(item)): item for item in self._admin.list(kind).items}
            known = self._versions[plural]
            for key in known.keys() - found.keys():
                del known[key]
                self.store.remove(plural, *key)
            for item in found.values():
                self._keep(plural, item)

    def _keep(self, plural: str, item: JsonObject) -> JsonObject:
        key, version = (namespace_of(item), name_of(item)), item["metadata"]["resourceVersion"]
        if self._versions[plural].get(key) != version:
            self._versions[plural][key] = version
            self.store.put(plural, item)
        return item

    def create(self, plural: str, item: JsonObject, manager: str) -> JsonObject | None:
        kind = self._kinds[plural]
        try:
            made = self._admin.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **item})
        except ClusterError as error:
            if error.status not in _LOST:
                raise
            return None
        return self._keep(plural, made)

    def set_status(self, plural: str, item: JsonObject, status: JsonObject, manager: str) -> JsonObject:
        patch = {"metadata": {"uid": uid_of(item)}, "status": status}
        try:
            changed = self._admin.patch(
                self._kinds[plural], namespace_of(item), name_of(item), patch, subresource="status"
            )
        except ClusterError as error:
            if error.status not in _LOST:
                raise
            return item
        return self._keep(plural, changed)

    def delete(self, plural: str, item: JsonObject, propagation: str = "Background") -> None:
        kind = self._kinds[plural]
        self._admin.delete(kind, namespace_of(item), name_of(item), uid=uid_of(item), propagation=propagation)


class Operators:
    """A thread that acts on jobs of all kinds; `faults` are the requests that the API server refused."""

    def __init__(self, admin: ClusterClient) -> None:
        runtimes = [kind for rules in OPERATED for kind in rules.refers_to]
        self._environment = MirroredEnvironment(admin, [PODS, *runtimes, *(rules.resource for rules in OPERATED)])
        self._controllers: dict[str, Controller] = {
            rules.plural: OperatedJobController(self._environment, rules)
            for rules in OPERATED
            if rules.kind in REPORTS and rules.stopping is Stopping.SUSPEND
        }
        self._controllers["leaderworkersets"] = LeaderWorkerSetController(self._environment)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operators", daemon=True)
        self.faults: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stopped.wait(_POLL_SECONDS):
            self._environment.read()
            for plural, controller in self._controllers.items():
                for item in list(self._environment.store.items(plural)):
                    self._reconcile(controller, item)

    def _reconcile(self, controller: Controller, item: JsonObject) -> None:
        try:
            controller.reconcile(namespace_of(item), name_of(item))
        except ClusterError as error:
            self.faults.append(f"{item['kind']} {name_of(item)}: {error}")
