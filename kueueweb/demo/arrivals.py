"""When the demo's jobs arrive and whose they are. Pure, given a random generator. Seconds are of the cluster's time."""

import random
import re
from collections.abc import Mapping
from typing import Any, Final

from kueueweb.demo.jobs import PRODUCTION, RESEARCH, STUDENT, OpenbSizes, Tenant, busier_tenant_share, job
from kueueweb.demo.mixed import SHAPES, mixed_job
from simulation.fleet import MIXED, SEVERAL

FIRST_JOBS: Final = 45
MAX_WAITING: Final = 6
"""Per queue: jobs that arrive while this many wait are not submitted, so that the queues stay short."""
_GPU_JOBS_PER_SECOND = 0.05
"""Slightly more jobs than the GPUs can run, so that GPUs are nearly always in use and some jobs wait."""
_OTHER_JOBS_PER_SECOND: Mapping[str, float] = {SEVERAL: 0.02, MIXED: 0.06}


_PREFIXES: Final = (*RESEARCH.words, *PRODUCTION.words, *dict.fromkeys(word for word, _ in SHAPES))
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
        self._other = _OTHER_JOBS_PER_SECOND.get(fleet, 0.0)

    def pause_seconds(self) -> float:
        """Return the seconds until the next job."""
        return self._chance.expovariate(_GPU_JOBS_PER_SECOND + self._other)

    def job(self, at_seconds: float) -> tuple[Tenant, dict[str, Any]]:
        """Return a job, its time of arrival, and its submitter."""
        chance, run_seconds = self._chance, self._sizes.run_seconds(self._chance)
        if chance.random() * (_GPU_JOBS_PER_SECOND + self._other) < self._other:
            return STUDENT, mixed_job(self._fleet, run_seconds, chance)
        tenant = RESEARCH if chance.random() < busier_tenant_share(at_seconds) else PRODUCTION
        return tenant, job(tenant, self._sizes.shape(chance), run_seconds, chance)
