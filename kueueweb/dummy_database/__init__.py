"""The database that stands in where DATABASE_URL is not set: it speaks PostgreSQL's SQL but refuses to connect."""
