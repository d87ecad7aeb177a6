"""The OpenAPI document: that it is one, and that it says what the library checks."""
