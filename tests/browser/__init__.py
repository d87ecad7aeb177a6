"""What people see, in a real browser: the local service's pages, and results in a notebook."""
