"""The front of Django: connections, bodies, probes and turns, all on the event loop."""
