"""The lab's ceph.conf, and what goes into the monitors' database instead.

A value in ceph.conf outranks the database, so whatever a tuner may want to change stays out of the file.
"""

from __future__ import annotations

from typing import Any, Dict, List

from ceph_tuner.lab.options import LabOptions

MGR_IDS = "xyz"

_CONF = """\
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{port}/0
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
# the device's throttle is known; the bench at boot would store what the page cache gives
osd mclock skip benchmark = true
# the kernel's share of asynchronous I/O (fs.aio-max-nr) is for all labs together; a throttled device needs little of it
bdev aio max queue depth = 256

[client]
# a cache in the client would be measured in the place of the cluster
rbd cache = false
admin socket = /lab/run/$cluster-$name.$pid.asok
"""


def ceph_conf(options: LabOptions, fsid: str, port: int) -> str:
    """The text of ceph.conf. Every OSD is a CRUSH host of its own, so that masks can be tried on one machine."""
    head = _CONF.format(fsid=fsid, port=port, size=options.size, min_size=max(1, options.size - 1))
    # from the file, because an OSD that starts moves itself to where this says
    hosts = [f"\n[osd.{osd}]\ncrush location = root=default host=h{osd}\n" for osd in range(options.osds)]
    return head + "".join(hosts)


def database(options: LabOptions, port: int) -> List[Dict[str, Any]]:
    """Monitor commands that fill the configuration database."""
    sections = {
        "osd": {
            # one queue per OSD: with more, each holds a part of the few operations that a small device serves
            "osd_op_num_shards": "1",
            "osd_op_num_threads_per_shard": "5",
            "osd_mclock_max_sequential_bandwidth_ssd": str(options.bandwidth),
            # mClock only orders what waits before BlueStore, so little may wait behind it
            "bluestore_throttle_bytes": str(256 * 1024),
            "bluestore_throttle_deferred_bytes": str(256 * 1024),
        },
        "mgr": {
            # neither may move data or write by itself while something is measured
            "mgr/balancer/active": "false",
            "mgr/devicehealth/enable_monitoring": "false",
            "mgr/dashboard/ssl": "false",
            "mgr/dashboard/server_addr": "127.0.0.1",
            "mgr/prometheus/server_addr": "127.0.0.1",
        },
    }
    for index, mgr in enumerate(MGR_IDS[: options.mgrs]):
        sections["mgr"][f"mgr/dashboard/{mgr}/server_port"] = str(port + 1 + 2 * index)
        sections["mgr"][f"mgr/prometheus/{mgr}/server_port"] = str(port + 2 + 2 * index)
    return [
        # forced, because no mgr has said yet which options its modules have
        {"prefix": "config set", "who": who, "name": option, "value": value, "force": True}
        for who, values in sections.items()
        for option, value in values.items()
    ]
