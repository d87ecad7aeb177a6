"""Looks at the pictures, videos and sounds of a request before it is paid for."""
