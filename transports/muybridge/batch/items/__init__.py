"""What is to be done in a batch: read from a file, kept in a store, decided by people."""
