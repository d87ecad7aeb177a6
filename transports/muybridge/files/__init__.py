"""Files on disk: results saved whole, locks, and pictures and videos as parts of a text request."""
