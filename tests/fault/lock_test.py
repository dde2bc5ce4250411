"""Locks and sequencers with real processes: who holds, who waits, who is stale, whoever dies or stands still."""

import os
import signal
import subprocess
import time

from harness import EXIT_CONFLICT, EXIT_OK, EXIT_USAGE, ClusterTest, background, eventually, main

EXIT_PERMISSION, EXIT_FENCED, EXIT_UNAVAILABLE = 4, 5, 6


class Locks(ClusterTest):
    chunkservers = 1
    settings = {"master_heartbeat": "500ms"}

    def hold(self, path, *options, script="echo $PICKET_SEQUENCER; exec sleep 600"):
        """`picket lock` in the background, and the sequencer that its command got."""
        process = self.enterContext(background(self.cluster.start("lock", *options, path, "--", "sh", "-c", script)))
        sequencer = process.stdout.readline().decode().strip()
        self.assertTrue(sequencer.startswith("picket1."), sequencer or process.stderr.read().decode())
        return process, sequencer

    def check(self, sequencer, *options):
        result = self.cluster.run("sequencer", "check", sequencer, "--json", *options)
        return result.code, result.json if result.raw else {}

    def generation(self, sequencer):
        return self.cluster.ok("sequencer", "show", sequencer, "--json").json["generation"]

    def test_the_command_runs_under_the_lock(self):
        script = 'echo $PICKET_SEQUENCER; echo $PICKET_LOCK_PATH $PICKET_LOCK_GENERATION; exit 7'
        result = self.cluster.run("lock", "/a", "--", "sh", "-c", script, code=7)
        sequencer, facts = result.out.splitlines()
        shown = self.cluster.ok("sequencer", "show", sequencer, "--json").json
        self.assertEqual(facts, f"/a {shown['generation'] >> 32}.{shown['generation'] & 0xFFFFFFFF}")
        self.assertEqual((shown["path"], shown["mode"]), ("/a", "exclusive"))
        # Released: the next one need not wait, and the old proof is stale.
        code, state = self.check(sequencer)
        self.assertEqual((code, state["verdict"]), (EXIT_FENCED, "stale"))
        self.cluster.ok("lock", "/a", "--", "true")

    def test_usage(self):
        self.cluster.run("lock", "/a", code=EXIT_USAGE)
        self.cluster.run("lock", "/a", "--", code=EXIT_USAGE)
        self.assertEqual(self.cluster.run("lock", "/u", "--", "/no/such/program").code, 127)
        self.cluster.ok("lock", "/u", "--", "true")

    def test_others_are_kept_out_and_told_by_whom(self):
        holder, sequencer = self.hold("/b")
        code, state = self.check(sequencer)
        self.assertEqual((code, state["verdict"]), (EXIT_OK, "valid"))
        refused = self.cluster.run("lock", "/b", "--", "true", code=EXIT_CONFLICT)
        self.assertIn("LEASE_CONFLICT", refused.err)
        self.assertIn(state["sequencer"]["holder"], refused.err)
        self.assertEqual(len(refused.err.splitlines()), 1, refused.err)
        waiter = self.enterContext(background(self.cluster.start("lock", "--wait=60s", "/b", "--", "true")))
        holder.send_signal(signal.SIGTERM)  # passed on to the command; then the lock is released
        self.assertEqual(holder.wait(30), 128 + signal.SIGTERM)
        self.assertEqual(waiter.wait(30), EXIT_OK)

    def test_shared_holders_share_and_exclude_others(self):
        _, first = self.hold("/c", "--shared")
        _, second = self.hold("/c", "--shared")
        for sequencer in first, second:
            self.assertEqual(self.check(sequencer)[1]["verdict"], "valid")
        self.assertEqual(self.generation(first), self.generation(second))
        self.cluster.run("lock", "/c", "--", "true", code=EXIT_CONFLICT)

    def test_a_killed_holder_is_followed_after_its_lock_delay(self):
        holder, old = self.hold("/d", "--ttl=2s", "--lock-delay=3s")
        holder.kill()
        holder.wait()
        begun = time.monotonic()
        _, new = self.hold("/d", "--wait=60s")
        self.assertGreaterEqual(time.monotonic() - begun, 3)
        self.assertGreater(self.generation(new), self.generation(old))
        code, state = self.check(old)
        self.assertEqual((code, state["verdict"]), (EXIT_FENCED, "stale"))
        self.assertEqual(state["newest_generation"], self.generation(new))
        self.assertEqual(self.check(new)[1]["verdict"], "valid")

    def test_the_same_writer_takes_its_own_lock_over_at_once(self):
        _, old = self.hold("/e", "--writer-id=job")
        _, new = self.hold("/e", "--writer-id=job")
        self.assertGreater(self.generation(new), self.generation(old))
        self.assertEqual(self.check(old)[1]["verdict"], "stale")

    def test_a_holder_that_stood_still_is_stale_and_stops_its_command(self):
        holder, old = self.hold("/f", "--ttl=2s", "--lock-delay=1s")
        holder.send_signal(signal.SIGSTOP)
        _, new = self.hold("/f", "--wait=60s")
        self.assertEqual(self.check(old)[1]["verdict"], "stale")
        holder.send_signal(signal.SIGCONT)
        self.assertEqual(holder.wait(30), EXIT_FENCED)
        self.assertIn(b"STALE_GENERATION", holder.stderr.read())
        self.assertEqual(self.check(new)[1]["verdict"], "valid", "the late one released nothing that is not its own")

    def test_without_a_master_the_command_is_stopped_before_the_lock_ends(self):
        holder, sequencer = self.hold("/g", "--ttl=3s",
                                      script="trap '' TERM; echo $PICKET_SEQUENCER; while :; do sleep 0.1; done")
        address = next(p["address"] for n, p in self.cluster.processes().items() if n != "master")
        os.kill(self.cluster.pid("master"), signal.SIGSTOP)
        try:
            begun = time.monotonic()
            self.assertEqual(holder.wait(30), EXIT_FENCED)
            self.assertLess(time.monotonic() - begun, 3.5)
            # A chunkserver does not say "valid" from memory.
            result = self.cluster.run("--master=" + address, "sequencer", "check", "--server", address, sequencer)
            self.assertNotEqual(result.code, EXIT_OK, result)
        finally:
            os.kill(self.cluster.pid("master"), signal.SIGCONT)

    def test_forged_and_asked_of_a_chunkserver(self):
        _, sequencer = self.hold("/h")
        address = next(p["address"] for n, p in self.cluster.processes().items() if n != "master")
        eventually(lambda: self.check(sequencer, "--server", address)[1].get("verdict") == "valid", "a valid verdict")
        middle = len(sequencer) // 2
        forged = sequencer[:middle] + ("A" if sequencer[middle] != "A" else "B") + sequencer[middle + 1:]
        for where in [], ["--server", address]:
            code, state = self.check(forged, *where)
            self.assertEqual((code, state["verdict"]), (EXIT_PERMISSION, "forged"))
        self.assertEqual(self.cluster.run("sequencer", "show", "nonsense").code, EXIT_PERMISSION)


if __name__ == "__main__":
    main()
