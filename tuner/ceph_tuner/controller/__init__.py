"""A controller inside Kubernetes: objectives, boosts and the automatic mode as custom resources of one namespace.

It carries them to the cluster by the module's own commands, and says in their status what became of them.
"""
