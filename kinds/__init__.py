"""The framework that declares a kind once: its names, versions and fields."""
