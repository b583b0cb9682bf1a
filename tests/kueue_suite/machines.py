"""The machines of kind's clusters, which the suites stop parts of by commands of Docker."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.kueue_suite.plane import AggregatedPlane

PATH: Final = "docker"
"""Where the stand-in takes a command, its words separated by NUL."""
_CONTROL_PLANE: Final = "-control-plane"
_PROGRAM: Final = f"""#!{sys.executable}
import os, sys, urllib.request
words = "\\0".join(sys.argv[1:]).encode()
with urllib.request.urlopen(os.environ["KUEUE_STAND_IN"] + "/{PATH}", data=words, timeout=300):
    pass
"""


def install_docker(folder: Path) -> str:
    """Put a program named docker there, which asks the stand-in. Returns the PATH on which it is found first."""
    program = folder / "docker"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    return str(folder)


class Machines:
    """kind's machines of each cluster (name -> plane). A node belongs to the first cluster."""

    def __init__(self, planes: Mapping[str, AggregatedPlane]) -> None:
        self._planes = planes
        self._starter = ThreadPoolExecutor(1)
        """Starts processes: the kernel stops a child when the thread that started it ends, as a request's does."""

    def run(self, words: Sequence[str]) -> None:
        """Do as `docker exec` does on one of kind's nodes: stop or start its kubelet, or its API server.

        Raises ValueError for another command.
        """
        match words:
            case ["exec", node, "systemctl", ("stop" | "start") as verb, "kubelet"]:
                first = next(iter(self._planes.values()))
                first.set_kubelet(node, runs=verb == "start")
            case ["exec", node, "sh", "-c", command] if "kube-apiserver.yaml" in command:
                plane = self._planes[node.removesuffix(_CONTROL_PLANE)]
                # The suite binds the API server to the loopback of its container, which cuts it off, and back.
                if "/d'" in command:
                    self._starter.submit(plane.start_api_server).result()
                else:
                    plane.kill_api_server()
            case _:
                raise ValueError(f"docker {' '.join(words)}: not a command that kind's machines know here")
