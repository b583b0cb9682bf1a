"""One file for each kind of job: its templates, how it starts and stops, how its status is read."""
