"""`drain`, `reweight`, `pgs step` and `moves` as people run them, on a small cluster whose PGs move."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Mapping, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.lock import claims
from ceph_tuner.core.errors import CommandFailed, RetryLater
from ceph_tuner.core.goals.stored_slo import store_slo
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.moves import mover, switches
from ceph_tuner.moves.record import MoveRecord, MoveStore
from ceph_tuner_cli import cluster_option, moves
from keeping import by_day_and_night
from moving_cluster import MIB, Moving, moving_cluster
from running_program import Run

Opening = Callable[..., Tuple[Cluster, Moving]]


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Opening:
    def opened(**changes: Any) -> Tuple[Cluster, Moving]:
        cluster, fake = moving_cluster(**changes)
        for module in (moves, cluster_option):
            monkeypatch.setattr(module, "open_cluster", lambda name: cluster)
        return cluster, fake

    return opened


def document(run: Run, *words: str) -> Tuple[int, Any]:
    code, out, err = run(*words, "--cluster", "moving", "--format", "json")
    assert out, err
    return code, json.loads(out)


def on(fake: Moving, osd: int) -> int:
    return sum(osd in acting for acting in fake.acting.values())


@pytest.mark.parametrize("words", [("drain", "osd.3"), ("reweight", "h2", "2"), ("pgs", "step", "rbd", "16")])
def test_without_yes_nothing_is_written(opening: Opening, run: Run, words: Tuple[str, ...]) -> None:
    cluster, fake = opening()
    code, found = document(run, *words)
    assert code == 0
    assert found["would"]
    assert found["commands"]
    assert fake.writes == []
    assert cluster.store.keys("moves/") == []


def test_a_preview_says_what_the_move_would_wait_for_now(opening: Opening, run: Run) -> None:
    opening(flags="norebalance,noout")
    _, found = document(run, "drain", "osd.3")
    assert found["waits_for"] == "norebalance to be unset: nothing moves until then, nor what is on its way"
    _, out, _ = run("pgs", "step", "rbd", "16", "--cluster", "moving")
    assert "Now it would wait for norebalance to be unset" in " ".join(out.split())
    opening()
    assert document(run, "drain", "osd.3")[1]["waits_for"] == ""


def test_dates_that_have_passed_are_refused_at_once(opening: Opening, run: Run) -> None:
    _, fake = opening()
    for words in (["--yes"], []):
        code, _, err = run("drain", "osd.3", "--cluster", "moving", "--hours", "2020-01-01", *words)
        assert (code, fake.writes) == (2, [])
        assert "--hours: found 2020-01-01, which has passed, expected hours to come" in " ".join(err.split())


@pytest.mark.parametrize("words", [("pgs", "step", "rbd", "8"), ("reweight", "osd.3", "1")])
def test_a_preview_of_what_is_so_already_says_that(opening: Opening, run: Run, words: Tuple[str, ...]) -> None:
    opening()
    code, out, err = run(*words, "--cluster", "moving")
    assert (code, "There is nothing to do." in out, "it is so already" in err) == (0, True, True)


def test_a_preview_with_many_commands_says_how_many_there_are(opening: Opening, run: Run) -> None:
    _, fake = opening(pgs=64)
    code, out, err = run("drain", "osd.3", "--cluster", "moving")
    assert (code, out.count("ceph osd pg-upmap-items")) == (0, 15)
    assert f"and {on(fake, 3) - 15} commands more: --format json" in " ".join(err.split())


REFUSED = [
    (("drain", "osd.3"), {"balancer": True}, "--pause-balancer"),
    (("reweight", "osd.3", "2"), {"balancer": True}, "--pause-balancer"),
    (("pgs", "step", "rbd", "16"), {"autoscale": "on"}, "--pause-autoscaler"),
]


@pytest.mark.parametrize(("words", "changes", "option"), REFUSED)
def test_a_plan_is_shown_where_it_would_be_refused_with_what_to_add(
    opening: Opening, run: Run, words: Tuple[str, ...], changes: Dict[str, Any], option: str
) -> None:
    _, fake = opening(**changes)
    code, out, err = run(*words, "--cluster", "moving")
    assert code == 0
    shown, said = " ".join(out.split()), " ".join(err.split())
    assert "With --yes it is refused" in shown
    assert f"Add {option} (given back at the end)" in shown
    assert f"nothing is moved: {option} --yes does it" in said
    assert "ceph osd" in shown
    code, found = document(run, *words)
    assert (code, len(found["refused"])) == (0, 1)
    assert option in found["refused"][0]
    code, found = document(run, *words, option)
    assert (code, found["refused"]) == (0, [])
    code, out, err = run(*words, "--cluster", "moving", "--yes")
    assert (code, out) == (2, "")
    assert fake.writes == []


def test_a_preview_says_what_it_keeps_and_when_it_begins(opening: Opening, run: Run) -> None:
    cluster, _ = opening()
    _, found = document(run, "drain", "osd.3")
    assert found["keeps"] == "keeps nothing: no objective is set; --keep 'client.p95_ms<=20' sets one"
    assert found["hours"] == ""
    store_slo(cluster.store, by_day_and_night("20"))
    _, found = document(run, "drain", "osd.3", "--hours", "mon-fri 22:00-06:00 Europe/Berlin")
    assert found["hours"] == "mon-fri 22:00-06:00 Europe/Berlin"
    assert found["keeps"].startswith("keeps nothing: the policy night has no hard objective about clients; --keep")
    code, out, _ = run("drain", "osd.3", "--cluster", "moving", "--keep", "client.p95_ms<=20", "--hours", "sat")
    assert code == 0
    assert "It keeps client.p95_ms <= 20 ms." in out
    assert "Its moves begin within sat." in out
    assert "How long it takes is known once the first PGs have arrived." in out


def test_a_preview_estimates_its_duration_by_kept_windows_of_backfill(opening: Opening, run: Run) -> None:
    cluster, fake = opening()
    history, now = History(cluster.store), cluster.clock.now()
    values = {"backfill.objects_s": 5.0, "recovery.bytes_s": 1e6, "client.p95_ms": 10.0, "client.iops": 100.0}
    for minute in range(10, 0, -1):
        # half of them miss the bound: a move would wait there
        latency = 30.0 if minute % 2 else 10.0
        measures = {name: Measure(value, 0.0, 12) for name, value in {**values, "client.p95_ms": latency}.items()}
        history.add_window(Window(now - 60 * minute, now - 60 * minute + 60, measures))
    moved_bytes = on(fake, 3) * 10 * MIB
    _, found = document(run, "drain", "osd.3")
    assert found["rough_s"] == pytest.approx(moved_bytes / 1e6)
    assert found["rough_finish_at"] == pytest.approx(cluster.clock.now() + moved_bytes / 1e6, abs=60)
    _, found = document(run, "drain", "osd.3", "--keep", "client.p95_ms<=20")
    assert found["rough_s"] == pytest.approx(2 * moved_bytes / 1e6)
    _, found = document(run, "drain", "osd.3", "--keep", "client.p95_ms<=5")
    assert found["rough_s"] is None
    _, out, _ = run("drain", "osd.3", "--cluster", "moving", "--hours", "01:00-05:00")
    words = "by 10 kept windows with backfill: for the bytes alone, and small PGs take seconds each."
    assert words in " ".join(out.split())
    assert "2026-01-01 01:0" in out


def test_a_preview_estimates_its_duration_by_earlier_moves_and_says_so(opening: Opening, run: Run) -> None:
    cluster, fake = opening(pgs=64)
    began = cluster.clock.now()
    _, first = document(run, "drain", "osd.2", "--yes")
    took_s = cluster.clock.now() - began
    left = on(fake, 3)
    _, found = document(run, "drain", "osd.3")
    assert found["rough_by"].startswith("the last ")
    assert found["rough_by"].endswith(" PGs of earlier moves")
    assert found["rough_s"] == pytest.approx(took_s * left / first["moved"], rel=0.5)
    low, high = found["rough_finish_between"]
    assert low < found["rough_finish_at"] < high
    _, out, _ = run("drain", "osd.3", "--cluster", "moving")
    assert " PGs of earlier moves." in " ".join(out.split())
    assert "(90%: 2026-01-01 " in " ".join(out.split())
    # pgp_num takes other times than upmap entries
    assert document(run, "pgs", "step", "rbd", "128")[1]["rough_by"] is None


@pytest.mark.parametrize("name", ["osd.3", "3", "h3"])
def test_an_osd_is_named_as_ceph_does_or_by_its_host(opening: Opening, run: Run, name: str) -> None:
    cluster, fake = opening()
    code, found = document(run, "drain", name, "--yes")
    assert (code, found["reason"], on(fake, 3), fake.weights[3]) == (0, "done", 0, 0.0)
    assert claims(cluster.store) == []


@pytest.mark.parametrize(
    ("pg_num", "command", "words"),
    [
        (
            "16",
            "pg_num 16",
            "pgp_num is held at 8 while PGs are split. Then it goes up to 16, by at most 3 PGs",
        ),
        ("4", "pgp_num 5", "pgp_num goes down to 4, by at most 3 PGs a step. Then pg_num is set to 4"),
    ],
)
def test_what_follows_the_first_commands_of_another_pg_num_is_said(
    opening: Opening, run: Run, pg_num: str, command: str, words: str
) -> None:
    opening()
    code, found = document(run, "pgs", "step", "rbd", pg_num, "--at-most", "3")
    assert (code, found["commands"][0]) == (0, f"ceph osd pool set rbd {command}")
    assert any(words in line for line in found["would"])


def test_more_pgs_than_the_limit_are_refused_with_the_number_that_keeps_it(opening: Opening, run: Run) -> None:
    words = ("pgs", "step", "rbd", "1024")
    _, fake = opening()
    code, found = document(run, *words)
    (refusal,) = found["refused"]
    assert code == 0
    # 1024 PGs of two copies on five OSDs
    assert "gives an OSD 410 PGs in the mean, beyond mon_max_pg_per_osd of 250" in refusal
    assert "--many-pgs to do it all the same (512 keeps the limit)" in refusal
    code, out, err = run(*words, "--cluster", "moving", "--yes")
    assert (code, out) == (2, "")
    assert "--many-pgs" in err
    assert fake.writes == []
    code, found = document(run, *words, "--many-pgs")
    assert (code, found["refused"]) == (0, [])
    assert "That gives an OSD 410 PGs in the mean. Ceph aims at 100 (mon_target_pg_per_osd)." in found["would"]


def test_more_pgs_than_osds_take_are_refused_whatever_is_said(opening: Opening, run: Run) -> None:
    _, fake = opening()
    # 2048 PGs of two copies on five OSDs
    code, out, err = run("pgs", "step", "rbd", "2048", "--many-pgs", "--cluster", "moving")
    assert (code, out, fake.writes) == (2, "", [])
    told = " ".join(err.split())
    assert "2048, which gives an OSD 819 PGs in the mean. Beyond 750 it leaves PGs inactive" in told
    assert "(mon_max_pg_per_osd times osd_max_pg_per_osd_hard_ratio), expected at most 1024" in told
    opening(options={"osd_max_pg_per_osd_hard_ratio": "4.0"})
    assert document(run, "pgs", "step", "rbd", "2048", "--many-pgs")[0] == 0


def test_a_drain_tells_which_osds_get_more_pgs_than_the_limit(opening: Opening, run: Run) -> None:
    opening()
    _, found = document(run, "drain", "osd.3")
    assert not any("mon_max_pg_per_osd" in line for line in found["would"])
    opening(options={"mon_max_pg_per_osd": "3"})
    _, found = document(run, "drain", "osd.3")
    assert "Beyond mon_max_pg_per_osd of 3 PGs, as no other OSD may have them: osd." in " ".join(found["would"])
    opening(options={"mon_max_pg_per_osd": "3", "osd_max_pg_per_osd_hard_ratio": "1.0"})
    code, out, err = run("drain", "osd.3", "--cluster", "moving")
    assert (code, out) == (2, "")
    assert "that no other OSD may have, by rule, room or PGs" in err


def test_the_clusters_own_limit_counts_and_fewer_pgs_are_never_beyond_it(opening: Opening, run: Run) -> None:
    opening(options={"mon_max_pg_per_osd": "5"})
    _, found = document(run, "pgs", "step", "rbd", "16")
    (refusal,) = found["refused"]
    assert "beyond mon_max_pg_per_osd of 5" in refusal
    assert "its OSDs have no room for more PGs" in refusal
    opening(options={"mon_max_pg_per_osd": "1"})
    _, found = document(run, "pgs", "step", "rbd", "2")
    assert found["refused"] == []
    assert "That leaves some of its 5 OSDs without a PG of pool rbd." in found["would"]


def test_a_split_is_said_to_be_for_good_before_it_is_done(opening: Opening, run: Run) -> None:
    opening()
    code, out, _ = run("pgs", "step", "rbd", "16", "--cluster", "moving")
    assert code == 0
    assert "A split is not undone" in out
    code, out, err = run("pgs", "step", "rbd", "16", "--cluster", "moving", "--yes")
    assert code == 0
    assert "A split is not undone" in err


@pytest.mark.parametrize(
    ("words", "changes", "complaint"),
    [
        (("drain", "osd.77"), {}, "osd.N or a host"),
        (("drain", "osd.3"), {"balancer": True}, "--pause-balancer"),
        (("drain", "osd.3"), {"osds": 2}, "no other OSD may have"),
        (("drain", "osd.3"), {"used": 0.9}, "no other OSD may have"),
        (("drain", "osd.3"), {"compat": "jewel"}, "set-require-min-compat-client"),
        (("drain", "osd.3", "--hours", "never"), {}, "--hours"),
        (("drain", "osd.3", "--keep", "recovery.bytes_s>=1 MB/s"), {}, "about clients"),
        (("reweight", "osd.3", "0"), {}, "ceph-tuner drain"),
        (("reweight", "osd.3", "0.00001"), {}, "ceph-tuner drain"),
        (("reweight", "osd.3", "2"), {"balancer": True}, "--pause-balancer"),
        (("pgs", "step", "rbd", "12"), {}, "power of two"),
        (("pgs", "step", "rbd", "16"), {"autoscale": "on"}, "--pause-autoscaler"),
        (("pgs", "step", "none", "16"), {}, "a pool of the cluster"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_written(
    opening: Opening, run: Run, words: Tuple[str, ...], changes: Dict[str, Any], complaint: str
) -> None:
    _, fake = opening(**{**changes, "osds": 4} if changes.get("osds") == 2 else changes)
    if changes.get("osds") == 2:
        # as many hosts as copies
        fake.weights.update({0: 0.0, 1: 0.0})
        fake.acting = {fake.pgid(number): fake.up(number) for number in range(fake.pgs)}
    code, _, err = run(*words, "--cluster", "moving", "--yes")
    assert code == 2
    assert complaint in err
    assert fake.writes == []


def test_what_is_paused_is_given_back_at_the_end(opening: Opening, run: Run) -> None:
    _, fake = opening(balancer=True, autoscale="on")
    words = ("drain", "osd.3", "--pause-balancer", "--pause-autoscaler", "--yes")
    assert document(run, *words)[0] == 0
    assert (fake.balancer, fake.autoscale) == (True, "on")
    assert fake.writes[:2] == ["balancer off", "osd pool set rbd pg_autoscale_mode off"]
    assert fake.writes[-2:] == ["balancer on", "osd pool set rbd pg_autoscale_mode on"]


def test_what_is_not_told_to_be_paused_is_left_alone(opening: Opening, run: Run) -> None:
    _, fake = opening(autoscale="on")
    assert document(run, "drain", "osd.3", "--yes")[0] == 0
    assert not [write for write in fake.writes if "autoscale" in write or "balancer" in write]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, RuntimeError])
def test_what_is_paused_is_given_back_however_it_ends_where_nothing_was_written(
    opening: Opening, run: Run, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    cluster, fake = opening(balancer=True)

    def struck(self: object) -> str:
        raise ending

    monkeypatch.setattr(mover.Mover, "_turn", struck)
    code, _, _ = run("drain", "osd.3", "--pause-balancer", "--yes", "--cluster", "moving")
    assert code == (130 if ending is KeyboardInterrupt else 70)
    assert fake.balancer
    assert not any(record.holds_back for record in MoveStore(cluster.store).records())


@pytest.mark.parametrize("words", [("reweight", "osd.3", "2"), ("drain", "osd.3"), ("pgs", "step", "rbd", "16")])
def test_what_is_paused_stays_so_while_data_is_left_that_it_would_move(
    opening: Opening, run: Run, monkeypatch: pytest.MonkeyPatch, words: Tuple[str, ...]
) -> None:
    _, fake = opening(balancer=True, autoscale="on", pgs=8 if words[0] == "pgs" else 32, osds=6)
    if words[0] == "reweight":
        fake.weights[3] = 0.0
        fake.acting = {fake.pgid(number): fake.up(number) for number in range(fake.pgs)}
    turn = mover.Mover._turn

    def struck(self: mover.Mover) -> str:
        over = turn(self)
        if self._moved:
            raise KeyboardInterrupt
        return over

    monkeypatch.setattr(mover.Mover, "_turn", struck)
    pauses = ("--pause-balancer", "--pause-autoscaler", "--yes", "--cluster", "moving")
    code, out, err = run(*words, *pauses)
    assert (code, "left: " in out) == (130, True)
    assert (fake.balancer, fake.autoscale) == (False, "off")
    assert "what it has paused stays so" in " ".join(err.split())
    assert "`ceph-tuner moves give-back --cluster moving`" in " ".join(err.split())
    monkeypatch.setattr(mover.Mover, "_turn", turn)
    # it need not be told again what to pause
    assert document(run, *words, "--yes")[1]["reason"] == "done"
    assert (fake.balancer, fake.autoscale) == (True, "on")


def killed(cluster: Cluster, fake: Moving) -> None:
    """As a drain that was killed left it."""
    fake.balancer, fake.autoscale = False, "off"
    store = MoveStore(cluster.store)
    record = store.save(MoveRecord("drain osd.3", 1e9, 1e9, balancer=True, autoscale=("rbd", "gone")), 1e9)
    store.remember_undo(record, "1.0", ("osd rm-pg-upmap-items", {"pgid": "1.0"}))


def test_give_back_after_a_kill(opening: Opening, run: Run) -> None:
    cluster, fake = opening()
    killed(cluster, fake)
    rows = document(run, "moves", "ls")[1]
    assert (rows[0]["name"], rows[0]["balancer"], rows[0]["autoscale"]) == ("drain osd.3", True, ["rbd", "gone"])
    assert rows[0]["undo"] == ["ceph osd rm-pg-upmap-items 1.0"]
    code, said = document(run, "moves", "give-back")
    assert (code, len(said), fake.balancer, fake.autoscale) == (0, 2, True, "on")
    assert document(run, "moves", "give-back")[1] == []


def test_nothing_is_given_back_by_an_answer_of_another_shape(opening: Opening) -> None:
    cluster, fake = opening()
    killed(cluster, fake)
    store = MoveStore(cluster.store)
    (record,) = store.records()
    mon = fake.mon

    def misread(prefix: str, arguments: Mapping[str, Any]) -> str:
        return "[]" if prefix == "osd dump" else mon(prefix, arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fake, "mon", misread)
        with pytest.raises(CommandFailed, match="cannot be read"):
            switches.give_back(cluster, store, record)
    # an operator who switches the balancer off in between is not overruled by a second try
    assert not fake.balancer
    assert store.records() == [record]


def test_the_same_command_after_a_kill_gives_back_what_the_first_one_paused(opening: Opening, run: Run) -> None:
    cluster, fake = opening()
    killed(cluster, fake)
    assert document(run, "drain", "osd.3", "--yes")[0] == 0
    assert (fake.balancer, fake.autoscale) == (True, "on")


def test_end_forgets_a_move_and_shows_its_way_back(opening: Opening, run: Run) -> None:
    cluster, fake = opening()
    killed(cluster, fake)
    assert document(run, "moves", "end", "drain osd.3")[1]["ended"] is False
    assert MoveStore(cluster.store).record("drain osd.3") is not None
    found = document(run, "moves", "end", "drain osd.3", "--yes")[1]
    assert found["undo"] == ["ceph osd rm-pg-upmap-items 1.0"]
    assert fake.balancer
    assert cluster.store.keys("moves/") == []
    assert run("moves", "end", "drain osd.3", "--cluster", "moving")[0] == 2


def test_a_move_that_is_done_begins_anew_with_a_way_back_of_its_own(opening: Opening, run: Run) -> None:
    _, fake = opening()
    assert document(run, "reweight", "osd.3", "0.5", "--yes")[0] == 0
    first = document(run, "moves", "ls")[1][0]
    assert "ceph osd crush reweight osd.3 1.000000" in first["undo"]
    fake.weights[3] = 2.0
    assert document(run, "reweight", "osd.3", "0.5", "--yes")[0] == 0
    (again,) = document(run, "moves", "ls")[1]
    assert "ceph osd crush reweight osd.3 2.000000" in again["undo"]
    assert fake.weights[3] == 0.5


@pytest.mark.parametrize("words", [("reweight", "osd.3", "2"), ("drain", "osd.3")])
def test_a_move_that_is_done_and_asked_for_again_keeps_its_way_back(
    opening: Opening, run: Run, words: Tuple[str, ...]
) -> None:
    cluster, fake = opening(pgs=16)
    assert document(run, *words, "--yes")[0] == 0
    (move,) = document(run, "moves", "ls")[1]
    assert "ceph osd crush reweight osd.3 1.000000" in move["undo"]
    writes, began = list(fake.writes), cluster.clock.now()
    code, found = document(run, *words, "--keep", "client.p95_ms<=20", "--yes")
    assert (code, found["reason"], found["windows"], fake.writes) == (0, "done", 0, writes)
    assert cluster.clock.now() == began
    (again,) = document(run, "moves", "ls")[1]
    assert (again["undo"], again["state"]) == (move["undo"], "done")


def test_a_pause_is_not_forgotten_where_the_record_cannot_be_read_for_a_while(
    opening: Opening, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, fake = opening(balancer=True, autoscale="on")
    silent: list[str] = []

    def unanswered(cluster: object, pool: str, mode: str) -> None:
        if mode == "off":
            silent.append(pool)
            raise RetryLater("no answer", "again")
        give(cluster, pool, mode)

    give, read = switches._autoscale, MoveStore.record

    def record(self: MoveStore, name: str) -> Any:
        if silent:
            raise RetryLater("no answer", "again")
        return read(self, name)

    monkeypatch.setattr(switches, "_autoscale", unanswered)
    monkeypatch.setattr(MoveStore, "record", record)
    words = ("drain", "osd.3", "--pause-balancer", "--pause-autoscaler", "--yes", "--cluster", "moving")
    assert run(*words)[0] != 0
    assert silent == ["rbd"]
    assert fake.balancer
    assert not any(each.holds_back for each in MoveStore(cluster.store).records())


def test_what_cannot_be_given_back_is_said(opening: Opening, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = opening(balancer=True)

    def silent(*_: object) -> None:
        raise RetryLater("no answer", "again")

    monkeypatch.setattr(switches, "give_back", silent)
    code, _, err = run("drain", "osd.3", "--pause-balancer", "--yes", "--cluster", "moving")
    assert code != 0
    assert "moves give-back" in err
    assert [each.balancer for each in MoveStore(cluster.store).records()] == [True]


def test_a_mode_that_somebody_has_set_meanwhile_is_left_alone(opening: Opening, run: Run) -> None:
    cluster, fake = opening()
    killed(cluster, fake)
    fake.autoscale = "warn"
    assert document(run, "moves", "give-back")[1] == ["the balancer is on again"]
    assert fake.autoscale == "warn"


def test_a_second_one_does_not_take_the_way_back_of_the_first(opening: Opening, run: Run) -> None:
    cluster, _ = opening()
    store = MoveStore(cluster.store)
    record = store.save(MoveRecord("drain osd.3", 1e9, 1e9, state="done"), 1e9)
    store.remember_undo(record, "1.0", ("osd rm-pg-upmap-items", {"pgid": "1.0"}))
    with cluster.lock("the first"):
        assert run("drain", "osd.3", "--yes", "--cluster", "moving")[0] != 0
    assert store.undos(record) != []


@pytest.mark.parametrize("words", [("drain",), ("reweight", "0.5")])
def test_an_osd_has_one_record_however_it_is_named(opening: Opening, run: Run, words: Tuple[str, ...]) -> None:
    cluster, _ = opening()
    command, *more = words
    assert document(run, command, "3", *more, "--yes")[0] == 0
    (record,) = MoveStore(cluster.store).records()
    assert record.name == " ".join([command, "osd.3", *more])
