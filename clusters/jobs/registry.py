"""Every kind of job with an integration. A new kind is a file of its own, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusters.jobs.appwrapper import AppWrapper
from clusters.jobs.deployment import Deployment
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.jaxjob import JAXJob
from clusters.jobs.job import BatchJob
from clusters.jobs.jobset import JobSet
from clusters.jobs.leaderworkerset import LeaderWorkerSet
from clusters.jobs.mpijob import MPIJob
from clusters.jobs.paddlejob import PaddleJob
from clusters.jobs.pod import Pod
from clusters.jobs.pytorchjob import PyTorchJob
from clusters.jobs.raycluster import RayCluster
from clusters.jobs.rayjob import RayJob
from clusters.jobs.rayservice import RayService
from clusters.jobs.sparkapplication import SparkApplication
from clusters.jobs.statefulset import StatefulSet
from clusters.jobs.tfjob import TFJob
from clusters.jobs.trainjob import TrainJob
from clusters.jobs.xgboostjob import XGBoostJob

KINDS: Final[Mapping[tuple[str, str], JobKind]] = {
    (kind.api_version, kind.kind): kind
    for kind in (
        BatchJob(), JobSet(), PyTorchJob(), TFJob(), XGBoostJob(), PaddleJob(), JAXJob(), MPIJob(),
        RayCluster(), RayJob(), RayService(), AppWrapper(), SparkApplication(),
        TrainJob(), Deployment(), StatefulSet(), LeaderWorkerSet(), Pod(),
    )
}  # fmt: skip
"""By apiVersion and kind."""
