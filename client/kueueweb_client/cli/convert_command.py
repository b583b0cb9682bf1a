"""convert: batch scripts of Slurm as manifests, without a server."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from kueueweb_client.cli.session import Namespace, namespace_of, say, warn
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ClientError
from kueueweb_client.slurm import KEPT_AS, Batch, Submission, job_of, read_script

_OF_THE_SUBMISSION: Final = ("wait", "parsable", "test-only", "quiet", "verbose")
"""Options that say how sbatch answers, and nothing about the job."""


def _convert(
    files: Annotated[list[str], typer.Argument(metavar="SCRIPT...", help="- reads standard input.")],
    image: Annotated[str, typer.Option("--image", envvar="KUEUEWEB_IMAGE", help="The container image.")] = "",
    queue: Annotated[str, typer.Option("--queue", help="The LocalQueue, if no #SBATCH line names one.")] = "",
    namespace: Namespace = "",
) -> None:
    """Write batch scripts of Slurm as the Jobs that sbatch submits, and report each option on standard error.

    Nothing is submitted: `kueueweb apply -f` stores the result. A script always gets the same name, so that it replaces
    its Job. `manage.py convert` converts the objects and files of other schedulers.
    """
    where = namespace_of(namespace)
    converted: list[tuple[str, Batch, Submission]] = []
    for file in files:
        text = _text(file)
        try:
            batch = read_script(text)
            unique = hashlib.sha256(text.encode()).hexdigest()[:8]
            made = job_of(batch, namespace=where, image=image, queue=queue, arguments=(), unique=unique)
        except ClientError as error:
            raise ClientError(f"{file}: {error}") from error
        converted.append((file, batch, made))
    say(to_yaml(*(made.manifest for _, _, made in converted)).rstrip())
    for file, batch, made in converted:
        for line in _report(batch, made):
            warn(line.replace(": ", f": {file}, ", 1))


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{file}: {error}") from error


def _report(batch: Batch, made: Submission) -> Iterator[str]:
    """Yield a line for each option: the losses first."""
    for warning in made.warnings:
        yield f"lost: {warning}"
    told = " ".join(made.warnings)
    for name, value in batch.options.items():
        option = f"--{name}={value}" if value else f"--{name}"
        if name in _OF_THE_SUBMISSION:
            yield f"lost: {option}: an option of the submission"
        elif name in KEPT_AS and f"--{name} is not honoured" not in told:
            yield f"kept: {option}: {KEPT_AS[name]}"


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("convert")(_convert)
