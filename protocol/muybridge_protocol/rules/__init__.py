"""The rules that requests are checked by, as data: of one value, and between values."""
