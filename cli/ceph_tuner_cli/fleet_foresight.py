"""Before `fleet import` and `fleet apply` write: what a profile comes to on each cluster, and what its twin says."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import typer
from rich.text import Text

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.forecast_pairs import measured_apart, scope_of
from ceph_tuner.core.errors import ClusterTimeout, InputError, Stopped, TunerError
from ceph_tuner.core.goals.judge import Verdict
from ceph_tuner.core.goals.stored_slo import stored_baseline
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.core.profiles.translation import Translation
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.descriptions import described, wanted
from ceph_tuner.fleet.likeness import here_and_now
from ceph_tuner.fleet.portable import Portable
from ceph_tuner.fleet.trust import check_newest
from ceph_tuner.recommend import COVERAGE, Prediction
from ceph_tuner.search.transfer import unlike
from ceph_tuner.twin.compiled import available
from ceph_tuner_cli.fleet import asked
from ceph_tuner_cli.render import console, say, working
from ceph_tuner_cli.tables import Columns, cell_lines, columns
from ceph_tuner_cli.workers_option import check_workers, workers_for

if TYPE_CHECKING:
    # it brings scipy and scikit-learn, a second that who only exports or compares does not wait for
    from ceph_tuner.fleet.forecast import ForecastCluster, Foreseen
    from ceph_tuner.workers import Workers

UnpredictedOption = typer.Option(False, "--unpredicted", help="Do not ask the clusters' twins first.")


@dataclass(frozen=True)
class ProfileForCluster:
    """A profile as it comes to one cluster, and what is asked of the cluster's twin (None: nothing)."""

    settings: Settings
    notes: Tuple[str, ...] = ()
    target: Optional[ForecastCluster] = None


@dataclass(frozen=True)
class Fitter:
    """Holds a profile against clusters. `target` names their OSDs."""

    portable: Portable
    target: str
    within: float
    although_unlike: bool
    unpredicted: bool
    older: bool = False
    """Also where the cluster got a newer one of its origin."""

    def fit(
        self, members: Sequence[Member], done: Callable[[Member, Cluster], bool] = lambda member, cluster: False
    ) -> Dict[str, ProfileForCluster]:
        """What it comes to on each, by name, all asked at once; those where it is `done` are left out.

        Raises the first one's error, by their order: InputError where a cluster is too unlike or has no twin.
        """

        def ask(member: Member) -> Union[ProfileForCluster, TunerError]:
            try:
                with closing(open_member(member, self.within)) as connection:
                    return _DONE if done(member, connection) else self._profile_for(member, connection)
            except TunerError as fault:
                return fault

        by_member: Dict[str, ProfileForCluster] = {}
        for answer in asked(members, ask, self.within):
            name = answer.member.name
            fault = answer.found
            if answer.kind == "late":
                fault = ClusterTimeout(f"cluster {name}: {answer.problem}")
            elif fault is None:
                fault = Stopped(f"cluster {name}: {answer.problem}")
            if isinstance(fault, TunerError):
                say([f"{name} does not get it:"])
                raise fault
            if fault is not _DONE:
                by_member[name] = fault
        return by_member

    def settings(
        self, member: Member, cluster: Cluster, forecast: Optional[ForecastCluster] = None
    ) -> Tuple[Settings, Tuple[str, ...]]:
        """What to write, and what to know of it. Raises InputError where the cluster is too unlike the origin.

        `forecast`: what its twin is asked, where that is known.
        """
        slo, model = (None, None) if forecast is None else (forecast.slo, forecast.described.model)
        if member.slo:
            slo = wanted(member, cluster)
        site, means = here_and_now(cluster, self.target, slo, model)
        reason = unlike(self.portable.profile, site, means)
        if reason and not self.although_unlike:
            refusal = f"an unlike cluster ({reason})"
            raise InputError(str(self.portable.profile.name), refusal, "one that is alike, or --although-unlike")
        translation = self._translation(cluster)
        notes = (*([f"unlike: {reason}"] if reason else ()), *translation.notes)
        return translation.settings, tuple(f"{member.name}: {note}" for note in notes)

    def settings_of_alike(self, cluster: Cluster) -> Settings:
        """What to write where it was decided before that the cluster is to get it: its load may be another one now."""
        return self._translation(cluster).settings

    def _translation(self, cluster: Cluster) -> Translation:
        check_newest(cluster.store, self.portable, cluster.clock.now(), self.older)
        return cluster.translated(self.portable.profile, self.target)

    def _profile_for(self, member: Member, cluster: Cluster) -> ProfileForCluster:
        # where no journal can be read, as by REST, nothing is ever written
        cluster.applier().history()
        if self.unpredicted:
            return ProfileForCluster(*self.settings(member, cluster))
        from ceph_tuner.fleet.forecast import ForecastCluster

        try:
            slo = wanted(member, cluster)
            twin = described(member, cluster, slo, self.target, self.within)
            if member.description:
                twin = twin.for_target(self.target, str(member.description), cluster.config.places())
            forecast = ForecastCluster(member.name, twin, slo, {}, stored_baseline(cluster.store))
        except InputError as fault:
            raise _or_unpredicted(fault) from fault
        settings, notes = self.settings(member, cluster, forecast)
        return ProfileForCluster(settings, notes, replace(forecast, settings=settings))


_DONE = ProfileForCluster({})

_ALONE = 4
"""Clusters whose twins run within this process: to begin others takes as long."""


def check_prediction(unpredicted: bool, dask: Optional[str]) -> None:
    """Before clusters are asked. Raises InputError for options that contradict each other, or lack their package."""
    if unpredicted and dask is not None:
        raise InputError("--dask", "--unpredicted as well", "one of them: without the twins there is nothing to run")
    check_workers(None, dask)


def kept_forecast(foreseen: Optional[Foreseen], target: str, cluster: Cluster) -> Dict[str, Any]:
    """What a cluster's twin says of a profile, to be kept with the write: of all OSDs, or of a device class.

    Nothing where the twin is of other OSDs than are written to, or where nothing is measured of these by themselves.
    """
    if foreseen is None or foreseen.target != target or not measured_apart(target):
        return {}
    return foreseen.record(cluster.clock.now()).within(scope_of(target)).to_dict()


def predict(
    fittings: Sequence[ProfileForCluster], shown: bool, dask: Optional[str] = None, insecure: bool = False
) -> Dict[str, Foreseen]:
    """Ask the twins, show what they say where `shown`, and give it by cluster. `dask`: where they run; None: here."""
    from ceph_tuner.fleet import forecast as foreseeing

    targets = [entry.target for entry in fittings if entry.target is not None]
    if not targets:
        return {}
    if dask is None and not available():
        say(["without numba the twins run uncompiled, many times slower"])
    try:
        with ExitStack() as stack, working("predicting") as tell:
            workers: Optional[Workers] = None
            if dask is not None or len(targets) > _ALONE:
                workers = stack.enter_context(workers_for(None, dask, foreseeing, insecure))
                say([f"note: {note}" for note in workers.notes])

            def report(name: str, done: int, total: int) -> None:
                tell(f"the twin of {name}", done, total)

            forecasts = {foreseen.name: foreseen for foreseen in foreseeing.foresee(targets, report, workers)}
    except InputError as fault:
        raise _or_unpredicted(fault) from fault
    if shown:
        console.print(_table(list(forecasts.values())))
        say(_notes(list(forecasts.values())))
    return forecasts


def refuse(profile: str, forecasts: Sequence[Foreseen]) -> None:
    """Raise InputError where a twin advises against it: nothing is written anywhere then."""
    refusals = [foreseen for foreseen in forecasts if foreseen.refusal]
    if refusals:
        more = f" ({', '.join(other.name for other in refusals[1:])} as well)" if refusals[1:] else ""
        first = refusals[0]
        say([f"{first.name} does not get it{more}:"])
        raise InputError(
            f"{profile} on the twin of {first.name}", first.refusal, "what does no harm there, or --unpredicted"
        )


def document_of(forecasts: Mapping[str, Foreseen], name: str) -> Dict[str, Any]:
    """What programs are told of a cluster's prediction."""
    return {"prediction": forecasts[name].to_dict() if name in forecasts else None}


def _or_unpredicted(fault: InputError) -> InputError:
    return InputError(fault.place, fault.found, f"{fault.expected}; or --unpredicted, to go without its twin")


def _table(forecasts: Sequence[Foreseen]) -> Columns:
    table = columns(
        "cluster", "objective", "in force", "with it",
        caption=f"By each cluster's own twin; below a value, where {COVERAGE:.0%} of clusters like it fall.",
    )  # fmt: skip
    for foreseen in forecasts:
        for place, (before, after) in enumerate(foreseen.verdicts):
            name = foreseen.name if place == 0 else ""
            kind = () if after.objective.hard else ("(soft)",)
            cells = (_cell(before, foreseen.before), _cell(after, foreseen.after))
            table.add_row(name, cell_lines(after.objective.text, *kind), *cells)
    return table


def _cell(verdict: Verdict, entry: Prediction) -> Text:
    from ceph_tuner.fleet.forecast import written

    interval = entry.interval(verdict.objective.metric) if verdict.seen is not None else None
    _, ends = amount(verdict.objective.metric, verdict.seen, *(interval or ()))
    style = "green" if verdict.met else "red"
    mark = "✓" if verdict.met else "✗"
    return Text.assemble((f"{mark} {written(verdict)}", style), (f"\n  {ends}" if ends else "", "dim"))


def _notes(forecasts: Sequence[Foreseen]) -> List[str]:
    """Each note once, with the clusters that it is about."""
    about: Dict[str, List[str]] = {}
    for foreseen in forecasts:
        for note in foreseen.notes:
            about.setdefault(note, []).append(foreseen.name)
    return [f"{', '.join(names)}: {note}" for note, names in about.items()]
