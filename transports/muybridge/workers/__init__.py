"""Workers on shared batches under a job queue.

A message of the queue only says "take a turn at batch B". The store says what is to be done, and
the environment of the worker says where the store is, where results go and what the key is. So a
message that is lost, repeated or forged can neither pay for anything nor read anything.
"""
