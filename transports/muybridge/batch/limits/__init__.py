"""What all workers of a batch share besides its items: one request rate, and one budget.

Both are values. A journal keeps them, and changes them in a transaction.
"""
