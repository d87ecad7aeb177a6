"""Power cuts: no purchase is repeated and nothing is lost, whatever a disk keeps.

A kill leaves everything that a process has written, because the operating system writes it to the
disk later. A power cut takes away what was not *synced*. No test can cut the power of its own
machine, so these tests do what the ALICE and CrashMonkey papers did for databases and file systems:

1. `strace` records what a program asks of the system: which files and folders it makes, writes,
   renames, removes and syncs, and in between, when a request reaches the service and what the user
   is told. The programs are the scenes: `batches.py`, `names.py` and `pictures.py`. Their
   recordings are in `recordings/`.
2. The recording is cut after each operation. `disk.py` knows what is certainly on the disk then,
   and what is *pending*: data and names that were not synced yet. From both it builds the states in
   which the next start may find the disk.
3. In each state the library itself continues: it opens the files, sends what is left to send, and
   downloads the rest, from a service that remembers what it has accepted before the cut.
4. The scene judges the result by the service's books, by what the user was told, and by what was
   certainly on the disk: no request or name is paid for twice, no id is lost, nothing that was paid
   for counts as not sent, and every file under its final name is whole.

**Two models of a disk.** Both keep what was synced: they assume that the disk does what it is
asked. Both write sectors of 512 bytes whole or not at all, and order nothing between sectors.

- *Strict* is what POSIX promises, and no more. The data of a file may be lost although its name and
  its length are kept, so that it ends in zeros; a name may be lost although the data was synced,
  until its folder is synced; all that is pending may be lost or kept in any combination.
- *Ordered* is like ext4 with `data=ordered`, which is the default of most systems. Names change in
  the order in which they were changed, so that a cut loses the last changes only. A file grows
  in order, and never has a length without the data. Only data that was overwritten in place may
  be lost in any combination. Syncing one file makes all earlier changes of names durable.

Combinations cannot all be tried. Each cut is tried with everything pending kept, everything lost,
names without data and data without names, lengths without data, each pending name and the data of
each file lost or kept alone, the last write torn, and two random combinations (strict); or with
every prefix of the pending names, each with all, none or some of the data, and torn (ordered).

A mapping with `mmap` changes a file without a system call. SQLite maps only the `-shm` file of a
WAL, which is never durable: no state has one. Any other writable mapping cannot be recorded.
"""
