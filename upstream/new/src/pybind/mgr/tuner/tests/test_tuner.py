import tests  # noqa: F401 - mocks what ceph-mgr brings

from tuner import core
from tuner.core.goals.slo import parse_slo
from tuner.core.knobs.catalogue import KNOBS
from tuner.core.knobs.releases import RELEASES
from tuner.module import Module


def test_the_module_has_options_with_defaults_of_their_types():
    kinds = {'str': str, 'int': int, 'uint': int, 'secs': int, 'float': (int, float), 'bool': bool}
    assert Module.MODULE_OPTIONS
    for option in Module.MODULE_OPTIONS:
        if option['default'] is not None:
            assert isinstance(option['default'], kinds[option['type']]), option['name']
        assert option['desc']


def test_all_commands_begin_with_the_name_of_the_module():
    commands = [command['cmd'] for command in Module.CLICommand.dump_cmd_list()]
    assert 'tuner status' in [' '.join(words.split()[:2]) for words in commands]
    assert all(words.startswith('tuner ') for words in commands)


def test_what_writes_needs_more_than_reading():
    perms = {c['cmd'].split(' name=')[0]: c['perm'] for c in Module.CLICommand.dump_cmd_list()}
    assert perms['tuner status'] == 'r'
    assert perms['tuner auto on'] == 'w'


def test_objectives_are_read():
    slo = parse_slo({'name': 'night', 'objectives': ['client.p95_ms <= 5 ms']})
    (objective,) = slo.objectives
    assert (objective.metric, objective.bound.value) == ('client.p95_ms', 5.0)


def test_every_release_honours_some_knob():
    for release in RELEASES.values():
        assert any(knob.effective(release).works for knob in KNOBS.values())


def test_the_core_says_its_version():
    assert core.__version__
