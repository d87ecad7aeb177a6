"""A store in a bucket whose server is not there."""

import os

from muybridge.batch import PlaceUnusable
from muybridge.batch.results.places import open_store

os.environ |= {
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ALLOW_HTTP": "true",
}
try:
    open_store("s3://studio/horses").check()
except PlaceUnusable as error:
    print(str(error).partition(": ")[0])
