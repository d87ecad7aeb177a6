"""A journal in a database that is not there."""

from muybridge.batch import JournalUnusable
from muybridge.batch.postgres import PostgresJournal

try:
    PostgresJournal("postgresql://127.0.0.1:1/horses?connect_timeout=5", "horses")
except JournalUnusable as error:
    print(str(error).partition(": ")[0])
