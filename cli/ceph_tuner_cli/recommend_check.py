"""`ceph-tuner recommend --check`: what is wrong with the files, all at once, and the cluster as it was understood."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from ceph_tuner.core.columns import WIDTH, glued, unglued
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.printable import printable
from ceph_tuner.files import cluster_file, cluster_text, slo_file
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner_cli.render import Format, emit, warn


def check_files(cluster: Path, slo: Optional[Path], form: Format) -> int:
    """Say every fault, retell the cluster, name objectives that the twin cannot predict. Exit code 2 for a fault."""
    faults = _faults(lambda: cluster_file.faults(cluster))
    description = None if faults else cluster_file.read(cluster)
    if slo is not None:
        faults += _faults(lambda: slo_file.faults(slo))
    unpredictable: List[InputError] = []
    aside: List[str] = []
    if description is not None and slo is not None and not faults:
        unpredictable, aside = _judged(description, slo_file.read(slo).slo)
    document = {
        "faults": [_plain(fault) for fault in faults],
        "cluster": None if description is None else retold(description),
        "unlikely": [] if description is None else list(description.unlikely),
        "unpredictable": [_plain(fault) for fault in unpredictable],
        "left_aside": aside,
    }
    emit(document, form, lambda: _page(document, slo is not None))
    if description is not None and form is Format.table:
        warn(description.unlikely)
    return InputError.exit_code if faults or unpredictable else 0


def retold(description: DescribedCluster) -> str:
    """Tell a description back in sentences, with what it leaves to defaults."""
    return " ".join(_sentences(description, cluster_text.to_dict(description)))


def _sentences(description: DescribedCluster, data: Mapping[str, Any]) -> Iterator[str]:
    model, osd = description.model, data["osd"]
    hosts = f" on {model.hosts} hosts" if model.hosts else ", each a failure domain of its own"
    yield f"{description.name}: {model.osds} OSDs ({osd['device_class']}){hosts}, Ceph {data['release']}."
    if model.simulated_osds:
        yield f"{model.simulated_osds} OSDs are simulated and stand for all."
    if model.processors:
        yield _processors(model)
    yield f"A drive does {_speed(osd['drive'])}."
    if "db" in osd:
        yield f"RocksDB and its log are on another drive, of which an OSD's part does {_speed(osd['db'])}."
    yield (
        f"mClock takes it for {osd['capacity_iops']} and {osd['bandwidth']}; "
        f"an OSD has {model.osd.shards} shard{'s' * (model.osd.shards != 1)} of {model.osd.threads_per_shard} threads."
    )
    yield f"The network takes {data['network'] or 'no time'} from host to host."
    for pool in data["pools"]:
        code = pool.get("erasure_code")
        copies = f"erasure code {code['k']}+{code['m']}" if code else f"{pool['size']} copies"
        stored_text = f", {pool['stored']} stored" if "stored" in pool else ""
        yield f"Pool {pool['name']}: {pool['pgs']} PGs, {copies}{stored_text}."
    for client in data.get("clients", []):
        load = f"{client['rate']} offered" if "rate" in client else "as many operations as they are served"
        shape = f"{client.get('read_share', 0):.0%} reads, {client['block']}"
        yield f"Clients of {client['pool']}: {load}, {client['depth']} at a time at most, {shape}."
    for kind, works in data.get("background", {}).items():
        for work in works:
            things = "clones" if "clones" in work else "objects"
            size = f" of {work['object_size']}" if "object_size" in work else ""
            yield f"{kind.capitalize()} of {work['pool']}: {work[things]:,} {things}{size}."
    if description.target != "osd":
        yield f"Settings are written to {description.target}."
    profile = str(description.settings.get(PROFILE, model.release.default_profile))
    others = [f"{name} {value}" for name, value in data.get("settings", {}).items() if name != PROFILE]
    yield f"In force: {', '.join([f'profile {profile}', *others])}."


def _processors(model: ClusterModel) -> str:
    cores = f"{model.processors} core{'s' * (model.processors != 1)}"
    return f"Each host has {cores}, which its OSDs share." if model.hosts else f"Each OSD has {cores} of its own."


def _speed(drive: Mapping[str, Any]) -> str:
    reads = [str(drive[name]) for name in ("read_iops", "read_bandwidth") if name in drive]
    apart = f", for reads {' and '.join(reads)}" if reads else ""
    return f"{drive['iops']} and {drive['bandwidth']}{apart}"


def _faults(read: Callable[[], List[InputError]]) -> List[InputError]:
    """Give those of a file, also of one that cannot be read at all."""
    try:
        return read()
    except InputError as error:
        return [error]


def _judged(description: DescribedCluster, objectives: Slo) -> Tuple[List[InputError], List[str]]:
    """Give what the twin cannot predict, and what is about other OSDs than those described."""
    # a second of imports
    from ceph_tuner.recommend.question import left_aside, question_of
    from ceph_tuner.recommend.search import unpredictable

    faults = _faults(lambda: unpredictable(question_of(description, objectives)))
    return faults, left_aside(description, objectives)


def _plain(fault: InputError) -> Dict[str, str]:
    return {"place": fault.place, "found": fault.found, "expected": fault.expected}


def _page(document: Mapping[str, Any], with_slo: bool) -> str:
    lines = [_line(fault) for fault in document["faults"]]
    if lines:
        lines.append(f"{len(lines)} fault{'s' * (len(lines) != 1)}")
    if document["cluster"] is not None:
        text_lines = wrap(glued(printable(document["cluster"])), WIDTH, break_long_words=False, break_on_hyphens=False)
        lines += map(unglued, text_lines)
    lines += [_line(fault) for fault in document["unpredictable"]]
    lines += [f"Left aside, as the description is not of its OSDs: {text}" for text in document["left_aside"]]
    if with_slo and not document["faults"] and not document["unpredictable"]:
        lines.append(f"The twin can predict every {'other ' if document['left_aside'] else ''}objective.")
    return "\n".join(lines)


def _line(fault: Mapping[str, str]) -> str:
    return f"{fault['place']}: found {fault['found']}, expected {fault['expected']}"
