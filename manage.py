#!/usr/bin/env python
"""Django's command line for this project, from its sources."""

from kueueweb.__main__ import main

if __name__ == "__main__":
    main()
