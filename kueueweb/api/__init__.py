"""The shared parts of all endpoints; the settings name them, so that the apps below never import them."""
