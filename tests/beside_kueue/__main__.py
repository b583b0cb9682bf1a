"""`make test-shadow KUEUE=DIR`."""

import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kueueweb.settings")
    django.setup()
    from tests.beside_kueue.run import main

    sys.exit(main(sys.argv[1:]))
