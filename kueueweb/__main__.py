"""Django's command line for this project: `kueueweb demo`, `python -m kueueweb migrate`, `python manage.py ...`."""

import os
import sys

from foundation.garbage_collection import raise_thresholds

_CHECKUPS = ("doctor", "preflight")


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    raise_thresholds()
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    # Commands are modules, whose names have no dashes: `audit-state` means `audit_state`.
    program, *rest = sys.argv
    command = [word if word.startswith("-") else word.replace("-", "_") for word in rest[:1]]
    try:
        execute_from_command_line([program, *command, *rest[1:]])
    except ImproperlyConfigured as error:
        if command[:1] not in ([each] for each in _CHECKUPS):
            raise
        _print_refused_setting(str(error), as_json="json" in " ".join(rest[1:]))
        sys.exit(1)
    except OperationalError as error:
        if os.environ.get("DATABASE_URL"):
            raise
        sys.exit(str(error))  # a sentence that names the variable; where it failed says nothing more


def _print_refused_setting(message: str, *, as_json: bool) -> None:
    """Print an invalid setting, with which no process starts, as the only finding: without settings nothing else can be
    asked.
    """
    from kueueweb.checkup import finding

    found = [finding.fail("settings", message, "Set the variable named in the message (docs/operations.md).")]
    sys.stdout.write((finding.as_json if as_json else finding.as_lines)(found) + "\n")


if __name__ == "__main__":
    main()
