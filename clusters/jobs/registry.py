"""Every kind of job with an integration. A new kind is a file of its own, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.kinds.appwrapper import AppWrapper
from clusters.jobs.kinds.deployment import Deployment
from clusters.jobs.kinds.jaxjob import JAXJob
from clusters.jobs.kinds.job import BatchJob
from clusters.jobs.kinds.jobset import JobSet
from clusters.jobs.kinds.leaderworkerset import LeaderWorkerSet
from clusters.jobs.kinds.mpijob import MPIJob
from clusters.jobs.kinds.paddlejob import PaddleJob
from clusters.jobs.kinds.pod import Pod
from clusters.jobs.kinds.pytorchjob import PyTorchJob
from clusters.jobs.kinds.raycluster import RayCluster
from clusters.jobs.kinds.rayjob import RayJob
from clusters.jobs.kinds.rayservice import RayService
from clusters.jobs.kinds.sparkapplication import SparkApplication
from clusters.jobs.kinds.statefulset import StatefulSet
from clusters.jobs.kinds.tfjob import TFJob
from clusters.jobs.kinds.trainjob import TrainJob
from clusters.jobs.kinds.xgboostjob import XGBoostJob

KINDS: Final[Mapping[tuple[str, str], JobKind]] = {
    (kind.api_version, kind.kind): kind
    for kind in (
        BatchJob(), JobSet(), PyTorchJob(), TFJob(), XGBoostJob(), PaddleJob(), JAXJob(), MPIJob(),
        RayCluster(), RayJob(), RayService(), AppWrapper(), SparkApplication(),
        TrainJob(), Deployment(), StatefulSet(), LeaderWorkerSet(), Pod(),
    )
}  # fmt: skip
"""By apiVersion and kind."""
