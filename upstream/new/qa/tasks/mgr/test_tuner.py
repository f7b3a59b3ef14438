import json
import logging

from .mgr_test_case import MgrTestCase

log = logging.getLogger(__name__)


class TestTuner(MgrTestCase):
    MGRS_REQUIRED = 2

    def setUp(self):
        super(TestTuner, self).setUp()
        self.setup_mgrs()
        # OSDs store their bench's capacity there when they start: what the module writes is what is new beside it
        self.before = self._options()
        self._load_module("tuner")

    def _tuner(self, *args):
        return self.mgr_cluster.mon_manager.raw_cluster_cmd("tuner", *args)

    def _config(self):
        return self.mgr_cluster.mon_manager.raw_cluster_cmd("config", "dump", "--format=json")

    def _options(self):
        """Options of the OSDs in the database, without what their own bench may still store."""
        return [
            (entry["section"], entry["mask"], entry["name"], entry["value"])
            for entry in json.loads(self._config())
            if entry["name"].startswith(("osd", "bluestore"))
            and not entry["name"].startswith("osd_mclock_max_capacity_iops_")]

    def _status(self):
        return json.loads(self._tuner("status", "--format=json"))

    def test_status(self):
        """Loaded, it answers, and has written no option of an OSD."""
        self.assertIn("build", self._status())
        self.assertEqual(self.before, self._options())

    def test_off_until_asked(self):
        """The automatic mode is off until somebody turns it on."""
        before = self._config()
        self.assertIn("off", self._tuner("auto", "explain"))
        self.assertEqual(before, self._config())

    def test_failover(self):
        """The next active mgr has the module, and what was stored."""
        self._tuner("slo", "set", "client.p95_ms <= 50 ms")
        first = self.mgr_cluster.get_active_id()
        self.mgr_cluster.mgr_fail(first)
        self.wait_until_true(
            lambda: self.mgr_cluster.get_active_id() not in ("", first), timeout=60)
        self.wait_until_true(lambda: "client.p95_ms" in self._tuner("slo", "ls"), timeout=60)
