"""Django's command line for this project: `kueueweb demo`, `python -m kueueweb migrate`, `python manage.py ...`."""

import os
import sys


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    from django.core.management import execute_from_command_line

    # Commands are modules, whose names have no dashes: `audit-state` means `audit_state`.
    program, *rest = sys.argv
    command = [word if word.startswith("-") else word.replace("-", "_") for word in rest[:1]]
    execute_from_command_line([program, *command, *rest[1:]])


if __name__ == "__main__":
    main()
