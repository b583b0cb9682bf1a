"""The project: settings, addresses, and entry points of the web server and workers. No other app imports it."""

__version__ = "0.1.0"
