"""The tables of the journal, and what tells its file from others."""

from __future__ import annotations

from typing import Final

VERSION: Final = 1
APPLICATION: Final = 0x6D757962  # "muyb"
# `runners` counts the transactions of each, so that it notices an older copy.
SCHEMA: Final = """
CREATE TABLE batch (service TEXT NOT NULL);
CREATE TABLE items (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    stem TEXT NOT NULL UNIQUE,
    family TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued',
    owner TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    reply_status INTEGER,
    reply BLOB,
    token TEXT,
    candidate TEXT,
    result TEXT,
    expires REAL,
    reason TEXT,
    path TEXT,
    size INTEGER,
    sha256 TEXT,
    began REAL,
    ended REAL,
    store TEXT,
    purchase TEXT,
    task TEXT
);
CREATE INDEX open_items ON items (state, owner);
CREATE TABLE runners (name TEXT PRIMARY KEY, writes INTEGER NOT NULL) WITHOUT ROWID;
"""
OWN_TASKS: Final = "CREATE UNIQUE INDEX IF NOT EXISTS own_tasks ON items (task)"
"""A task belongs to one item. One that items share is not in this column."""
STRAYS: Final = """
CREATE TABLE IF NOT EXISTS strays (
    number INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    state TEXT NOT NULL,
    token TEXT,
    reply_status INTEGER,
    reply BLOB,
    PRIMARY KEY (number, attempt, worker)
)
"""
"""A table that hardly any journal has. Earlier versions ignore it."""

LATER_COLUMNS: Final = ("store", "purchase", "task")
"""Columns that an older journal lacks until it is written. Earlier versions ignore them."""
