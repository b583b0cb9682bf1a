"""What hardware there is, and who holds which slice of it."""
