"""kubeflow.org/v2beta1 MPIJob."""

from clusters.jobs.families.kubeflow import ReplicaSpecsJob
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.manifest import JsonObject, annotations_of, dig, mapping_at, set_annotation
from queues.manifests import kueue_keys as keys


class MPIJob(ReplicaSpecsJob):
    """A launcher and its workers."""

    api_version = "kubeflow.org/v2beta1"
    kind = "MPIJob"
    plural = "mpijobs"
    own_manager = "kubeflow.org/mpi-operator"
    replica_specs = "mpiReplicaSpecs"
    roles = ("Launcher", "Worker")
    checks_groups = True
    repeats_checks = True
    reads_topology_off_pod_sets = True

    @property
    def operator_name(self) -> str:
        return "mpi-operator"

    def complete(self, job: JsonObject, context: JobContext) -> None:
        """Complete the pod sets. If the launcher is also a worker, it has rank 0, and the ranks of the other workers
        begin at 1."""
        specs = dig(job, "spec", self.replica_specs) or {}
        launcher, worker = specs.get("Launcher"), specs.get("Worker")
        if dig(job, "spec", "runLauncherAsWorker") is not True or launcher is None or worker is None:
            return
        if keys.POD_SET_GROUP not in annotations_of(launcher.get("template") or {}):
            set_annotation(mapping_at(worker, "template"), keys.POD_INDEX_OFFSET, "1")
