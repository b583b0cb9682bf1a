"""The demo's jobs are openb's in size, and each can be placed on a device of the demo's cluster."""

import random

import pytest

from kueueweb.demo.jobs import PRODUCTION, RESEARCH, OpenbSizes, Shape, Tenant, busier_tenant_share, job


def test_shapes_come_as_often_as_in_openb() -> None:
    sizes, chance = OpenbSizes.shipped(), random.Random(1)
    drawn = [sizes.shape(chance) for _ in range(20_000)]
    whole = sum(shape.num_gpu == 1 and shape.gpu_milli == 1000 for shape in drawn) / len(drawn)
    shared = sum(shape.num_gpu == 1 and shape.gpu_milli < 1000 for shape in drawn) / len(drawn)
    assert whole == pytest.approx(3911 / 8152, abs=0.02)
    assert shared == pytest.approx(3078 / 8152, abs=0.02)


def test_run_times_are_openbs_cut_at_an_hour() -> None:
    sizes, chance = OpenbSizes.shipped(), random.Random(1)
    drawn = sorted(sizes.run_seconds(chance) for _ in range(20_000))
    assert drawn[len(drawn) // 2] == pytest.approx(616, rel=0.1)
    assert drawn[-1] == 3600


@pytest.mark.parametrize("tenant", [RESEARCH, PRODUCTION], ids=lambda tenant: tenant.username)
def test_a_job_asks_for_what_a_device_has(tenant: Tenant) -> None:
    sizes, chance = OpenbSizes.shipped(), random.Random(2)
    for _ in range(500):
        shape = sizes.shape(chance)
        manifest = job(tenant, shape, 60.0, chance)
        assert manifest["metadata"]["namespace"] == tenant.namespace
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        limits = container["resources"]["limits"]
        if not shape.num_gpu:
            assert limits == {}
            continue
        assert limits["nvidia.com/gpu"] == str(shape.num_gpu)
        assert 0 < int(limits["nvidia.com/gpumem"]) <= 81_920
        assert int(limits["nvidia.com/gpumem"]) % 256 == 0
        assert 0 < int(limits["nvidia.com/gpucores"]) <= 100


def test_the_same_seed_gives_the_same_job() -> None:
    shape = Shape(1, 470, 8000, 30_517)
    assert job(RESEARCH, shape, 60.0, random.Random(7)) == job(RESEARCH, shape, 60.0, random.Random(7))


def test_each_tenant_is_the_busier_one_for_a_while() -> None:
    shares = [busier_tenant_share(second) for second in range(0, 7_200, 300)]
    assert min(shares) < 0.4
    assert max(shares) > 0.6
    assert all(0 < share < 1 for share in shares)
