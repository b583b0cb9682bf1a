"""Writes the digests of container images beside their names, as `make pin-images`.

Without arguments: those of the Dockerfile and docker-compose.yml, each the one that its tag has now. With the name of
our own image, once it is pushed: its name and digest in deploy/kubernetes/kustomization.yaml. Needs skopeo, or Docker
with buildx.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("Dockerfile", "docker-compose.yml")
KUSTOMIZATION = "deploy/kubernetes/kustomization.yaml"
_FOREIGN = re.compile(r"(?P<before>^FROM |^ +image: )(?P<name>[\w./-]+:[\w.-]+)(?:@sha256:[0-9a-f]{64})?", re.MULTILINE)
_OWN = re.compile(r"newName: [^,}]+, digest: \"?[^\",}]*\"?")


def digest_of(image: str) -> str:
    """Return the digest of the image's index, which covers all platforms, from the registry."""
    if shutil.which("skopeo"):
        command = ["skopeo", "inspect", "--no-tags", "--format", "{{.Digest}}", f"docker://{image}"]
    else:
        command = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if not re.fullmatch("sha256:[0-9a-f]{64}", found):
        raise SystemExit(f"{command[0]} gave no digest of {image}: {found!r}")
    return found


def pinned(text: str, digest: Callable[[str], str]) -> str:
    """Return the text of a Dockerfile or a compose file with a digest behind every image that has a tag."""
    return _FOREIGN.sub(lambda found: f"{found['before']}{found['name']}@{digest(found['name'])}", text)


def with_own_image(text: str, image: str, digest: Callable[[str], str]) -> str:
    """Return the kustomization's text with the name and the digest of our image."""
    name = re.sub(r":[^:/]+$", "", image.partition("@")[0])
    return _OWN.sub(f'newName: {name}, digest: "{digest(image)}"', text)


def main(image: str = "") -> None:
    """Write the files again."""
    if image:
        path = ROOT / KUSTOMIZATION
        path.write_text(with_own_image(path.read_text(encoding="utf-8"), image, digest_of), encoding="utf-8")
        return
    for name in FILES:
        path = ROOT / name
        path.write_text(pinned(path.read_text(encoding="utf-8"), digest_of), encoding="utf-8")


if __name__ == "__main__":
    main(*filter(None, sys.argv[1:]))
