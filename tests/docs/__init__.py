"""Tests of what docs/ is built with, and of the links on its pages."""
