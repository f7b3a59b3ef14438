"""The lab's ceph.conf, and what goes into the monitors' database instead.

A value in ceph.conf outranks the database, so whatever a tuner may want to change stays out of the file.
"""

from __future__ import annotations

from typing import Any, Dict, List

from ceph_lab.options import LabOptions

MON_IDS, MGR_IDS = "abc", "xyz"

_CONF = """\
[global]
fsid = {fsid}
mon host = {mons}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
keyring = /lab/keyring
run dir = /lab/run
admin socket = /lab/run/$name.asok
pid file = /lab/run/$name.pid
log file = /lab/log/$name.log
mon cluster log file = /lab/log/cluster.log
mon data = /lab/mon/$id
mgr data = /lab/mgr/$id
osd data = /lab/osd/$id
osd pool default size = {size}
osd pool default min size = {min_size}
osd pool default pg autoscale mode = off
osd pool default pg num = 32
mon max pg per osd = 1000

[mon]
mon allow pool delete = true
mon warn on pool no redundancy = false
# the image files are sparse: a disk that is nearly full is the host's affair until it is full
mon data avail warn = 2
mon data avail crit = 1
mgr initial modules = iostat

[mgr]
mgr module path = /lab/mgr-modules

[osd]
osd memory target = 939524096
# what the device does is known; the bench at boot would store what a busy machine gives
osd mclock skip benchmark = true
# images are small, and clients read the same places in each window: from the second one on all would come from memory
bluestore default buffered read = false
# the kernel's share of asynchronous I/O (fs.aio-max-nr) is for all labs together; a throttled device needs little of it
bdev aio max queue depth = 256

[client]
# a cache in the client would be measured in the place of the cluster
rbd cache = false
admin socket = /lab/run/$cluster-$name.$pid.asok
"""


def ceph_conf(options: LabOptions, fsid: str, port: int) -> str:
    """The text of ceph.conf. Every OSD is a CRUSH host of its own, so that masks can be tried on one machine."""
    mons = ",".join(monitor_addresses(options, port).values())
    head = _CONF.format(fsid=fsid, mons=mons, size=options.size, min_size=max(1, options.size - 1))
    # from the file, because an OSD that starts moves itself to where this says
    hosts = [f"\n[osd.{osd}]\ncrush location = root=default host=h{osd}\n" for osd in range(options.osds)]
    return head + "".join(hosts)


def monitor_addresses(options: LabOptions, port: int) -> Dict[str, str]:
    """Monitor -> its address. The ports between are the mgrs' (`database`)."""
    ports = (port, port + 7, port + 8)
    return {mon: f"v2:127.0.0.1:{each}/0" for mon, each in zip(MON_IDS[: options.mons], ports)}


def database(options: LabOptions, port: int) -> List[Dict[str, Any]]:
    """Monitor commands that fill the configuration database."""
    sections: Dict[str, Dict[str, str]] = {
        "osd": _osd_values(options),
        "mgr": {
            # neither may move data or write by itself while something is measured
            "mgr/balancer/active": "false",
            "mgr/devicehealth/enable_monitoring": "false",
            "mgr/dashboard/ssl": "false",
            "mgr/dashboard/server_addr": "127.0.0.1",
            "mgr/prometheus/server_addr": "127.0.0.1",
        },
    }
    for_all = sections["osd"]
    for osd in range(options.osds):
        own = {_bandwidth_option(options, osd): str(options.bandwidth_of(osd)), **_throttles(options, osd)}
        # one value for all where all are alike: a value at `osd.N` outranks what is tried at `osd`
        different = {name: value for name, value in own.items() if for_all.setdefault(name, value) != value}
        if different:
            sections[f"osd.{osd}"] = different
    for index, mgr in enumerate(MGR_IDS[: options.mgrs]):
        sections["mgr"][f"mgr/dashboard/{mgr}/server_port"] = str(port + 1 + 2 * index)
        sections["mgr"][f"mgr/prometheus/{mgr}/server_port"] = str(port + 2 + 2 * index)
    return [
        # forced, because no mgr has said yet which options its modules have
        {"prefix": "config set", "who": who, "name": option, "value": value, "force": True}
        for who, values in sections.items()
        for option, value in values.items()
    ]


def _osd_values(options: LabOptions) -> Dict[str, str]:
    counts = {"osd_op_num_shards": options.shards, "osd_op_num_threads_per_shard": options.threads}
    values = {name: str(value) for name, value in counts.items() if value}
    # chance in the order of scrubs and in the moment when one begins: rates would not repeat
    orderly = {"osd_scrub_backoff_ratio": "0", "osd_scrub_interval_randomize_ratio": "0"}
    if options.release == "reef":
        return {**values, **orderly, "osd_deep_scrub_randomize_ratio": "0"}
    return {**values, **orderly, "osd_deep_scrub_interval_cv": "0"}


def _bandwidth_option(options: LabOptions, osd: int) -> str:
    return f"osd_mclock_max_sequential_bandwidth_{options.media_of(osd)}"


def throttle_bytes(options: LabOptions, osd: int) -> int:
    """`bluestore_throttle_bytes`.

    mClock only orders what waits before BlueStore, so little may wait behind it. On hard disks, where each request
    counts as 670 000 bytes (bluestore_throttle_cost_per_io_hdd), that would be one at a time: Ceph's default stays.
    """
    return (64 << 20) if options.media_of(osd) == "hdd" else (256 << 10)


def _throttles(options: LabOptions, osd: int) -> Dict[str, str]:
    held = throttle_bytes(options, osd)
    # half of it sends a batch of deferred writes on its way: with less than Ceph's default, before the batch is full
    deferred = 2 * held if options.media_of(osd) == "hdd" else held
    return {"bluestore_throttle_bytes": str(held), "bluestore_throttle_deferred_bytes": str(deferred)}
