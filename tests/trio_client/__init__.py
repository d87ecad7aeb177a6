"""The client for trio: its clock, its cancellation, and many tasks at once."""
