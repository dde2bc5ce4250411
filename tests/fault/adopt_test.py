"""An older copy of the metadata is started: it is refused by name, changes nothing, and serves only when an
operator says so; from then on the metadata that was newer is refused."""

import os
import shutil
import subprocess

from harness import EXIT_OK, MIB, ClusterTest, background, eventually, main


class OlderMetadata(ClusterTest):
    each = True
    settings = {"master_heartbeat": "200ms"}

    def write(self, path, size=MIB):
        local = self.make_file("local" + path.replace("/", "_"), size)
        self.cluster.ok("put", local, path)
        return local

    def restart(self):
        """The master, by its own command line: `dev up` would wait for a cluster that serves."""
        self.master.kill()
        self.master.wait()
        self.master = self.enterContext(background(subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))

    def swap(self, copy):
        """Starts the master on that copy of its directory; returns where the present one went."""
        self.master.kill()
        self.master.wait()
        directory = self.cluster.data_dir("master")
        aside = f"{self.scratch}/aside-{len(os.listdir(self.scratch))}"
        shutil.move(directory, aside)
        shutil.copytree(copy, directory)
        self.restart()
        return aside

    def state(self):
        report = self.cluster.run("admin", "report", "--json")
        return report.json["state"] if report.code == EXIT_OK else ""

    def serving(self):
        report = self.cluster.run("admin", "report", "--json")
        return report.code == EXIT_OK and report.json["state"].startswith("serving") and sum(
            s["state"] == "live" for s in report.json["servers"]) == 3

    def test_from_refusal_to_service(self):
        kept = self.write("/kept")
        with open(f"/proc/{self.cluster.pid('master')}/cmdline", "rb") as file:
            self.command = file.read().split(b"\0")[:-1]
        self.cluster.kill("master")
        backup = f"{self.scratch}/backup"
        shutil.copytree(self.cluster.data_dir("master"), backup)
        self.master = self.enterContext(background(subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
        eventually(self.serving, "the newer history serves")
        self.write("/lost")
        newer = self.swap(backup)

        # It is told apart, by name, and changes nothing.
        eventually(lambda: "HISTORY_LOST" in self.state(), "the older copy is noticed")
        refused = self.cluster.run("mkdir", "/new")
        self.assertNotEqual(refused.code, EXIT_OK)
        self.one_line(refused, "HISTORY_LOST")

        def seen_by_all():
            told = self.cluster.ok("admin", "adopt", "--dry-run", "--json").json
            return told if sum("seen epoch" in r["action"] for r in told["replicas"]) == 3 else None

        dry = eventually(seen_by_all, "every chunkserver's mark is listed")
        self.assertTrue(dry["history_lost"])
        self.assertNotEqual(self.cluster.run("admin", "discard").code, EXIT_OK)

        adopted = self.cluster.ok("admin", "adopt", "--json").json
        self.assertEqual(adopted["epoch"], dry["epoch"])
        self.restart()
        eventually(self.serving, "it serves again")
        self.assertEqual(self.cluster.report()["epoch"], adopted["epoch"])
        self.same_content(kept, "/kept")
        self.write("/again")

        # What was the newest is refused now: its epoch is not the one that the servers have seen.
        self.swap(newer)
        eventually(lambda: "HISTORY_LOST" in self.state(), "the other history is noticed")
        self.assertNotEqual(self.cluster.run("mkdir", "/old").code, EXIT_OK)


if __name__ == "__main__":
    main()
