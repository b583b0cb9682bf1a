"""Reports: counted in SQL from records that last."""
