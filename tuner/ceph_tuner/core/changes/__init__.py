"""How settings come onto a cluster and are taken back: targets, checks, plan, journal, lock, applier."""
