"""Records: JSON in and out, and the one converter between JSON and typed values."""
