"""Controllers of admission checks that run in the product."""
