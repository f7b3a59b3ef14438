"""A live cluster as its twin is told of it, out of what Ceph's own commands say. Changes nothing there.

What Ceph does not know is guessed, and each guess is a note: what a drive can do, what clients would do if they were
not held up, what one of them does at a time. What is there lies beside: `osds`, `pools`, `clients`,
`background_work`, `present_windows`.
"""

from __future__ import annotations

from typing import AbstractSet, List, Mapping, Optional, Tuple

from ceph_tuner.cluster.balancer import upmap_max_deviation
from ceph_tuner.cluster.config_log import last_change
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.sampler import OSDS_MAX, ClusterSampler, observe
from ceph_tuner.core.changes.journal import Journal
from ceph_tuner.core.errors import CommandFailed, InputError, PermissionRefused
from ceph_tuner.core.knobs.releases import parse_version
from ceph_tuner.core.measure.history import RECENT_S, History, merged
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.core.moments import duration
from ceph_tuner.describe.background_work import WorkSeen
from ceph_tuner.describe.clients import client_load, clients, part_of, shares_of, told
from ceph_tuner.describe.osds import OsdsSeen, failure_domains
from ceph_tuner.describe.pools import PoolSeen, pools_seen
from ceph_tuner.describe.present_windows import present_windows, settled_windows
from ceph_tuner.twin.described_cluster import SIMULATE_ALL, SIMULATED, DescribedCluster
from ceph_tuner.twin.model import UPMAP_MAX_DEVIATION, ClusterModel, Pool

SAMPLE_S = 10.0
"""How long a cluster is sampled of which no window is kept."""
ALMOST_ALL = 0.95
"""Share of the clients' load that is on pools told of, below which what clients saw is not of these pools."""


def describe(
    cluster: Cluster,
    target: str = "osd",
    also: AbstractSet[str] = frozenset(),
    sample_s: float = SAMPLE_S,
    load: Optional[Mapping[str, float]] = None,
) -> DescribedCluster:
    """Describe the target's OSDs of one device class, the pools on them, and the work there.

    `also` names kinds of work (as objectives do) that are assumed where none is under way. Where no window is kept
    the cluster is sampled for `sample_s` seconds; 0: never. `load`: what clients do, in the place of what they do now.
    Raises InputError with what to do, TunerError.
    """
    return _Description(cluster, target, sample_s, load).file(also)


class _Description:
    def __init__(self, cluster: Cluster, target: str, sample_s: float, load: Optional[Mapping[str, float]]) -> None:
        self._cluster, self._given, self._may_sample = cluster, load, sample_s > 0
        self._notes: List[str] = []
        self._osds = OsdsSeen(cluster, target, self._notes)
        self._tell_trials()
        self._window = self._newest(sample_s if load is None else 0.0)
        # after a sampling, when the monitors have heard what clients did meanwhile
        self._seen = pools_seen(cluster.commander)
        self._notes += self._seen.notes
        if not self._seen.has_rates and load is None and not self._has_client_rate:
            self._take_mean_rates()
        self._places = self._osds.with_data(self._seen.osds_in)
        self._osd = self._osds.model()

    def file(self, also: AbstractSet[str]) -> DescribedCluster:
        """The description, with work of the kinds in `also`. Raises InputError where no pool is on these OSDs."""
        cluster, everywhere = self._cluster, self._seen.pools
        of_class = [pool for pool in everywhere if pool.rule.device_class in ("", self._osds.device_class)]
        pools = [pool for pool in of_class if pool.tellable]
        if not pools:
            left_out = f" but what is left out: {', '.join(pool.name for pool in of_class)}" if of_class else ""
            raise InputError(f"cluster {cluster.name}", f"no pool on these OSDs{left_out}", "one to describe work in")
        shares = shares_of(everywhere)
        share = sum(shares[pool.name] for pool in pools) if len(pools) < len(everywhere) else 1.0
        load = part_of(self._load(), share)
        if share < 1:
            self._notes.append(
                f"{share:.1%} of what clients do is taken to be on these pools, by all pools' operations"
            )
        on_all = [pool.name for pool in pools if not pool.rule.device_class]
        if on_all and self._osds.beside_others:
            self._notes.append(
                f"what lies on all device classes is taken to be on these OSDs alone: {', '.join(on_all)}"
            )
        shares = {pool.name: shares[pool.name] / share for pool in pools} if share else shares_of(pools)
        pools = told(pools, shares)
        bandwidth = len(self._places) * self._osd.bandwidth_bytes_s
        work = WorkSeen(self._seen, self._window, self._places, bandwidth, also, self._notes)
        try:
            model = ClusterModel(
                osds=len(self._places),
                osd=self._osd,
                pools=tuple(Pool(pool.name, pool.pgs, pool.size, pool.k, self._acting(pool)) for pool in pools),
                clients=tuple(clients(pools, shares, load, self._notes, everywhere)),
                recovery=tuple(work.recovery(pools)),
                scrub=tuple(work.scrub(pools)),
                snaptrim=tuple(work.snaptrim(pools)),
                release=cluster.release,
                version=parse_version(cluster.version),
                hosts=failure_domains(self._places, pools),
                scrub_backoff_ratio=self._osds.scrub_backoff_ratio,
                upmap_max_deviation=self._max_deviation(),
                simulated_osds=SIMULATED if len(self._places) > SIMULATE_ALL else 0,
            )
        except ValueError as fault:
            raise InputError(f"cluster {cluster.name}", str(fault), "a cluster that the twin can be told of") from fault
        return DescribedCluster(
            cluster.name,
            model,
            self._osds.settings(),
            f"Described from the cluster {cluster.name} as it was.",
            stored={pool.name: pool.stored_bytes for pool in pools if pool.stored_bytes},
            notes=tuple(self._notes),
            target=self._osds.section,
            # of a window without the assumed work, of another time, or of other pools, nothing follows for this one
            seen={} if work.assumed or self._given is not None or share < ALMOST_ALL else load,
        )

    def _acting(self, pool: PoolSeen) -> Tuple[Tuple[int, ...], ...]:
        """Where its PGs are, as the model counts OSDs; none where that is not seen, or some OSDs stand for all."""
        numbers = {place.osd: number for number, place in enumerate(self._places)}
        if len(numbers) > SIMULATE_ALL or not set().union(*pool.up) <= numbers.keys():
            return ()
        return tuple(tuple(numbers[osd] for osd in up) for up in pool.up)

    def _max_deviation(self) -> int:
        try:
            return upmap_max_deviation(self._cluster.commander)
        except (CommandFailed, PermissionRefused) as refusal:
            self._notes.append(f"the balancer is not seen, and taken to be on ({refusal})")
            return UPMAP_MAX_DEVIATION

    def _tell_trials(self) -> None:
        try:
            owners = Journal(self._cluster.store).read().trial_owners
        except (CommandFailed, PermissionRefused) as refusal:
            self._notes.append(f"whether settings are on trial is not seen ({refusal})")
            return
        if owners:
            self._notes.append(
                f"settings of {owners} are on trial, and taken for what is in force: look again when the trial is over"
            )

    def _newest(self, sample_s: float) -> Optional[Window]:
        """Of the windows that are kept, or of a short sampling."""
        cluster = self._cluster
        can_sample = sample_s > 0 and len(self._osds.running) <= OSDS_MAX
        window = self._recent_window(can_sample)
        if window is None and can_sample:
            try:
                window, samples = observe(ClusterSampler(cluster.commander, cluster.clock), cluster.clock, sample_s)
            except (CommandFailed, PermissionRefused) as fault:
                self._notes.append(f"what clients do cannot be sampled ({fault})")
                return None
            seconds = sum(sample.seconds for sample in samples)
            self._notes.append(f"what clients do was sampled for {seconds:.3g} s, as no window of it is there")
        return window

    def _recent_window(self, can_sample: bool) -> Optional[Window]:
        now = self._cluster.clock.now()
        try:
            windows = History(self._cluster.store).windows(now, now - RECENT_S)
        except (CommandFailed, PermissionRefused) as fault:
            self._notes.append(f"windows that the plugin keeps are not seen, and latencies with them ({fault})")
            return None
        if windows:
            change = last_change(self._cluster, self._notes)
            windows = settled_windows(windows, change, can_sample, self._notes)
        return merged(present_windows(windows, self._notes))

    @property
    def _has_client_rate(self) -> bool:
        return self._window is not None and "client.iops" in self._window.measures

    def _take_mean_rates(self) -> None:
        """The mean of all time stands for now, where nothing says what clients do now."""
        now = self._cluster.clock.now()
        self._seen = self._seen.with_mean_rates(now)
        busiest = max(self._seen.pools, key=lambda pool: pool.operations_s, default=None)
        if busiest is not None and busiest.operations_s:
            self._notes.append(
                "what clients do is assumed to be the mean since each pool was made "
                f"({busiest.name}: {duration(now - busiest.made_at)} ago): at busy hours it is more"
            )

    def _load(self) -> Mapping[str, float]:
        """What is given, means of the window, or what the monitors reckon that clients do."""
        if self._given is not None:
            return self._given
        cluster, window = self._cluster, self._window
        if window is not None and self._has_client_rate:
            return window.means
        reads, writes = (sum(getattr(pool, name) for pool in self._seen.pools) for name in ("reads_s", "writes_s"))
        if reads + writes > 0:
            if self._seen.has_rates:
                self._notes.append("what clients do is what the monitors reckon of the last seconds: no window is kept")
            bytes_s = sum(pool.bytes_s for pool in self._seen.pools)
            return client_load(reads, writes, bytes_s)
        # where it could be sampled and was not to be, that is the way to know
        if self._may_sample and not self._seen.has_rates:
            self._notes.append(
                "clients are left out, as nothing says what they do: no objective about them can be predicted"
            )
            return {}
        raise InputError(
            f"cluster {cluster.name}",
            f"no window of the last {RECENT_S / 60:.0f} min, so that nothing is known of its clients",
            "the plugin, which keeps windows (`ceph-tuner mgr install`), or a description in a file",
        )
