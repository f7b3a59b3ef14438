"""A twin that answers all that the read commands ask, in Ceph's own shapes, with secrets wherever Ceph has them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Collection, Dict, List, Mapping, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import STORE_PREFIX, CommandConfig, CommandStore
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import PermissionRefused
from twins import small_twin

CEPHX = "AQDrb2Vn0B1cHhAAx8Jt7GfQq1o0v2p5lZqg6w=="
NEWER_CEPHX = "AgDrb2Vn0B1cHhAAx8Jt7GfQq1o0v2p5lZqg6wAAx8Jt7GfQq1o0v2p5lZqg6w=="
PEM_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
PEM = f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\n-----END PRIVATE KEY-----"
SECRETS = {
    "rgw_keystone_admin_password": "keystone-hunter2",
    "rgw_crypt_default_encryption_key": "c2VjcmV0LWVuY3J5cHRpb24ta2V5",
    "rgw_ldap_secret": "ldap-hunter2",
    "mgr/dashboard/GRAFANA_API_PASSWORD": "grafana-hunter2",
    "mgr/cephadm/registry_password": "registry-hunter2",
    "mgr/telegraf/password": "telegraf-hunter2",
    "mgr/dashboard/RGW_API_SECRET_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "key": CEPHX,
}
"""Options of the configuration database with what nobody else may read."""

ELSEWHERE = ("dashboard-hash-hunter2", "pulled-hunter2", "url-hunter2", "application-hunter2", "servicemap-hunter2")
ALL_SECRETS = (*SECRETS.values(), NEWER_CEPHX, PEM_BODY, *ELSEWHERE)


class WholeCluster:
    """`ports.Commander` over a twin's."""

    def __init__(self, commander: Commander) -> None:
        self._twin = commander
        self.asked: List[Tuple[str, str]] = []

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        self.asked.append(("", prefix))
        own = getattr(self, f"_{prefix.replace(' ', '_').replace('-', '_')}", None)
        if own is not None:
            return json.dumps(own(arguments))
        return self._twin.mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        self.asked.append((daemon, prefix))
        answer = json.loads(self._twin.tell(daemon, prefix, arguments))
        if prefix == "config show":
            answer.update(SECRETS, osd_class_dir=f"/lib/{CEPHX}", mon_host="10.0.0.1", keyring="/etc/ceph/keyring")
        if prefix == "config diff":
            answer["diff"].update({name: {"file": value, "final": value} for name, value in SECRETS.items()})
        return json.dumps(answer)

    def _asked(self, prefix: str, arguments: Mapping[str, str] = {}) -> Any:
        return json.loads(self._twin.mon(prefix, arguments))

    def _config_dump(self, _: Mapping[str, str]) -> Any:
        rows = self._asked("config dump")
        return [*rows, *({"section": "mgr", "mask": "", "name": name, "value": own} for name, own in SECRETS.items())]

    def _config_key_dump(self, arguments: Mapping[str, str]) -> Any:
        others = {"mgr/dashboard/accessdb_v2": ELSEWHERE[0], "mgr/dashboard/crt": PEM, "mgr/cephadm/key": CEPHX}
        own = self._asked("config-key dump", arguments)
        # Ceph gives what begins with what was asked for
        return {**own, **{key: value for key, value in others.items() if key.startswith(arguments["key"])}}

    def _status(self, _: Mapping[str, str]) -> Any:
        status = self._asked("status")
        services = {"rgw": {"daemons": {"1": {"metadata": {"frontend_config": f"ssl_private_key={ELSEWHERE[4]}"}}}}}
        return {**status, "servicemap": {"services": services}, "health": self._health({})}

    def _health(self, _: Mapping[str, str]) -> Any:
        message = (
            f"failed to pull image from https://user:{ELSEWHERE[2]}@registry: password={ELSEWHERE[1]} {NEWER_CEPHX}"
        )
        detail = [{"message": message}, {"message": PEM}]
        check = {"severity": "HEALTH_WARN", "summary": {"message": message, "count": 1}, "detail": detail}
        return {"status": "HEALTH_WARN", "checks": {"CEPHADM_FAILED": check}}

    def _osd_dump(self, _: Mapping[str, str]) -> Any:
        document = self._asked("osd dump")
        for pool in document["pools"]:
            pool["application_metadata"] = {"rgw": {"secret": ELSEWHERE[3]}}
        return {**document, "blocklist": {"10.9.9.9:0/1": "2026-01-01"}}

    def _osd_df(self, _: Mapping[str, str]) -> Any:
        rows = [node for node in self._asked("osd tree")["nodes"] if node["type"] == "osd"]
        use = {"kb_used_data": 1000, "kb": 10_000, "pgs": 12, "reweight": 1.0, "crush_weight": 1.0}
        return {"nodes": [{**row, **use} for row in rows], "stray": [], "summary": {}}

    def _osd_metadata(self, _: Mapping[str, str]) -> Any:
        rows = [node for node in self._asked("osd tree")["nodes"] if node["type"] == "osd"]
        own = {"rotational": "0", "hostname": "h0", "device_ids": "sda=SERIAL-hunter2", "admin_key": CEPHX}
        return [{"id": row["id"], "ceph_version": "ceph version 20.2.4 (x) tentacle", **own} for row in rows]

    def _df(self, _: Mapping[str, str]) -> Any:
        pools = self._asked("osd dump")["pools"]
        stats = {"stored_raw": 3_000_000, "stored": 1_000_000, "objects": 10, "rd": 5, "wr": 7}
        return {"stats": {}, "pools": [{"id": row["pool"], "name": row["pool_name"], "stats": stats} for row in pools]}

    def _log_last(self, _: Mapping[str, str]) -> Any:
        bench = (
            "OSD bench result of 812.1 IOPS is not within the threshold limit range of 1000 IOPS and 80000 IOPS for "
            "osd.0. IOPS capacity is unchanged"
        )
        return [{"message": bench, "stamp": "x"}, {"message": f"login with {ELSEWHERE[1]} failed", "stamp": "x"}]

    def _balancer_status(self, _: Mapping[str, str]) -> Any:
        return {"active": True, "mode": "upmap", "last_optimize_started": "x", "plans": []}

    def _osd_crush_rule_dump(self, _: Mapping[str, str]) -> Any:
        steps = [{"op": "take", "item_name": "default"}, {"op": "chooseleaf_firstn", "type": "host"}]
        return [{"rule_id": 0, "rule_name": "replicated_rule", "steps": steps}]

    def _osd_pool_stats(self, _: Mapping[str, str]) -> Any:
        rates = {"read_op_per_sec": 10, "write_op_per_sec": 30, "read_bytes_sec": 40_960, "write_bytes_sec": 122_880}
        return [
            {"pool_name": row["pool_name"], "pool_id": row["pool"], "recovery": {}, "client_io_rate": rates}
            for row in self._asked("osd dump")["pools"]
        ]

    def _config_get(self, arguments: Mapping[str, str]) -> Any:
        numbers = {"mon_target_pg_per_osd": 100, "mon_max_pg_per_osd": 250, "mgr/balancer/upmap_max_deviation": 5}
        if arguments["key"] in numbers:
            return numbers[arguments["key"]]
        return self._asked("config get", arguments)

    def _tuner_auto_explain(self, arguments: Mapping[str, str]) -> Any:
        return {"words": ["The automatic mode is off."], "problem": ""}


def whole_cluster(**changes: Any) -> Cluster:
    """As `small_twin`, with all answers."""
    twin = small_twin(**changes)
    twin.clock.sleep(30)
    return over(twin, WholeCluster(twin.commander))


def over(cluster: Cluster, commander: Commander) -> Cluster:
    """The same cluster behind another commander."""
    return replace(cluster, commander=commander, config=CommandConfig(commander), store=CommandStore(commander))


SERVICES: Dict[str, str] = {
    "osd df": "mgr",
    "pg ls": "mgr",
    "osd pool stats": "mgr",
    "balancer status": "mgr",
    "tuner auto explain": "mgr",
}
"""Commands that the mgr answers, and so needs a capability for; the monitors answer all others."""


class Limited:
    """A commander whose key has some capabilities: `mon`, `mgr`, `config-key`, `osd`. All else is refused (EACCES)."""

    def __init__(self, commander: Commander, capabilities: Collection[str]) -> None:
        self._commander, self._capabilities = commander, capabilities
        self.refused: List[str] = []

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        service = SERVICES.get(prefix, "mon")
        if prefix.startswith("config-key"):
            # `mon 'allow r'` does not cover it (MonCap)
            service = "config-key" if str(arguments.get("key", "")).startswith(STORE_PREFIX) else "nobody's"
        if payload or prefix in ("config set", "config rm", "config-key set", "config-key rm"):
            service = "nobody's"
        self._check(service, f"ceph {prefix}")
        return self._commander.mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        self._check("osd", f"ceph tell {daemon} {prefix}")
        return self._commander.tell(daemon, prefix, arguments)

    def _check(self, service: str, command: str) -> None:
        if service not in self._capabilities:
            self.refused.append(command)
            raise PermissionRefused(command, "access denied", "a keyring whose capabilities allow the command")
