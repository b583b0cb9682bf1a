"""One file for each kind of job: where its templates are, how it starts and stops, what its status says."""
