"""Reads rows and changes into the World, and writes decisions to rows."""
