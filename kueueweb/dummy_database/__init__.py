"""The database backend that is used if DATABASE_URL is not set: it speaks PostgreSQL's SQL but refuses to connect."""
