"""Builds kueueweb's image, and pulls or builds its base images, for `make test-containers`: python
scripts/containers.py FOLDER

Docker does it where its daemon answers, else podman, as root. Where no registry can be reached, images of the same
names are made of Debian's packages with mmdebstrap (Python 3.11, PostgreSQL 15 and Redis 7 in the places of the pinned
ones); they stay in FOLDER. An error names the missing programs and the packages that contain them.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
IMAGE = "kueueweb"
PODMAN_NEEDS = {
    "podman": "podman", "runc": "runc", "iptables": "iptables", "/usr/lib/podman/netavark": "netavark",
    "/usr/lib/podman/aardvark-dns": "aardvark-dns",
}  # fmt: skip
# crun refuses machines with both versions of cgroups, and no process here may raise limits above its own.
PODMAN_CONFIGURATION = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
"""
STAND_INS = {
    "python": "python3,python3-pip,python-is-python3,ca-certificates",
    "postgres": "postgresql,ca-certificates",
    "valkey/valkey": "redis-server,ca-certificates",
}
"""Debian packages in the place of each image that we start from."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
STAND_IN_RECIPES = {
    "python": """\
FROM {rootfs}
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ENV PIP_BREAK_SYSTEM_PACKAGES=1 PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_ROOT_USER_ACTION=ignore
""",
    "postgres": """\
FROM {rootfs}
COPY postgres-entrypoint /usr/local/bin/
ENTRYPOINT ["sh", "/usr/local/bin/postgres-entrypoint"]
""",
    "valkey/valkey": """\
FROM {rootfs}
RUN ln -s redis-server /usr/bin/valkey-server && ln -s redis-cli /usr/bin/valkey-cli
WORKDIR /data
""",
}
POSTGRES_ENTRYPOINT = """\
# What the official image does with its variables: a database and its owner, made at the first start.
set -eu
data=/var/lib/postgresql/data
export PATH="$(echo /usr/lib/postgresql/*/bin):$PATH"
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
install -d -o postgres -g postgres -m 700 "$data"
install -d -o postgres -g postgres /var/run/postgresql
if [ ! -s "$data/PG_VERSION" ]; then
    echo "$POSTGRES_PASSWORD" >/tmp/password && chown postgres /tmp/password
    as_postgres initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust \\
        --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
    rm /tmp/password
    echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
    echo "CREATE DATABASE \\"$POSTGRES_DB\\"" | as_postgres postgres --single -D "$data" postgres
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups postgres -D "$data" -c "listen_addresses=*"
"""


def main(folder: Path) -> None:
    """Build the missing images, and always kueueweb's own."""
    folder.mkdir(parents=True, exist_ok=True)
    engine = container_engine(folder)
    print(f"Containers run by {engine}.", flush=True)
    stand_ins = {image: have(engine, image, folder) for image in sorted(images())}
    recipe = (ROOT / "Dockerfile").read_text()
    for image, there in stand_ins.items():
        recipe = recipe.replace(f"FROM {image}", f"FROM {there}")
    (folder / "Dockerfile").write_text(recipe)
    build(engine, IMAGE, folder / "Dockerfile", ROOT)
    (folder / "images").write_text("".join(f"{image} {there}\n" for image, there in stand_ins.items()))


def container_engine(folder: Path) -> str:
    """Return `docker` or `podman`; exit with the missing programs if neither works."""
    if shutil.which("docker") and succeeds("docker", "info"):
        return "docker"
    if os.geteuid() != 0:
        sys.exit("No Docker daemon answers, and podman needs root here. Run this as root.")
    # Programs that are not on the services' path are given by their files.
    missing = [package for program, package in PODMAN_NEEDS.items() if not shutil.which(program)]
    if missing:
        sys.exit(f"No Docker daemon answers, and podman lacks: apt install {' '.join(missing)}")
    configuration = folder / "containers.conf"
    configuration.write_text(PODMAN_CONFIGURATION)
    os.environ["CONTAINERS_CONF"] = str(configuration.resolve())
    return "podman"


def images() -> set[str]:
    """Return the images that the Dockerfile and the compose file start from, with their digests."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    named = {service["image"] for service in services} - {IMAGE}
    return named | set(re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))


def have(engine: str, image: str, folder: Path) -> str:
    """Return the local name of the image: its own if it can be pulled, or else its stand-in's."""
    if succeeds(engine, "image", "inspect", image) or succeeds(engine, "pull", "--quiet", image):
        return image
    name = image.partition(":")[0]
    tag = f"localhost/kueueweb-stand-in/{name}:{fingerprint(name)}"
    if not succeeds(engine, "image", "inspect", tag):
        print(f"{image} cannot be pulled: {tag} is built from Debian's packages instead.", flush=True)
        make_stand_in(engine, name, tag, folder)
    return tag


def fingerprint(name: str) -> str:
    parts = (STAND_INS[name], STAND_IN_RECIPES[name], POSTGRES_ENTRYPOINT)
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]


def make_stand_in(engine: str, name: str, tag: str, folder: Path) -> None:
    """Build an image of Debian's packages with the additional files of the official image."""
    if not shutil.which("mmdebstrap"):
        sys.exit("No image registry answers, and building images requires mmdebstrap: apt install mmdebstrap")
    context = folder / name.replace("/", "-")
    context.mkdir(parents=True, exist_ok=True)
    rootfs = folder / f"{context.name}.tar"
    if not rootfs.exists():
        unfinished = folder / f"{context.name}-unfinished.tar"
        run("mmdebstrap", "--variant=minbase", f"--include={STAND_INS[name]}", "bookworm", str(unfinished))
        unfinished.rename(rootfs)
    base = f"localhost/kueueweb-rootfs/{name}:latest"
    run(engine, "import", str(rootfs), base)
    shutil.copy(CERTIFICATES, context)
    (context / "postgres-entrypoint").write_text(POSTGRES_ENTRYPOINT)
    (context / "Dockerfile").write_text(STAND_IN_RECIPES[name].format(rootfs=base))
    build(engine, tag, context / "Dockerfile", context)


def build(engine: str, tag: str, recipe: Path, context: Path) -> None:
    print(f"Building {tag} ...", flush=True)
    options = ["--isolation", "chroot", "--network", "host", "--pull=never"] if engine == "podman" else []
    run(engine, "build", *options, "--tag", tag, "--file", str(recipe), str(context))


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False, timeout=900).returncode == 0


def run(*command: str) -> None:
    """Run the command; exit with its own message if it fails."""
    done = subprocess.run(command, check=False, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
