"""Controllers of admission checks that run inside kueueweb."""
