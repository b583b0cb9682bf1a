"""The engine: keeps a `World` in step with the database, asks the pure core for decisions and saves them."""
