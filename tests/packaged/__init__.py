"""What is built, and what it is once it is installed: with no extra, and with each alone."""
