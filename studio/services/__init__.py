"""The services of the studio."""
