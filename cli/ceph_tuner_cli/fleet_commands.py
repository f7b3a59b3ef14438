"""`ceph-tuner fleet`, with all of its commands."""

from __future__ import annotations

import typer

from ceph_tuner_cli.tree import group_of

COMMANDS = {
    "status": ("fleet", "status", "How each cluster stands."),
    "history": ("fleet_history", "history", "The past of clusters, from Prometheus."),
    "diff": ("fleet_profiles", "diff", "In which knobs clusters differ."),
    "export": ("fleet_profiles", "export_profile", "A cluster's profile into a file for others."),
    "import": ("fleet_profiles", "import_profile", "That file to clusters, one after the other."),
    "recommend": ("fleet_recommend", "recommend", "Settings for each cluster on its twin; touches none."),
    "apply": ("fleet_rollout", "apply", "A profile to a canary, then in waves; stops at a breach."),
    "boost": ("fleet_boost", "app", "Recovery, backfill, scrub or snaptrim sooner, on many."),
    "book": ("fleet_book", "app", "The settings of each regime, on many; pages for others."),
    "rollback": ("fleet_rollout", "rollback", "Take back what apply kept."),
}
"""Name -> module, function, and what the list of commands says of it."""

app = typer.Typer(cls=group_of(COMMANDS), help="Many clusters at once, as fleet.yaml names them.", no_args_is_help=True)
app.callback()(lambda: None)
