from __future__ import annotations

import pytest

from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, Locked, PermissionRefused
from ceph_tuner.pacing.client_watch import SILENT_S, Silence


def test_a_cluster_that_does_not_answer_is_borne_for_ten_minutes_in_a_row() -> None:
    silence = Silence()
    silence.bear(ClusterTimeout(""), 0.0)
    silence.bear(CommandFailed("pg ls", -11, ""), SILENT_S - 1)
    silence.ended()
    silence.bear(ClusterTimeout(""), SILENT_S)
    with pytest.raises(ClusterTimeout):
        silence.bear(ClusterTimeout(""), 2 * SILENT_S)


@pytest.mark.parametrize("failure", [Locked(), PermissionRefused("osd", "EACCES", "allow")])
def test_what_does_not_pass_by_itself_is_raised_at_once(failure: Exception) -> None:
    with pytest.raises(type(failure)):
        Silence().bear(failure, 0.0)
