"""`ceph-tuner controller`: carries custom resources of Kubernetes to the cluster, until it is told to end."""

from __future__ import annotations

import os
import socket
from contextlib import closing

import typer

from ceph_tuner.controller.controller import Controller, Settings
from ceph_tuner.core.bounded_http import BoundedHttpServer
from ceph_tuner.core.errors import InputError
from ceph_tuner.rook.kubeconfig import api_access
from ceph_tuner_cli.cluster_option import ClusterOption
from ceph_tuner_cli.interruption import stopped_by_signals
from ceph_tuner_cli.prefix_option import open_cluster
from ceph_tuner_cli.render import say

PORT = 9286


def controller(
    cluster: str = ClusterOption,
    namespace: str = typer.Option(..., "--namespace", "-n", help="Namespace of the resources and of the lease."),
    identity: str = typer.Option("", "--identity", help="Name among the controllers; by default this host's."),
    lease: str = typer.Option("ceph-tuner-controller", "--lease", help="Name of the lease that one of them holds."),
    address: str = typer.Option("", "--address", help="Address of probes and metrics; by default every one."),
    port: int = typer.Option(PORT, "--port", min=0, max=65535, help="Their port; 0 for none."),
    resync: float = typer.Option(30.0, "--resync", min=1, max=3600, help="Seconds between two looks at everything."),
) -> None:
    """Carry CephSLO, CephTuningMode and CephBoost resources of a namespace to the cluster, until SIGTERM.

    Of several controllers one leads. Kubernetes is reached as its service account, or by KUBECONFIG.
    """
    access = api_access(os.environ)
    settings = Settings(namespace, identity or f"{socket.gethostname()}-{os.getpid()}", lease, resync)
    stop = stopped_by_signals()
    with closing(open_cluster(cluster)) as opened:
        running = Controller(opened, access, settings, lambda line: say([line]), stop=stop)
        server = listening(address, port, running) if port else None
        try:
            running.run()
        finally:
            if server is not None:
                server.end()


def listening(address: str, port: int, running: Controller) -> BoundedHttpServer:
    """Give the server of its probes and metrics, at work. Raises InputError."""
    try:
        server = BoundedHttpServer(address, port, running.vitals.page)
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError("--port", f"{address or 'every address'}, port {port}: {error}", "a free one") from None
    server.serve("probes")
    return server
