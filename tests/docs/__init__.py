"""Tests of the documentation: its generated parts, links and statements."""
