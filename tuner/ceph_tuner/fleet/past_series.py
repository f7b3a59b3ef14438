"""Which series of a Prometheus server tell of which metric: the plugin's own, else those of Ceph's exporters.

An expression has gaps: `$sel` for the labels that choose a cluster, `$over` for the time that a value is of, `$rate`
for the time that a rate is of, and `$enough` for the samples that it then needs. It gives one series, in the metric's
own unit; whoever is scraped twice counts once, and after a failover another mgr answers.

Ceph has two exporters. The `prometheus` module of the mgr has pools, PGs and states; the OSDs' own counters only with
`exclude_perf_counters=false`, which is no longer the default since Reef. `ceph-exporter`, a daemon on each host that
cephadm and Rook deploy, has those counters under the same names. Pools count what the OSDs told the mgr, up to 5 s
before, and each step of a write of several.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

from ceph_tuner.core.measure.exported_metrics import EXPORTED, PREFIX, PRESENCE, scale_of
from ceph_tuner.core.measure.metrics import METRICS

PLUGIN, COUNTERS, POOLS = "plugin", "counters", "pools"

SOURCES = {
    PLUGIN: "ceph-tuner's plugin",
    COUNTERS: "the OSDs' counters, from ceph-exporter or the mgr with exclude_perf_counters=false",
    POOLS: "the mgr's prometheus module",
}
"""Where values come from, the first one before the others."""

PRESENCES = {
    PLUGIN: f"{PRESENCE}{{$sel}}",
    COUNTERS: 'ceph_osd_op_w{$sel ceph_daemon=~"osd[.][0-9]+",}',
    POOLS: "ceph_health_status{$sel}",
}
"""Series that a source has as long as it is scraped: one a cluster, or one for each OSD."""

REMAINING = "count(max by (ceph_daemon) (count_over_time(ceph_osd_op_w{$sel}[$rate]) >= $enough))"
"""How many OSDs' counters make rates. One scrape has all counters of an OSD."""
UP = "sum(max by (ceph_daemon) (ceph_osd_up{$sel}))"
"""How many OSDs were up, as the mgr's module tells."""

TROUBLE = frozenset({"ops.slow", "pgs.inactive", "pgs.laggy", "osds.down"})
"""Of these a value is the highest of its time, lest a short trouble is averaged away."""


class Expression(NamedTuple):
    """Where a metric is, and how it is asked for."""

    source: str
    text: str


def expressions(metric: str) -> Tuple[Expression, ...]:
    """All ways to know a metric's past, the best first."""
    place = EXPORTED[metric]
    # device classes and pools have series of their own beside the cluster's
    labels = "".join(f'{name}="{value}",' for name, value in (*place.labels, ("device_class", ""), ("pool", "")))
    over_time = _over_time(metric, f"{PREFIX}{place.family}{{$sel {labels}}}")
    scale = 1 / scale_of(metric)
    own = Expression(PLUGIN, f"max({over_time})" + ("" if scale == 1 else f" * {scale:g}"))
    return (own, *_OF_CEPH.get(metric, ()))


def _over_time(metric: str, selector: str) -> str:
    """The values of a stretch of time as one."""
    if metric in TROUBLE:
        return f"max_over_time({selector}[$over])"
    if METRICS[metric].unit == "s":
        # the mean of an hour and of never is nothing that anybody waited for
        return f"quantile_over_time(0.5, {selector}[$over])"
    return f"avg_over_time({selector}[$over])"


def _rates(by: str, *counters: str) -> str:
    """Rates added up. One that the window holds a part of only, at a gap's edge or after a failover, is too low."""
    return " + ".join(
        f"sum(max by ({by}) (rate(ceph_{counter}{{$sel}}[$rate]) "
        f"and count_over_time(ceph_{counter}{{$sel}}[$rate]) >= $enough))"
        for counter in counters
    )


def _osds(*counters: str) -> Expression:
    return Expression(COUNTERS, _rates("ceph_daemon", *(f"osd_{counter}" for counter in counters)))


def _pools(*counters: str) -> Expression:
    return Expression(POOLS, _rates("pool_id", *(f"pool_{counter}" for counter in counters)))


def _mean_ms(*kinds: str) -> Expression:
    seconds = _osds(*(f"op_{kind}_latency_sum" for kind in kinds)).text
    operations = _osds(*(f"op_{kind}_latency_count" for kind in kinds)).text
    return Expression(COUNTERS, f"1000 * ({seconds}) / ({operations})")


def _state(metric: str, name: str, by: str = "") -> Expression:
    over = _over_time(metric, f"ceph_{name}{{$sel}}")
    return Expression(POOLS, f"sum(max by ({by}) ({over}))" if by else f"max({over})")


def _mended(what: str, copies_less: int) -> Expression:
    """Falls of what is left, as far as recovery was at work: peering and deletion lower the count as well.

    An object that is recovered mends at most its copies, less those that have to be there. Their mean is that of the
    PGs, as the module exports no pool's size.
    """
    fall = f"max(clamp_min(-deriv(ceph_num_objects_{what}{{$sel}}[$rate]), 0))"
    copies = "sum(max by (ceph_daemon) (ceph_osd_numpg{$sel})) / sum(max by (pool_id) (ceph_pg_total{$sel}))"
    recovered = "sum(max by (pool_id) (avg_over_time(ceph_pool_recovering_objects_per_sec{$sel}[$rate])))"
    at_most = f"({recovered}) * clamp_min({copies} - {copies_less}, 1)"
    # the second one gets a label, lest `or` drops it; without it the fall counts as it is
    return Expression(POOLS, f'min({fall} or label_replace({at_most}, "bound", "recovery", "", ""))')


_OF_CEPH: Dict[str, Tuple[Expression, ...]] = {
    "client.iops": (_osds("op_r", "op_w", "op_rw"), _pools("rd", "wr")),
    "client.read_iops": (_osds("op_r"), _pools("rd")),
    "client.write_iops": (_osds("op_w", "op_rw"), _pools("wr")),
    "client.bytes_s": (
        _osds("op_r_out_bytes", "op_rw_out_bytes", "op_w_in_bytes", "op_rw_in_bytes"),
        _pools("rd_bytes", "wr_bytes"),
    ),
    "client.read_bytes_s": (_osds("op_r_out_bytes", "op_rw_out_bytes"), _pools("rd_bytes")),
    "client.write_bytes_s": (_osds("op_w_in_bytes", "op_rw_in_bytes"), _pools("wr_bytes")),
    "client.mean_ms": (_mean_ms("r", "w", "rw"),),
    "client.read_mean_ms": (_mean_ms("r"),),
    "client.write_mean_ms": (_mean_ms("w", "rw"),),
    "recovery.objects_s": (
        _osds("recovery_ops"),
        _state("recovery.objects_s", "pool_recovering_objects_per_sec", "pool_id"),
    ),
    "recovery.bytes_s": (
        _osds("recovery_bytes"),
        _state("recovery.bytes_s", "pool_recovering_bytes_per_sec", "pool_id"),
    ),
    "recovery.copies_s": (_mended("degraded", 1),),
    "recovery.objects_left": (_state("recovery.objects_left", "num_objects_degraded"),),
    "backfill.objects_left": (_state("backfill.objects_left", "num_objects_misplaced"),),
    "backfill.objects_s": (_mended("misplaced", 0),),
    # counted since Tentacle
    "scrub.bytes_s": (_osds("scrub_replicated_read_bytes", "scrub_ec_read_bytes"),),
    "ops.slow": (_state("ops.slow", "healthcheck_slow_ops"),),
    "pgs.laggy": (_state("pgs.laggy", "pg_laggy", "pool_id"),),
    "pgs.inactive": (
        Expression(
            POOLS,
            "sum(max by (pool_id) (max_over_time(ceph_pg_total{$sel}[$over])) - min by (pool_id) "
            "(min_over_time(ceph_pg_active{$sel}[$over])))",
        ),
    ),
    "osds.down": (
        Expression(
            POOLS,
            "sum(max by (ceph_daemon) (max_over_time(ceph_osd_in{$sel}[$over])) * "
            "(1 - min by (ceph_daemon) (min_over_time(ceph_osd_up{$sel}[$over]))))",
        ),
    ),
}
"""What Ceph's own exporters know. Neither has percentiles, what waits in the queues, snaptrim, or late scrubs."""
