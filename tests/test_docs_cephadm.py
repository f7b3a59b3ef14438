"""The specification for cephadm that docs/deployment.md shows, as Ceph itself reads it. No container is started."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ceph_lab.cluster import Lab

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "deployment.md").read_text(encoding="utf-8")

READ = """
import json, sys, yaml
from ceph.deployment.service_spec import ServiceSpec
spec = ServiceSpec.from_json(yaml.safe_load(sys.stdin.read()))
spec.validate()
arguments = [part for each in spec.extra_container_args for part in each.to_args()]
print(json.dumps([spec.service_name(), spec.placement.count, arguments]))
"""


def test_ceph_takes_both_mounts_of_the_specification_as_arguments_of_the_container(any_lab: Lab) -> None:
    (text,) = re.findall(r"```yaml\n( *service_type: mgr\n.*?)```", PAGE, re.DOTALL)
    name, count, arguments = json.loads(any_lab.run(["python3", "-c", READ], payload=text))
    assert (name, count) == ("mgr", 2)
    mounts = [f"/opt/ceph-tuner/mgr/{each}:/usr/share/ceph/mgr/{each}:ro" for each in ("tuner", "ceph_tuner")]
    assert arguments == ["-v", mounts[0], "-v", mounts[1]]
