"""What a person decides about items that may have been accepted."""
