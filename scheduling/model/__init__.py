"""The nouns of scheduling as frozen values."""
