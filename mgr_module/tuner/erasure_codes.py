"""The pools' erasure codes, where the OSD map is too large to be built: asked of the monitors when a pool is new."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.measure.pg_documents import ERASURE, data_chunks

from .commander import MgrCommander

ANSWER_S = 2.0


class ErasureCodes:
    """Data chunks (k) of the erasure-coded pools. A pool keeps its code for life."""

    def __init__(self, commander: MgrCommander) -> None:
        self._commander = commander
        self._chunks: Dict[int, int] = {}

    def look(self, pools: Sequence[int], notes: List[str]) -> Mapping[int, int]:
        """Pool -> data chunks, 1 for copies; nothing and a note where the monitors do not say."""
        if set(pools) <= set(self._chunks):
            return self._chunks
        try:
            chunks = self._ask()
        except MISREAD:
            notes.append("the monitors did not list the pools: erasure codes are taken for copies")
            return {}
        self._chunks = {pool: chunks.get(pool, 1) for pool in pools}
        return self._chunks

    def _ask(self) -> Dict[int, int]:
        rows = [
            {**row, "pool": row.get("pool_id", row.get("pool"))}
            for row in self._answer("osd pool ls", detail="detail")
            if int(row["type"]) == ERASURE
        ]
        profiles = {str(row["erasure_code_profile"]) for row in rows}
        codes = {name: self._answer("osd erasure-code-profile get", name=name) for name in sorted(profiles)}
        return data_chunks({"pools": rows, "erasure_code_profiles": codes})

    def _answer(self, prefix: str, **arguments: str) -> Any:
        """Raises ValueError where there is none."""
        answers = self._commander.tell_many([("mon", prefix, arguments)], ANSWER_S)
        return read_json(answers.get(("mon", prefix), ""), prefix, ANSWER)
