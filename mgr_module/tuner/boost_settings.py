"""Which settings a boost takes, by what this cluster knows: its trials, its book, and what is in force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Collection, List, Mapping, Optional

from ceph_tuner.core.autopilot.executor import TrialExecutor
from ceph_tuner.core.book.book import StoredBook
from ceph_tuner.core.book.choice import is_usable
from ceph_tuner.core.book.page import IMPORT, TRIAL, TWIN, VALIDATED
from ceph_tuner.core.book.state import BookState
from ceph_tuner.core.boost.choice import LOOKED_AT, BookPage, BoostChoice, choose
from ceph_tuner.core.boost.events import Request
from ceph_tuner.core.boost.goals import goals_of
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.offer import PLACE, TwinOffer, parse_offer
from ceph_tuner.core.ceph.target import Target, running
from ceph_tuner.core.changes.writer import key_for_class
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.core.knobs.settings import check_live_settings, dotted
from ceph_tuner.core.measure.sample import at_work

from .aim import Aim
from .lookout import BOOK
from .options import BookOptions
from .regime_watch import RegimeWatch
from .service import EVERY_OSD, STATUS_WINDOW_S, Service

_ORIGINS = {TWIN: "the twin", IMPORT: "an import", TRIAL: "a trial elsewhere"}


class BoostSettings:
    """Chooses. Where a boost is for a device class, by the trials, the pages and the load of that class.

    On a cluster that has no other class, those of the whole cluster are of that class as well.
    """

    def __init__(
        self,
        service: Service,
        executors: Mapping[str, TrialExecutor[Any]],
        regimes: RegimeWatch,
        overdue_s: Callable[[], float],
    ) -> None:
        """`overdue_s`: seconds without a sample after which one is missing."""
        self._service, self._executors, self._regimes, self._overdue_s = service, executors, regimes, overdue_s
        self._book, self._options = StoredBook(service.store), BookOptions(service.option)

    def offered(self, text: str, request: Request, now: float) -> TwinOffer:
        """Read what the twin offers a boost. Raises InputError for what this cluster's release does not take."""
        offer, version = parse_offer(text, request.kind, request.target, now), self._service.release_version()
        check_live_settings(offer.settings, release_of(version), _place_in_offer, parse_version(version))
        return offer

    def choose(
        self, request: Request, means: Mapping[str, float], now: float, offer: Optional[TwinOffer] = None
    ) -> BoostChoice:
        """Give settings and grounds. `means`: what the cluster does now. Raises InputError where nothing is faster."""
        service = self._service
        device_class = Target.parse(request.target, "--who").device_class
        if request.target != EVERY_OSD:
            # before anything is noted: a boost that ended at once is an alarm for a day
            running(request.target, service.config.places())
        is_all = self._is_all(device_class)
        part = "" if is_all else device_class
        aim, targets = service.aim(part), {request.target, *([EVERY_OSD] if is_all else [])}
        trials, pages = service.trials(part), self._pages(targets, aim, now)
        if is_all:
            trials += service.trials(device_class)
        names = [*LOOKED_AT, *(name for trial in trials for name in trial.run.settings)]
        names += [name for page in pages for name in page.settings]
        names += offer.settings if offer is not None else ()
        in_force = service.values_in_force([name for name in dict.fromkeys(names) if name in KNOBS], request.target)
        version = service.release_version()
        choice = choose(
            KINDS[request.kind],
            trials,
            goals_of(request.keep, self._wanted(device_class, is_all)),
            in_force,
            release_of(version),
            parse_version(version),
            _now(aim) if part else means,
            pages,
            f"of the class {part}" if part else "on this cluster",
            offer,
        )
        return choice._replace(in_force={name: in_force[name] for name in LOOKED_AT if name in in_force})

    def _is_all(self, device_class: str) -> bool:
        """Whether all OSDs are of that class."""
        return bool(device_class) and {each.device_class for each in self._service.config.places()} == {device_class}

    def _wanted(self, device_class: str, is_all: bool) -> Optional[Slo]:
        """The objectives of a class; where it has none those of the whole SLO, as the guard holds these.

        A class's trials tell nothing of what other classes and pools do.
        """
        own = self._service.aim(device_class).slo() if device_class else None
        slo = own if own is not None else self._service.slos.read()
        if slo is None or slo is own or is_all or not device_class:
            return slo
        return replace(slo, objectives=tuple(each for each in slo.objectives if each.scope is None) or slo.objectives)

    def _pages(self, targets: Collection[str], aim: Aim, now: float) -> List[BookPage]:
        """Pages for the regime that holds and these OSDs, that may be used and are not left out just now."""
        held = self._regimes.state_of(aim.scope)
        if held is None or not held.is_told(now, self._overdue_s()) or aim.stands_aside:
            return []
        switching = self._executors.get(key_for_class(BOOK, aim.device_class))
        rests = switching.state.rests if switching is not None and isinstance(switching.state, BookState) else {}
        limits, policy = self._options.read(), self._regimes.unnamed_policy(held.name) or ""
        try:
            pages = [page for page in self._book.read().pages if page.target in targets]
        except InputError:
            # the health check `TUNER_BOOK_DAMAGED` tells of it
            return []
        return [
            BookPage(
                page.number,
                page.regime,
                page.settings,
                page.at,
                page.state == VALIDATED,
                _ORIGINS[page.origin],
                page.means,
                page.load,
            )
            for page in pages
            if page.regime == held.name
            and is_usable(page, limits.unvalidated, policy)
            and not (page.number in rests and now < rests[page.number])
        ]


def _place_in_offer(*keys: object) -> str:
    return f"{PLACE}, {dotted(*keys)}"


def _now(aim: Aim) -> Mapping[str, float]:
    """How fast the work of a class goes; empty where it is not watched by itself."""
    window = aim.window(STATUS_WINDOW_S)
    return at_work(window.means) if window is not None else {}
