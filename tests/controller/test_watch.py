"""What a watch makes of the API server's events, the ones that a real one seldom sends among them."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional

import pytest

from ceph_tuner.controller.at_api_server import Watch
from ceph_tuner.controller.kinds import SLO
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused
from ceph_tuner.rook.kubernetes_api import ApiAnswer


class Scripted:
    """An API server whose watches give these events, one list after another."""

    name = "scripted"

    def __init__(self, *watches: Any) -> None:
        self._watches = list(watches)
        self.versions: List[str] = []
        self.lists = 0

    def call(self, method: str, path: str, parameters: Optional[Mapping[str, str]] = None) -> ApiAnswer:
        self.lists += 1
        return ApiAnswer(200, {"metadata": {"resourceVersion": f"list-{self.lists}"}, "items": []})

    def watch(self, path: str, parameters: Mapping[str, str], idle_s: float) -> Iterator[Dict[str, Any]]:
        self.versions.append(parameters["resourceVersion"])
        for event in self._watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


def event(kind: str, version: str, generation: int = 1, uid: str = "u") -> Dict[str, Any]:
    metadata = {"uid": uid, "generation": generation, "resourceVersion": version}
    return {"type": kind, "object": {"metadata": metadata}}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}


def watched(*watches: Any) -> Any:
    server, changes = Scripted(*watches), []
    watch = Watch(server, SLO, "rook-ceph", lambda: changes.append(len(server.versions)))  # type: ignore[arg-type]
    return watch, server, changes


def test_it_goes_on_where_the_last_watch_ended() -> None:
    watch, server, _ = watched(
        [event("ADDED", "11")], [{"type": "BOOKMARK", **event("", "15")} | {"type": "BOOKMARK"}], []
    )
    for _ in range(3):
        watch.follow(60)
    assert server.versions == ["list-1", "11", "15"]
    assert server.lists == 1


def test_what_is_said_in_a_status_is_no_change() -> None:
    states = [event("ADDED", "1"), event("MODIFIED", "2"), event("MODIFIED", "3", 2), event("DELETED", "4", 2)]
    watch, _, changes = watched(states)
    watch.follow(60)
    # that of the list, of the new one, of its other spec, and of its end
    assert len(changes) == 4


def test_after_what_is_too_old_everything_may_have_changed() -> None:
    watch, server, changes = watched([event("ADDED", "1"), GONE], [event("ADDED", "1")])
    watch.follow(60)
    watch.follow(60)
    assert server.versions == ["list-1", "list-2"]
    assert len(changes) == 4


def test_a_watch_that_breaks_off_goes_on() -> None:
    watch, server, _ = watched([event("ADDED", "8"), ClusterTimeout("broken")], [])
    with pytest.raises(ClusterTimeout):
        watch.follow(60)
    watch.follow(60)
    assert server.versions == ["list-1", "8"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"type": "ERROR", "object": {"code": 403, "message": "forbidden"}}, PermissionRefused),
        ({"type": "ERROR", "object": {"code": 500}}, CommandFailed),
        ({"type": "ERROR", "object": None}, CommandFailed),
        ({"type": "ADDED", "object": {"metadata": None}}, CommandFailed),
    ],
)
def test_a_refusal_is_an_error_and_the_next_watch_begins_anew(answer: Any, error: type) -> None:
    watch, server, _ = watched([answer], [])
    with pytest.raises(error):
        watch.follow(60)
    watch.follow(60)
    assert server.versions[0] == "list-1"


@pytest.mark.parametrize("code", ["broken", 0, 200, None])
def test_an_error_without_a_code_of_an_error_is_one_nevertheless(code: Any) -> None:
    watch, _, _ = watched([{"type": "ERROR", "object": {"code": code}}], [])
    with pytest.raises(CommandFailed):
        watch.follow(60)
