"""Builds Helm for `make test-helm`: python -m scripts.helm FOLDER

It comes as source through Go's module proxy, as the control plane of scripts/kubernetes.py does, and is built by the
machine's Go once: some minutes on two cores.
"""

import shutil
import sys
from pathlib import Path

from scripts.kubernetes import Source, build_missing

HELM = Source("helm.sh/helm/v4", "v4.3.1", {"helm": "./cmd/helm"})


def main(target: Path) -> None:
    """Build Helm, unless it is already in the folder."""
    if shutil.which("go") is None:
        sys.exit("Go is not installed; it is needed to build Helm from source.")
    target.mkdir(parents=True, exist_ok=True)
    build_missing(HELM, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
