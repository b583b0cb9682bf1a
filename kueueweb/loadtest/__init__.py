"""Kueue's scalability shapes, run through the whole stack: REST, database, scheduler worker, REST."""
