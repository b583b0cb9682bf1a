"""What is noted each fifteen seconds: from what the leader published, from rows and from the log of decisions."""
