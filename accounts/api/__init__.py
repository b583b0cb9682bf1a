"""Who asks, and of which cluster; logging in and out."""
