"""When a waiting workload starts: run times, forward runs, and a correction learnt from past estimates."""
