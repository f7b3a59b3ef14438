"""Writes the definitions of the custom resources, from the schemas of `ceph_tuner.controller.kinds`.

python deploy/kubernetes/write_definitions.py
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Dict

from ruamel.yaml import YAML

from ceph_tuner.controller.kinds import ALL

HERE = Path(__file__).resolve().parent
FOLDERS = (HERE / "crds", HERE.parent / "helm" / "ceph-tuner" / "crds")
"""Helm installs what is beside its templates, and follows no links in a packed chart."""
_HEAD = "# Written by deploy/kubernetes/write_definitions.py: change tuner/ceph_tuner/controller/kinds.py instead.\n"


def definitions() -> Dict[str, str]:
    """Give the text of each file by its name."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.width = False, 110
    texts = {}
    for kind in ALL:
        stream = io.StringIO()
        yaml.dump(kind.definition(), stream)
        texts[f"{kind.plural}.yaml"] = _HEAD + stream.getvalue()
    return texts


def main() -> None:
    """Write them all."""
    for folder in FOLDERS:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in definitions().items():
            (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
