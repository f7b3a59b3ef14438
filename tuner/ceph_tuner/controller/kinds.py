"""The custom resources: what each states, by the schemas that files have, and their definitions for the API server.

A definition lets unknown keys of `spec` through: the API server would drop a misspelt key without a word, where the
controller refuses it in the resource's status.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple

from ceph_tuner.core.autopilot.policy import option_name, options
from ceph_tuner.core.autopilot.state import MODES
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.files.slo_file import SLO_SCHEMA

GROUP, VERSION = "tuner.ceph.io", "v1alpha1"
FINALIZER = f"{GROUP}/taken-back"
"""Stands on a resource as long as something of it is at the cluster."""
RECORD = f"{GROUP}/record"
"""The annotation that has what was at the cluster before."""

_TYPES: Dict[type, str] = {float: "number", int: "integer", str: "string"}


def _policy_properties() -> Dict[str, Any]:
    return {
        option_name(item): {
            "type": _TYPES[type(item.default)],
            "description": f"{item.metadata['meaning']}. {item.default!r} where it is not stated.",
            **({} if item.metadata["low"] is None else {"minimum": item.metadata["low"]}),
            **({} if item.metadata["high"] is None else {"maximum": item.metadata["high"]}),
        }
        for item in options()
    }


SLO_SPEC: Dict[str, Any] = {
    **SLO_SCHEMA,
    # the version is the resource's, and a load is for labs
    "properties": {name: part for name, part in SLO_SCHEMA["properties"].items() if name not in ("schema", "lab")},
    "required": ["objectives"],
}
BOOST_SPEC: Dict[str, Any] = {
    "title": "a boost: background work sooner, until it is done",
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": list(KINDS), "description": "The work."},
        "atMost": {"type": "string", "description": "It ends after this time, whatever is left: 90min, 6h, 2d."},
        "keep": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Objectives that end it where they are missed, such as client.p95_ms<=20.",
        },
        "target": {"type": "string", "description": "osd, osd/class:ssd, osd/host:h0, osd/rack:r1 or osd.3."},
    },
    "required": ["kind"],
    "additionalProperties": False,
}
MODE_SPEC: Dict[str, Any] = {
    "title": "the automatic mode of the cluster, or of one device class",
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": list(MODES), "description": "What the automatic mode may do."},
        "deviceClass": {
            "type": "string",
            "description": "The class whose mode it is; without it the cluster's, or every class with objectives.",
        },
        "policy": {
            "type": "object",
            "description": "Options of the automatic mode, by their names as options of the module.",
            "properties": _policy_properties(),
            "additionalProperties": False,
        },
    },
    "required": ["mode"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ResourceKind:
    """One kind of custom resource."""

    name: str
    plural: str
    short: str
    spec: Mapping[str, Any]
    """The JSON schema of `spec`, as files have one."""
    columns: Tuple[Tuple[str, str], ...] = ()
    """What `kubectl get` shows of `spec`: title, path."""

    @property
    def singular(self) -> str:
        """As the API server names one."""
        return self.name.lower()

    def path(self, namespace: str) -> str:
        """Where the resources of a namespace are, at the API server."""
        return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{self.plural}"

    def definition(self) -> Dict[str, Any]:
        """The CustomResourceDefinition (apiextensions.k8s.io/v1)."""
        version = {
            "name": VERSION,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": self._columns(),
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "required": ["spec"],
                    "properties": {"spec": structural(self.spec, root=True), "status": _STATUS},
                }
            },
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {
                    "kind": self.name,
                    "listKind": f"{self.name}List",
                    "plural": self.plural,
                    "singular": self.singular,
                    "shortNames": [self.short],
                    "categories": ["ceph-tuner"],
                },
                "versions": [version],
            },
        }

    def _columns(self) -> List[Dict[str, str]]:
        columns = [*self.columns, *((name, f'.status.conditions[?(@.type=="{name}")].status') for name in CONDITIONS)]
        columns += [("Reason", '.status.conditions[?(@.type=="Ready")].reason')]
        rows = [{"name": name, "type": "string", "jsonPath": path} for name, path in columns]
        return [*rows, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


def structural(schema: Mapping[str, Any], root: bool = False) -> Dict[str, Any]:
    """Give a JSON schema in the form that the API server takes: structural, with unknown keys let through."""
    structure = {name: schema[name] for name in ("type", "enum", "required", "minimum", "maximum") if name in schema}
    title = schema.get("description", "" if root else schema.get("title", ""))
    if title:
        structure["description"] = title
    if schema.get("type") == "object":
        structure["x-kubernetes-preserve-unknown-fields"] = True
        if "properties" in schema:
            structure["properties"] = {name: structural(part) for name, part in schema["properties"].items()}
    elif schema.get("type") == "array":
        # an item's own form is checked by the core, as that of a file
        structure["items"] = structural(schema.get("items", {}))
    elif "type" not in schema:
        structure["x-kubernetes-preserve-unknown-fields"] = True
    return structure


CONDITIONS = ("Accepted", "Ready")

_CONDITION = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "reason": {"type": "string"},
        "message": {"type": "string"},
    },
}
_STATUS: Dict[str, Any] = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "conditions": {
            "type": "array",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}

SLO = ResourceKind("CephSLO", "cephslos", "cslo", SLO_SPEC)
BOOST = ResourceKind("CephBoost", "cephboosts", "cboost", BOOST_SPEC, (("Kind", ".spec.kind"),))
MODE = ResourceKind(
    "CephTuningMode",
    "cephtuningmodes",
    "cmode",
    MODE_SPEC,
    (("Mode", ".spec.mode"), ("Class", ".spec.deviceClass")),
)
ALL = (SLO, MODE, BOOST)
