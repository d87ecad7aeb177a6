"""What the command does besides parsing and printing: functions of a client and plain values.

A verb returns a frozen value. It prints nothing, reads no command line and exits with no code, so
that every face of the library presents the same facts. A verb that is one call of the client, such
as `Client.check` or `Client.delete_asset`, has no second function here.
"""
