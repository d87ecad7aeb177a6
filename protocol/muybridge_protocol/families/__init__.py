"""The eleven families: one module each, and the table of all of them."""
