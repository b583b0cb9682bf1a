"""Builds a real Kubernetes control plane for `make test-kubernetes`: python scripts/kubernetes.py FOLDER [OPTIONS]

etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, and kwok, which simulates the kubelets of nodes
that do not exist. All come as source through Go's module proxy, checked against Go's checksum database, and are built
by the machine's Go (1.26 or newer): about five minutes on two cores, once. A program that is in FOLDER already stays.

It also builds our own small program of client-go's informers, which tests/kubernetes/test_informers.py runs, and with
--clients one of Argo CD's engine, for tests/kubernetes_clients/test_gitops.py.

With --operators, for `make test-operators`, it builds operators of kinds of jobs too, and keeps the definitions and
webhooks that their releases install, in FOLDER/operators. With --clients, for `make test-clients`, it builds clients of
Kubernetes that others wrote.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

KUBERNETES = "1.36.3"


class Source(NamedTuple):
    """A Go module and its needed programs: name -> package; and the files to keep of it."""

    module: str
    version: str
    programs: dict[str, str]
    kept: tuple[str, ...] = ()


SOURCES = (
    Source("go.etcd.io/etcd/server/v3", "v3.7.3", {"etcd": "."}),
    Source(
        "k8s.io/kubernetes",
        f"v{KUBERNETES}",
        {name: f"./cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")},
    ),
    Source("sigs.k8s.io/kwok", "v0.8.0", {"kwok": "./cmd/kwok"}),
)

TESTS = Path(__file__).resolve().parent.parent / "tests"
INFORMER = TESTS / "kubernetes" / "informer"
GITOPS = TESTS / "kubernetes_clients" / "gitops"
"""Programs of this repository, for tests of Kubernetes' wire format."""

OPERATORS = (
    Source(
        "sigs.k8s.io/jobset",
        "v0.12.0",
        {"jobset": "."},
        ("config/components/crd/bases/*.yaml", "config/components/webhook/manifests.yaml"),
    ),
    Source(
        "sigs.k8s.io/lws",
        "v0.6.1",
        {"lws": "./cmd"},
        ("config/crd/bases/*.yaml", "config/webhook/manifests.yaml"),
    ),
    Source(
        "github.com/kubeflow/mpi-operator",
        "v0.8.2",
        {"mpi-operator": "./cmd/mpi-operator"},
        ("manifests/base/kubeflow.org_mpijobs.yaml",),
    ),
    Source(
        "github.com/ray-project/kuberay/ray-operator",
        "v1.5.0",
        {"ray-operator": "."},
        ("config/crd/bases/*.yaml",),
    ),
    Source(
        "github.com/kubeflow/trainer/v2",
        "v2.3.0",
        {"trainer": "./cmd/trainer-controller-manager"},
        ("manifests/base/crds/trainer*.yaml", "manifests/base/webhook/manifests.yaml"),
    ),
    Source(
        "github.com/kubeflow/training-operator",
        "v1.9.4",
        {"training-operator": "./cmd/training-operator.v1"},
        # MPIJob has an operator of its own, whose definition is newer.
        ("manifests/base/crds/kubeflow.org_[!m]*.yaml", "manifests/base/webhook/manifests.yaml"),
    ),
)

CLIENTS = (
    Source("sigs.k8s.io/kueue", "v0.17.0", {"kueuectl": "./cmd/kueuectl"}),
    Source("github.com/derailed/k9s", "v0.50.16", {"k9s": "."}),
    Source("github.com/opentofu/opentofu", "v1.12.6", {"tofu": "./cmd/tofu"}),
    # The releases from 2.0.0 on are no module versions, because the module's path has no /v2.
    Source(
        "github.com/hashicorp/terraform-provider-kubernetes",
        "v1.13.4-0.20260821094251-3a33fb6cc605",
        {"terraform-provider-kubernetes": "."},
    ),
)


def main(target: Path, *, operators: bool, clients: bool) -> None:
    """Build the missing programs in the folder."""
    if shutil.which("go") is None:
        sys.exit("Go is not installed; it is needed to build a Kubernetes control plane from source.")
    target.mkdir(parents=True, exist_ok=True)
    for source in (*SOURCES, *(OPERATORS if operators else ()), *(CLIENTS if clients else ())):
        build_missing(source, target)
    for own in (INFORMER, *((GITOPS,) if clients else ())):
        if not (target / own.name).exists():
            build(own, {own.name: "."}, target.resolve())


def build_missing(source: Source, target: Path) -> None:
    """Build the programs of a module that are not in the folder yet."""
    missing = {name: package for name, package in source.programs.items() if not (target / name).exists()}
    if missing:
        with tempfile.TemporaryDirectory(prefix="kueueweb-kubernetes-") as folder:
            unpacked = unpack(source, Path(folder) / "source")
            keep(unpacked, source, target)
            build(unpacked, missing, target.resolve())


def keep(folder: Path, source: Source, target: Path) -> None:
    """Copy the manifests of an operator that a cluster needs."""
    for name in source.programs if source.kept else ():
        kept = target / "operators" / name
        kept.mkdir(parents=True, exist_ok=True)
        for pattern in source.kept:
            for path in folder.glob(pattern):
                shutil.copyfile(path, kept / path.name)


def unpack(source: Source, folder: Path) -> Path:
    """Copy the module so that it can be built on its own: its parts are modules of the same release."""
    downloaded = run("go", "mod", "download", "-json", f"{source.module}@{source.version}", directory=Path.cwd())
    shutil.copytree(json.loads(downloaded)["Dir"], folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.rmtree(folder / "vendor", ignore_errors=True)
    manifest = folder / "go.mod"
    manifest.write_text(without_local_replacements(manifest.read_text()))
    return folder


def without_local_replacements(text: str) -> str:
    """Return a go.mod without replacements by folders of the same repository; Kubernetes releases its parts as
    v0.X.Y."""
    replaced = re.findall(r"^\s*(?:replace )?(\S+) => \.{1,2}/\S*$", text, re.MULTILINE)
    text = re.sub(r"^\s*(?:replace )?\S+ => \.{1,2}/\S*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^replace \(\s*\)\n", "", text, flags=re.MULTILINE)
    part = f"v0.{KUBERNETES.split('.', 1)[1]}"
    for module in replaced:
        text = re.sub(rf"^(\s+{re.escape(module)}) v0\.0\.0\b", rf"\1 {part}", text, flags=re.MULTILINE)
    return text


def build(folder: Path, programs: dict[str, str], target: Path) -> None:
    """Run `go build` for each program into the target folder."""
    version = f"-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"
    for name, package in programs.items():
        print(f"Building {name} ...", flush=True)
        run("go", "build", "-ldflags", f"-s -w {version}", "-o", str(target / name), package, directory=folder)


def run(*command: str, directory: Path) -> str:
    """Return the output of a command; exits with its errors if it fails."""
    told = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=mod -buildvcs=false", "CGO_ENABLED": "0"}
    done = subprocess.run(command, cwd=directory, env=told, check=False, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]), operators="--operators" in sys.argv[2:], clients="--clients" in sys.argv[2:])
