"""The engine: keeps a `World` in step with the database, asks the rules for decisions and saves them."""
