"""The page that shows what is in a batch, and its small pictures."""
