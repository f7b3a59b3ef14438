"""Profiles as YAML files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Dict, Union

from ruamel.yaml import YAML

from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import schema, yaml_document


def read(path: Union[str, Path]) -> Profile:
    """Read and check a profile. Raises InputError with the file, the line and the key."""
    return _profile(yaml_document.load(path))


def from_text(text: str, name: str) -> Profile:
    """Read a profile from the text of the named file."""
    return _profile(yaml_document.parse(text, name))


def _profile(document: yaml_document.YamlDocument) -> Profile:
    schema.check(document, schema.PROFILE)
    return Profile.from_dict(document.data, document.place)


def to_text(profile: Profile) -> str:
    """Write a profile as YAML; `from_text` is its inverse."""
    return plain_to_text(profile.to_dict())


def plain_to_text(document: Dict[str, Any]) -> str:
    """Write a plain document as YAML, its keys in their order."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 110
    yaml.sort_base_mapping_type_on_output = False  # in the order of the profile, not of the alphabet
    yaml.representer.add_representer(str, _text)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _text(representer: Any, text: str) -> Any:
    # quoted, control characters are escaped; ruamel's plain style loses some of them (U+0085, U+2028)
    style = None if text.isprintable() else '"'
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def write(path: Union[str, Path], profile: Profile, force: bool = False) -> None:
    """Write a profile, whole or not at all. Raises InputError where the file exists and `force` is not given."""
    write_text(path, to_text(profile), force)
