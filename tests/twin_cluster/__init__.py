"""A cluster behind the ports that is a simulation: it answers Ceph's own commands, with a clock of its own."""
