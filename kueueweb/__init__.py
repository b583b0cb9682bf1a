"""The project: settings, addresses, the web server's and the workers' entry points. Nobody imports it."""

__version__ = "0.1.0"
