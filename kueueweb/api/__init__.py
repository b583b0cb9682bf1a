"""What all endpoints share; the settings name it, so that the apps below never import it."""
