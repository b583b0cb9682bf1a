"""Named objects that belong to one user."""
