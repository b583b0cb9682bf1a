"""When the demo's jobs arrive and whose they are. Pure, given a random generator. Seconds are of the cluster's time."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kueueweb.demo.jobs import (
    OVERFLOW,
    PRODUCTION,
    RESEARCH,
    SERVING,
    STUDENT,
    TRAINING,
    OpenbSizes,
    Tenant,
    busier_tenant_share,
    job,
)
from kueueweb.demo.mixed import SHAPES, mixed_job
from kueueweb.demo.racks import serving_job, training_job
from kueueweb.demo.west import overflow_job
from simulation.fleet import MIXED, SEVERAL

FIRST_JOBS: Final = 45
MAX_WAITING: Final = 6
"""Per queue: jobs that arrive while this many wait are not submitted, so that the queues stay short."""
_GPU_JOBS_PER_SECOND = 0.05
"""Slightly more jobs than the GPUs can run, so that GPUs are nearly always in use and some jobs wait."""
_ON_RACKS: Final = ((TRAINING, 0.004), (SERVING, 0.0004))
_OTHER_JOBS_PER_SECOND: Mapping[str, Sequence[tuple[Tenant, float]]] = {
    SEVERAL: ((STUDENT, 0.02), *_ON_RACKS, (OVERFLOW, 0.007)),
    MIXED: ((STUDENT, 0.06), *_ON_RACKS, (OVERFLOW, 0.007)),
}


_PREFIXES: Final = (
    *(word for tenant in (RESEARCH, PRODUCTION, TRAINING, SERVING, OVERFLOW) for word in tenant.words),
    *dict.fromkeys(word for word, _ in SHAPES),
)
_NAME: Final = re.compile(rf"({'|'.join(map(re.escape, _PREFIXES))})-[0-9a-f]{{8}}")


def is_arrival(job_name: str) -> bool:
    """Return whether a job's name is one that `Arrivals` gives."""
    return _NAME.fullmatch(job_name) is not None


class Arrivals:
    """Jobs of all tenants, one after the other."""

    def __init__(self, fleet: str, chance: random.Random) -> None:
        self._fleet = fleet
        self._chance = chance
        self._sizes = OpenbSizes.shipped()
        self._others = _OTHER_JOBS_PER_SECOND.get(fleet, ())
        self._rate = _GPU_JOBS_PER_SECOND + sum(rate for _, rate in self._others)

    def pause_seconds(self) -> float:
        """Return the seconds until the next job."""
        return self._chance.expovariate(self._rate)

    def job(self, at_seconds: float) -> tuple[Tenant, dict[str, Any]]:
        """Return a job, its time of arrival, and its submitter."""
        chance, run_seconds = self._chance, self._sizes.run_seconds(self._chance)
        drawn = chance.random() * self._rate
        for tenant, rate in self._others:
            if drawn < rate:
                return tenant, self._other_job(tenant, run_seconds)
            drawn -= rate
        tenant = RESEARCH if chance.random() < busier_tenant_share(at_seconds) else PRODUCTION
        return tenant, job(tenant, self._sizes.shape(chance), run_seconds, chance)

    def _other_job(self, tenant: Tenant, run_seconds: float) -> dict[str, Any]:
        """Return a job for devices that the trace does not have."""
        if tenant is TRAINING:
            return training_job(run_seconds, self._chance)
        if tenant is SERVING:
            return serving_job(f"{SERVING.words[0]}-{self._chance.getrandbits(32):08x}")
        if tenant is OVERFLOW:
            return overflow_job(run_seconds, self._chance)
        return mixed_job(self._fleet, run_seconds, self._chance)
