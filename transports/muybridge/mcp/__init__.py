"""The server for agents: a program that acts for a person makes pictures, videos and text here.

It speaks the Model Context Protocol through the official SDK, and does what the command does: its
tools present the functions in `muybridge.verbs`. What it adds is that nothing is paid twice, and
nothing without leave:

- **Content and number are the key.** Each request is bought under a name in the store, which is
  made of its fields and its number (`again`). Whoever repeats a call, replays it, or restarts the
  server gets the same task.
- **Leave before the first byte.** Either a person consents to this very request, when the host asks
  them, or a budget was given when the server was started. The budget is the store's, so a restart
  does not renew it.
- **Nothing waits for long.** A create returns a token, and `wait` returns within 45 seconds.
- **Texts of the service are data.** They are truncated and marked, and the key is in no answer.
"""
