"""A port of the core to JavaScript, written from the documentation: it tests the vectors."""
