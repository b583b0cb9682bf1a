"""Reading a monitor's metrics, keeping them and rolling them up."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from accounts.models import Cluster
from foundation.time_series import Resolution
from gpus.models import ContainerSample, DeviceSample
from gpus.services.telemetry import RETENTION, read_metrics, roll_up_telemetry, store_reading
from scheduler.housekeeping.telemetry import ScrapeFailed, sample_clusters, scrape
from tests.factories import make_cluster, make_node
from tests.patience import PATIENCE_SECONDS

NOW = datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)

MONITOR = """# HELP hami_host_gpu_memory_used_bytes GPU memory in use
# TYPE hami_host_gpu_memory_used_bytes gauge
hami_host_gpu_memory_used_bytes{node="n1",device_index="0",device_uuid="n1-0",device_type="V100"} 1.073741824e+09
# TYPE hami_host_gpu_utilization_ratio gauge
hami_host_gpu_utilization_ratio{node="n1",device_index="0",device_uuid="n1-0",device_type="V100"} 120
hami_host_gpu_utilization_ratio{node="n1",device_index="1",device_uuid="n1-1",device_type="V100"} NaN
# TYPE hami_vgpu_memory_used_bytes gauge
hami_vgpu_memory_used_bytes{namespace="team",pod="p",container="main",vdevice_index="0",device_uuid="n1-0"} 5.24288e+08
hami_vgpu_memory_used_bytes{namespace="team",pod="p",container="main",vdevice_index="0",device_uuid="n1-0"} 5.24288e+08
hami_container_last_kernel_elapsed_seconds{namespace="team",pod="p",container="main",device_uuid="n1-0"} 7
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 3
"""

LEGACY = """HostGPUMemoryUsage{deviceidx="0",deviceuuid="n1-0"} 2097152
vGPU_device_memory_usage_in_bytes{podnamespace="team",podname="p",ctrname="main",deviceuuid="n1-0"} 1048576
"""


def test_it_reads_todays_names() -> None:
    reading = read_metrics(MONITOR)
    assert reading.devices == {"n1-0": {"memory_used_mib": 1024.0, "utilization_percent": 120.0}}
    assert reading.containers == {("n1-0", "team", "p", "main"): {"memory_used_mib": 500.0, "last_kernel_seconds": 7.0}}


def test_and_those_of_before() -> None:
    reading = read_metrics(LEGACY)
    assert reading.devices == {"n1-0": {"memory_used_mib": 2.0}}
    assert reading.containers == {("n1-0", "team", "p", "main"): {"memory_used_mib": 1.0}}


@pytest.mark.parametrize("text", ["not a metric at all {", "<html></html>"])
def test_what_is_no_metrics_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_metrics(text)


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster = make_cluster()
    make_node(cluster, "n1", [{}, {}])
    return cluster


def test_what_was_not_reported_is_absent_never_zero(cluster: Cluster) -> None:
    assert store_reading(cluster.pk, read_metrics(MONITOR), NOW) == 2
    sample = DeviceSample.objects.get()
    assert (sample.device.uuid, sample.memory_used_mib, sample.utilization_percent_peak) == ("n1-0", 1024.0, 120.0)
    assert ContainerSample.objects.get().utilization_percent is None


def test_two_readings_of_one_step_are_one_sample(cluster: Cluster) -> None:
    store_reading(cluster.pk, read_metrics(LEGACY), NOW)
    store_reading(cluster.pk, read_metrics(MONITOR), NOW + timedelta(seconds=10))
    assert DeviceSample.objects.get().memory_used_mib == 1024.0


@pytest.mark.parametrize(
    "text",
    [
        'HostGPUMemoryUsage{deviceuuid="n1-0"} +Inf',
        'HostGPUMemoryUsage{deviceuuid="n1-0"} NaN',
        'HostGPUMemoryUsage{deviceuuid="n1-0\0"} 1',
        f'vGPU_device_memory_usage_in_bytes{{podnamespace="team",podname="{"p" * 254}",deviceuuid="n1-0"}} 1',
        f'vGPU_device_memory_usage_in_bytes{{podnamespace="{"n" * 64}",podname="p",deviceuuid="n1-0"}} 1',
    ],
)
def test_what_no_device_and_no_pod_can_be_is_passed_over(cluster: Cluster, text: str) -> None:
    assert store_reading(cluster.pk, read_metrics(f"{text}\n"), NOW) == 0


def test_unknown_devices_are_passed_over(cluster: Cluster) -> None:
    assert store_reading(cluster.pk, read_metrics('HostGPUMemoryUsage{deviceuuid="other"} 1'), NOW) == 0


def test_samples_are_rolled_up_into_means_and_peaks_and_dropped_by_age(cluster: Cluster) -> None:
    for minutes, used in ((0, 100), (1, 200), (6, 400)):
        text = f'HostGPUMemoryUsage{{deviceuuid="n1-0"}} {used * 2**20}'
        store_reading(cluster.pk, read_metrics(text), NOW + timedelta(minutes=minutes))
    later = NOW + timedelta(hours=1)
    for _ in range(2):  # once more changes nothing
        roll_up_telemetry(later)
    steps = DeviceSample.objects.filter(resolution=Resolution.MINUTES).order_by("at")
    assert list(steps.values_list("at", "memory_used_mib", "memory_used_mib_peak")) == [
        (NOW, 150.0, 200.0),
        (NOW + timedelta(minutes=5), 400.0, 400.0),
    ]
    hour = DeviceSample.objects.get(resolution=Resolution.HOUR)
    assert (hour.at, hour.memory_used_mib, hour.memory_used_mib_peak) == (NOW, 275.0, 400.0)
    roll_up_telemetry(NOW + RETENTION[Resolution.RAW] + timedelta(hours=1))
    assert not DeviceSample.objects.filter(resolution=Resolution.RAW).exists()
    assert DeviceSample.objects.filter(resolution=Resolution.MINUTES).count() == 2
    roll_up_telemetry(NOW + RETENTION[Resolution.HOUR] + timedelta(days=1))
    assert not DeviceSample.objects.exists()


def test_an_endpoint_that_never_ends_is_given_up() -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b"# more\n")

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ScrapeFailed):
            scrape(f"http://127.0.0.1:{server.server_port}/", timeout_seconds=0.1)
        server.shutdown()


def test_a_redirect_is_not_followed() -> None:
    """An endpoint could send us to any address that we can reach."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/secret")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ScrapeFailed, match="302"):
            scrape(f"http://127.0.0.1:{server.server_port}/metrics")
        server.shutdown()
    assert asked == ["/metrics"]


def test_a_real_scrape_and_an_endpoint_that_fails(cluster: Cluster) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/garbage":
                self.wfile.write(b"this is no HTTP\r\n\r\n")
                return
            self.send_response(200 if self.path == "/metrics" else 500)
            self.end_headers()
            self.wfile.write(MONITOR.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        cluster.telemetry_urls = [f"{base}/broken", f"{base}/garbage", "file:///etc/hostname", f"{base}/metrics"]
        assert sample_clusters([cluster], NOW) == 2
        server.shutdown()
    assert DeviceSample.objects.get().memory_used_mib == 1024.0


PHYSICAL = """DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="n1-0",Hostname="n1"} 61
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="n1-0",Hostname="n1"} 187.5
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="n1-1",Hostname="n1"} 9223372036854775794
DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="n1-2",Hostname="n1"} 2147483632
DCGM_FI_DEV_POWER_USAGE{gpu="2",UUID="n1-2",Hostname="n1"} 140737488355328
hami_device_power{node="n1",device_uuid="n1-1"} 55
"""


@contextlib.contextmanager
def served(text: str) -> Iterator[str]:
    """The URL of an endpoint that says this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/metrics"
        server.shutdown()


def test_temperature_and_power_in_the_words_of_two_exporters() -> None:
    devices = read_metrics(PHYSICAL).devices
    assert devices == {"n1-0": {"temperature_celsius": 61.0, "power_watts": 187.5}, "n1-1": {"power_watts": 55.0}}


@pytest.mark.django_db
def test_what_two_endpoints_say_of_one_device_is_one_sample() -> None:
    cluster = make_cluster()
    make_node(cluster, "n1", [{}, {}])
    with served(MONITOR) as monitor, served(PHYSICAL) as exporter:
        for order in ([monitor, exporter], [exporter, monitor]):
            DeviceSample.objects.all().delete()
            cluster.telemetry_urls = order
            sample_clusters([cluster], NOW)
            sample = DeviceSample.objects.get(device__uuid="n1-0")
            found = (sample.memory_used_mib, sample.temperature_celsius, sample.power_watts)
            assert found == (1024.0, 61.0, 187.5), order
    roll_up_telemetry(NOW + timedelta(hours=1))
    rolled = DeviceSample.objects.get(device__uuid="n1-0", resolution=Resolution.MINUTES)
    assert (rolled.temperature_celsius, rolled.power_watts) == (61.0, 187.5)


def test_a_failure_does_not_tell_the_password(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with served("") as url:
        port = url.split(":")[2].split("/")[0]
    cluster.telemetry_urls = [f"http://me:secret@127.0.0.1:{port}/metrics", "ftp://me:secret@127.0.0.1/"]
    assert sample_clusters([cluster], NOW) == 0
    assert caplog.text.count("***@127.0.0.1") == 2
    assert "secret" not in caplog.text


@pytest.mark.django_db
def test_nodes_that_are_switched_off_are_waited_for_together(cluster: Cluster) -> None:
    together = threading.Barrier(4)

    def silent(url: str) -> str:
        together.wait(timeout=PATIENCE_SECONDS)  # raises unless all four are asked at once
        raise ScrapeFailed(url)

    cluster.telemetry_urls = [f"http://10.0.0.{number}/metrics" for number in range(4)]
    assert sample_clusters([cluster], NOW, read=silent) == 0
    assert not together.broken


@pytest.mark.django_db
def test_a_cluster_whose_monitors_are_silent_keeps_no_other_waiting(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Clusters take turns, and the rest of a long list is left to the next run."""
    asked: list[str] = []

    def seen(url: str) -> str:
        asked.append(url)
        if url.startswith("http://silent"):
            raise ScrapeFailed(url)
        return MONITOR

    cluster.telemetry_urls = ["http://monitor/metrics"]
    racks = Cluster(pk=cluster.pk + 1, name="racks", telemetry_urls=[f"http://silent{n}/" for n in range(1000)])
    assert sample_clusters([racks, cluster], NOW, read=seen, at_once=1, run_seconds=PATIENCE_SECONDS) == 2
    assert asked.index("http://monitor/metrics") == 1
    assert len(set(asked)) == 1001
    asked.clear()
    assert sample_clusters([racks, cluster], NOW, read=seen, run_seconds=-1.0) == 0
    assert asked == []
    assert "http://monitor/metrics: not reached in time" in caplog.text
