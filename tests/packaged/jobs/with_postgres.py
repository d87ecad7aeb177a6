"""A store in a database that is not there."""

from muybridge.purchases import StoreUnusable, open_store

try:
    open_store("postgresql://127.0.0.1:1/horses?connect_timeout=5").counts(1)
except StoreUnusable as error:
    print(str(error).partition(": ")[0])
