"""`manage.py replay FILE ...`: prints the decisions of a recorded cluster's scheduler that our rules would not have
made, and how many agree.

Needs neither database nor network, so a cluster can be examined before anything is installed in it. docs/switching.md
describes how to record one.
"""

from __future__ import annotations

import gzip
import json
from argparse import ArgumentParser
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from foundation.exceptions import KueuewebError
from queues.manifests.documents import read_documents
from scheduler.store.configuration import read_configuration
from scheduling.model.configuration import Configuration
from scheduling.model.times import rfc3339
from scheduling.shadow.choices import Choice
from scheduling.shadow.comparisons import Verdict
from scheduling.simulator.recording import Replay, Told, UnreadableRecording, read_changes


class Command(BaseCommand):
    """Compare a recorded cluster's decisions with kueueweb's."""

    help = (
        "Evaluate kueueweb's rules at each decision of a recorded cluster, and print each decision that they would "
        "not have made."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, help="recorded JSON, gzip if a name ends in .gz")
        parser.add_argument("--configuration", type=Path, help="Kueue's Configuration, YAML (default: its defaults)")
        parser.add_argument("--output", type=Path, help="write all comparisons here, as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the differences and, at the end, how many decisions agree."""
        try:
            replay = Replay(_configuration(options["configuration"]))
            told = list(replay.play(read_changes(_text(path) for path in options["files"])))
        except (UnreadableRecording, KueuewebError, OSError, EOFError, UnicodeDecodeError) as error:
            raise CommandError(str(error)) from error
        for each in told:
            if each.comparison.verdict is not Verdict.AGREE:
                self.stdout.write(_line(each))
        verdicts = Counter(each.comparison.verdict for each in told)
        agreed, total = verdicts[Verdict.AGREE], verdicts.total()
        share = f"{100 * agreed / total:.1f} %" if total else "none"
        out_of_turn = sum(each.comparison.aside > 0 for each in told)
        late = f", {out_of_turn} of them out of turn" if out_of_turn else ""
        self.stdout.write(f"{total} decisions, {agreed} agree ({share}{late}), {total - agreed} differ")
        if replay.unanswered:
            self.stdout.write("Not compared: decisions that kueueweb would make at the end of the recording:")
        for found in replay.unanswered:
            self.stdout.write(f"    {found.workload}: {_said(found.ours)}\n        theirs: {_said(found.theirs)}")
        if options["output"] is not None:
            written = [{"at": rfc3339(each.at), **asdict(each.comparison)} for each in told]
            options["output"].write_text(json.dumps(written, indent=1) + "\n")


def _text(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def _configuration(path: Path | None) -> Configuration | None:
    if path is None:
        return None
    documents = read_documents(_text(path))
    if len(documents) != 1 or documents[0].content.get("kind") != "Configuration":
        raise CommandError(f"{path}: Required value: one object of kind Configuration")
    try:
        return read_configuration(documents[0].content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{path}: {type(error).__name__}: {error}") from error


def _line(told: Told) -> str:
    found = told.comparison
    sides = f"theirs: {_said(found.theirs)}\n    ours: {_said(found.ours)}"
    return f"{rfc3339(told.at)} {found.workload}: {found.verdict}\n    {sides}"


def _said(choice: Choice) -> str:
    """Return a text about a decision: the action, the place and the reason."""
    flavors = [
        f"{name} x {count}: " + ", ".join(f"{resource} in {flavor}" for resource, flavor in given)
        for name, count, given in choice.flavors
    ]
    place = f" in ClusterQueue {choice.cluster_queue}" if choice.cluster_queue else ""
    return "; ".join(filter(None, (f"{choice.act}{place}", *flavors, choice.message)))
