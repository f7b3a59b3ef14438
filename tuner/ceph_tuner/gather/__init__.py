"""A cluster's state in one file: what the read commands ask for and what they were answered, without secrets.

`read_commands.gather` asks a live cluster, `state_file` writes and reads the file, `replay.open_state` makes of it a
cluster behind the ports that answers as the live one did.
"""
