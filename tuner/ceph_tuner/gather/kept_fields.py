"""What of each command's answer is kept in a file: by lists of what is allowed, never of what is forbidden.

A command that is not in `COMMANDS` or `DAEMON_COMMANDS` is not gathered at all. Of an answer the named fields stay and
no other, of options only the values of those that the tuner reads. As a second net, whatever looks like a secret is
taken out of every text that stays.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, Mapping

from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.ceph.commands import STORE_PREFIX
from ceph_tuner.core.knobs.catalogue import KNOBS

LEFT_OUT = "(left out)"
"""Stands for a value that is not kept."""

_OPTION_PREFIXES = ("osd_", "bluestore_", "bluefs_", "mgr/balancer/", "mgr/tuner/")
_OPTIONS = frozenset(
    {
        "name", "mgr_stats_period", "mon_max_pg_per_osd", "mon_osd_down_out_interval", "mon_target_pg_per_osd",
        "ms_client_mode", "ms_cluster_mode", "ms_service_mode", *KNOBS,
    }
)  # fmt: skip

_BENCH = "OSD bench result"
"""Lines of the cluster's log that are kept have these words."""

Keep = Callable[[Any], Any]


def _all(value: Any) -> Any:
    return value


def _only(**shapes: Keep) -> Keep:
    """A mapping's named keys (`_` stands for `-` where a key has that)."""

    def keep(value: Any) -> Any:
        if not isinstance(value, dict):
            return {}
        return {key: shapes[key](own) for key, own in value.items() if key in shapes}

    return keep


def _names(text: str) -> Keep:
    return _only(**dict.fromkeys(text.split(), _all))


def _each(shape: Keep) -> Keep:
    return lambda value: [shape(own) for own in value] if isinstance(value, list) else []


def _values(shape: Keep) -> Keep:
    return lambda value: {key: shape(own) for key, own in value.items()} if isinstance(value, dict) else {}


def is_kept(option: str) -> bool:
    """Whether the values of an option are kept."""
    return option.startswith(_OPTION_PREFIXES) or option in _OPTIONS


def _entries(value: Any) -> List[Dict[str, Any]]:
    """Rows of the configuration database: of what the tuner does not read, that it is there."""
    rows = _each(_names("section name value mask level"))(value)
    return [row if is_kept(str(row.get("name"))) else {**row, "value": LEFT_OUT} for row in rows]


def _kept_options(value: Any) -> Dict[str, Any]:
    return {name: own for name, own in value.items() if is_kept(name)} if isinstance(value, dict) else {}


def _own_keys(value: Any) -> Dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    return {key: own for key, own in value.items() if key.startswith(STORE_PREFIX)}


def _bench_lines(value: Any) -> List[Dict[str, Any]]:
    rows = _each(_names("stamp message"))(value)
    return [row for row in rows if _BENCH in str(row.get("message", ""))]


_CHECKS = _values(_only(severity=_all, summary=_all, detail=_all, muted=_all))
_HEALTH = _only(status=_all, checks=_CHECKS)
_POOL = _names(
    "pool pool_id pool_name type size min_size crush_rule pg_num pg_num_target pg_autoscale_mode flags flags_names "
    "erasure_code_profile options quota_max_bytes quota_max_objects create_time"
)
_CODE = _names("k m l c d plugin technique stripe_unit crush-failure-domain crush-device-class crush-root")
_NODE = _names(
    "id name type type_id children device_class crush_weight depth exists status reweight primary_affinity kb kb_used "
    "kb_used_data kb_used_omap kb_used_meta kb_avail utilization var pgs"
)
_PG = _names(
    "pgid state stat_sum acting up acting_primary up_primary last_scrub_stamp last_deep_scrub_stamp "
    "last_scrub_duration scrub_duration objects_scrubbed objects_trimmed snaptrimq_len snaptrim_duration "
    "scrub_schedule avail_no_missing last_active last_clean last_unstale last_undegraded last_fullsized"
)
_PGS = _each(_PG)


def _pg_list(value: Any) -> Any:
    return _PGS(value) if isinstance(value, list) else _only(pg_ready=_all, pg_stats=_PGS)(value)


COMMANDS: Mapping[str, Keep] = {
    "balancer status": _names("active mode"),
    "config dump": _entries,
    "config get": _all,
    "config log": _each(_only(timestamp=_all, changes=_each(_names("name")))),
    "config-key dump": _own_keys,
    "df": _only(stats=_all, stats_by_class=_all, pools=_each(_names("id name stats"))),
    "health": _HEALTH,
    "log last": _bench_lines,
    "osd crush dump": _names("devices types buckets rules"),
    "osd crush rule dump": _all,
    "osd df": _only(nodes=_each(_NODE), stray=_each(_NODE), summary=_all),
    "osd dump": _only(
        epoch=_all,
        fsid=_all,
        flags=_all,
        osds=_each(_names("osd up in weight primary_affinity up_from up_thru down_at state")),
        pools=_each(_POOL),
        erasure_code_profiles=_values(_CODE),
        require_osd_release=_all,
    ),
    "osd erasure-code-profile get": _CODE,
    "osd metadata": _each(
        _names(
            "id hostname rotational journal_rotational default_device_class ceph_version ceph_version_short "
            "ceph_release osd_objectstore bluestore_bdev_type bluestore_bdev_rotational bluestore_bdev_size "
            "bluefs_dedicated_db bluefs_db_type bluefs_db_rotational bluefs_single_shared_device kernel_version "
            "cpu mem_total_kb pod_name pod_namespace"
        )
    ),
    "osd pool stats": _each(_names("pool_name pool_id recovery recovery_rate client_io_rate")),
    "osd tree": _only(nodes=_each(_NODE), stray=_each(_NODE)),
    "pg ls": _pg_list,
    "status": _only(fsid=_all, health=_HEALTH, pgmap=_all, osdmap=_all),
    "tuner auto explain": _all,
    "versions": _all,
}
"""Commands of the monitors and the mgr."""

DAEMON_COMMANDS: Mapping[str, Keep] = {
    "config diff": _only(diff=_kept_options),
    "config show": _kept_options,
    "dump_op_pq_state": _all,
    "dump_recovery_reservations": _all,
    "perf dump": _all,
    "perf histogram dump": _names("osd"),
}
"""Commands of an OSD (`ceph tell osd.N …`)."""

_NAMED = r"(?i)((?:password|passwd|passphrase|secret(?:[_-]key)?|token|access[_-]key|api[_-]key)"
"""What a secret is called: the beginning of an expression whose first group stays."""

_WORDS = ("passw", "passphrase", "secret", "token", "access_key", "access-key", "api_key", "api-key")
"""One of them is in whatever `_NAMED` finds."""

_SECRETS = (
    # a key of cephx: type, time and length in base64
    (re.compile(r"A[gQ][A-Za-z0-9+/]{34,80}={0,2}"), LEFT_OUT),
    # what begins another one, or none, ends the search for its end: texts of nothing but beginnings have to be quick
    (re.compile(r"-----BEGIN [A-Z ]{0,40}-----(?:[^\"-]|-(?!----)){1,20000}-----END [A-Z ]{0,40}-----"), LEFT_OUT),
    # in words of a message: `password=…`, `secret: …`
    (re.compile(_NAMED + r"\s{0,3}[=:]\s{0,3})[^\s\"'\\,;]{1,500}"), rf"\1{LEFT_OUT}"),
    # of an answer's own fields, and of JSON inside a text: `"password": "…"`
    (re.compile(_NAMED + r"(\\?\")\s{0,3}:\s{0,3}\2)[^\"\\]{1,500}"), rf"\1{LEFT_OUT}"),
    # in quotes that are no JSON's own
    (re.compile(_NAMED + r"\s{0,3}[=:]\s{0,3}('|\\\"))[^\"'\\]{1,500}"), rf"\1{LEFT_OUT}"),
    # of a command's line: `--password …`
    (re.compile("(?i)(--" + _NAMED[5:] + r"\s{1,3})[^\s\"'\\,;-][^\s\"'\\,;]{0,500}"), rf"\1{LEFT_OUT}"),
    # user and password of an address
    (re.compile(r"(?<=://)[^\s/@\"\\]{1,200}:[^\s/@\"\\]{1,200}(?=@)"), LEFT_OUT),
)


def allowed(command: str, argument: str = "") -> bool:
    """Whether a command of the monitors is gathered; of `config get` and `config-key dump` by what it asks for."""
    if command == "config get":
        return is_kept(argument)
    if command == "config-key dump":
        return argument.startswith(STORE_PREFIX)
    return command in COMMANDS


def kept(text: str, keep: Keep) -> str:
    """What of an answer goes into the file. An answer that is no JSON of the known shape is left out."""
    try:
        content = keep(read_json(text, "an answer", ANSWER))
    except MISREAD:
        return json.dumps(LEFT_OUT)
    return without_secrets(json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def without_secrets(text: str) -> str:
    """Take out whatever looks like a secret; JSON stays JSON."""
    plain = text.lower()
    # answers have megabytes, and nearly all of them no such word
    has_word = any(word in plain for word in _WORDS)
    for pattern, instead in _SECRETS:
        if has_word or not pattern.pattern.startswith("(?i)"):
            text = pattern.sub(instead, text)
    return text
