"""A cluster that Rook manages: its configuration is in a CephCluster of Kubernetes, as well as at its monitors."""
