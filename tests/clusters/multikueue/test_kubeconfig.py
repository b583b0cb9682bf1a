"""Kubeconfigs of workers: none that is insecure, or would run or read something here."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from clusters.api_errors import ClusterError
from clusters.multikueue.kubeconfig import checked_path, read_kubeconfig


def config(cluster: dict[str, Any], user: dict[str, Any]) -> bytes:
    return orjson.dumps(
        {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": "https://10.0.0.1", **cluster}}],
            "users": [{"name": "it", "user": user}],
        }
    )


@pytest.mark.parametrize(
    ("text", "reason", "word"),
    [
        (b"[", "BadKubeConfig", "can't be read"),
        (b"{}", "BadKubeConfig", "current-context"),
        (config({"insecure-skip-tls-verify": True}, {}), "InsecureKubeConfig", "insecure-skip-tls-verify"),
        (config({"certificate-authority": "/etc/ca"}, {}), "InsecureKubeConfig", "certificate-authority-data"),
        (config({}, {"tokenFile": "/var/run/token"}), "InsecureKubeConfig", "tokenFile"),
        (config({}, {"client-key": "/etc/key"}), "InsecureKubeConfig", "client-key-data"),
        (config({}, {"exec": {"command": "sh"}}), "InsecureKubeConfig", "exec"),
    ],
)
def test_what_is_refused(text: bytes, reason: str, word: str) -> None:
    with pytest.raises(ClusterError) as refused:
        read_kubeconfig(text)
    assert refused.value.reason == reason
    assert word in refused.value.message


def test_what_is_taken() -> None:
    assert read_kubeconfig(config({"certificate-authority-data": "eA=="}, {"token": "t"}))["current-context"] == "it"
    assert checked_path("/etc/multikueue/kubeconfigs/east") == "/etc/multikueue/kubeconfigs/east"


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/multikueue/kubeconfigs/../../passwd", "kubeconfigs/east"])
def test_files_lie_in_one_directory(path: str) -> None:
    with pytest.raises(ClusterError) as refused:
        checked_path(path)
    assert refused.value.reason == "BadKubeConfig"
