"""What history does."""
