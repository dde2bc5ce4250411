"""picket dev: local clusters come up, go down and come back, and touch nothing that is not theirs."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import (EXIT_CONFLICT, EXIT_NOT_FOUND, EXIT_OK, EXIT_PARTIAL, EXIT_UNAVAILABLE, EXIT_USAGE, MIB, Cluster,
                     ClusterTest, main)


class Life(ClusterTest):
    each = True
    chunkservers = 2

    def states(self):
        return {name: p["state"] for name, p in self.cluster.processes().items()}

    def test_down_and_up_again(self):
        local = self.make_file("kept", MIB)
        self.cluster.ok("put", local, "/kept")
        before = self.cluster.processes()
        self.cluster.ok("dev", "down")
        self.assertEqual(set(self.states().values()), {"stopped"})
        self.cluster.run("dev", "status", code=EXIT_UNAVAILABLE)
        self.cluster.ok("dev", "down")  # nothing to do
        self.cluster.up()
        after = self.cluster.processes()
        self.assertEqual({n: p["address"] for n, p in before.items()}, {n: p["address"] for n, p in after.items()})
        self.assertTrue(all(before[n]["pid"] != after[n]["pid"] for n in before))
        self.same_content(local, "/kept")

    def test_up_restarts_what_is_dead(self):
        self.cluster.kill("chunkserver-1")
        self.assertEqual(self.states()["chunkserver-1"], "dead")
        self.cluster.run("dev", "status", code=EXIT_PARTIAL)
        alive = self.cluster.pid("master")
        self.cluster.up()
        self.assertEqual(set(self.states().values()), {"running"})
        self.assertEqual(self.cluster.pid("master"), alive)
        self.cluster.up()  # everything runs: nothing happens
        self.assertEqual(self.cluster.pid("master"), alive)

    def test_the_master_reports_the_address_that_it_advertises(self):
        port = self.cluster.processes()["master"]["port"]
        self.assertEqual(self.cluster.report()["master"], f"127.0.0.1:{port}")
        self.cluster.ok("dev", "down")
        self.cluster.ok("dev", "up", "--set", "master.advertise=localhost:0")
        self.assertEqual(self.cluster.report()["master"], f"localhost:{port}")

    def test_growing(self):
        self.cluster.run("dev", "up", "--chunkservers=1", code=EXIT_CONFLICT)
        self.cluster.ok("dev", "up", "--chunkservers=3")
        self.assertEqual(len(self.cluster.report()["servers"]), 3)

    def test_a_port_that_was_taken_meanwhile(self):
        self.cluster.ok("dev", "down")
        port = self.cluster.processes()["master"]["port"]
        with socket.create_server(("127.0.0.1", port)):
            self.cluster.up()
            self.assertNotEqual(self.cluster.processes()["master"]["port"], port)
            self.cluster.ok("ls", "/")

    def test_sigterm_stops_a_server_in_order(self):
        for name in ("chunkserver-1", "master"):
            self.cluster.kill(name, signal.SIGTERM)
            self.assertIn("stopped", self.cluster.log(name).splitlines()[-1])

    def test_status(self):
        text = self.cluster.ok("dev", "status").out
        facts = self.cluster.ok("dev", "status", "--json").json
        self.assertEqual(facts["state"], "running")
        for process in facts["processes"]:
            self.assertTrue(os.path.exists(process["log"]))
            os.kill(process["pid"], 0)
            for part in (process["name"], str(process["pid"]), process["address"], process["log"]):
                self.assertIn(part, text)

    def test_wipe_wants_down_first(self):
        self.one_line(self.cluster.run("dev", "wipe", code=EXIT_CONFLICT), "picket dev down")
        self.cluster.ok("dev", "down")
        extra = f"{self.cluster.directory}/mine.txt"
        open(extra, "w").close()
        self.cluster.ok("dev", "wipe")
        self.assertEqual(os.listdir(self.cluster.directory), ["mine.txt"])
        os.unlink(extra)

    def test_wrong_settings(self):
        self.cluster.run("dev", "up", "--set", "nonsense", code=EXIT_USAGE)
        self.cluster.ok("dev", "down")
        result = self.cluster.run("dev", "up", "--set", "master.leese=5s")
        self.assertNotEqual(result.code, EXIT_OK)
        self.one_line(result, "master", "leese", "lease")


class Directories(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="picket-fault-")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def test_foreign_directories_are_not_touched(self):
        cluster = Cluster(f"{self.scratch}/foreign")
        os.mkdir(cluster.directory)
        with open(f"{cluster.directory}/precious", "w") as file:
            file.write("x")
        for verb in ("up", "down", "status", "wipe"):
            cluster.run("dev", verb, code=EXIT_CONFLICT)
        self.assertEqual(os.listdir(cluster.directory), ["precious"])

    def test_nothing_there(self):
        cluster = Cluster(f"{self.scratch}/absent")
        for verb in ("down", "status", "wipe"):
            cluster.run("dev", verb, code=EXIT_NOT_FOUND)
        self.assertFalse(os.path.exists(cluster.directory))

    def test_two_clusters_coexist(self):
        clusters = [Cluster(f"{self.scratch}/{name}", 1, master_default_replication="1") for name in ("one", "two")]
        for cluster in clusters:
            self.addCleanup(cluster.destroy)
        # At the same moment, too.
        starting = [c.start("dev", "up", "--chunkservers=1", *c.settings, stdout=subprocess.DEVNULL) for c in clusters]
        for process in starting:
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, EXIT_OK, err)
        for cluster in clusters:
            cluster.ok("put", "-", "/who", stdin=cluster.directory.encode())
        for cluster in clusters:
            self.assertEqual(cluster.ok("cat", "/who").out, cluster.directory)
        self.assertNotEqual(*[c.report()["cluster_id"] for c in clusters])
        clusters[0].ok("dev", "down")
        self.assertEqual(clusters[1].ok("cat", "/who").out, clusters[1].directory)
        # By --dir, from anywhere.
        clusters[1].ok("dev", "status", "--dir", clusters[1].directory, cwd=self.scratch)


if __name__ == "__main__":
    main()
