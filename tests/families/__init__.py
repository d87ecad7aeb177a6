"""What each family accepts and rejects, transcribed by hand from the specification."""
