"""What becomes of a batch's results: their places, sidecars, the contact sheet and the manifest."""
