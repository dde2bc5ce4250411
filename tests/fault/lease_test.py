"""A writer stalls or dies: who may take its file over, and what it is told when it comes back."""

import os
import signal
import subprocess
import time

from harness import EXIT_CONFLICT, EXIT_OK, ClusterTest, background, eventually, main

EXIT_FENCED = 5


class Leases(ClusterTest):
    def stat(self, path):
        return self.cluster.ok("stat", path, "--json").json["entries"][0]

    def cat(self, path):
        return self.cluster.ok("cat", path).raw

    def writer(self, path, *options, first=b"first"):
        """A `picket append` that has written something and holds the file."""
        process = self.enterContext(background(self.cluster.start("appendToFile", *options, path, stdin=subprocess.PIPE)))
        self.addCleanup(lambda: process.poll() is None and process.send_signal(signal.SIGCONT))
        process.stdin.write(first)
        process.stdin.flush()
        eventually(lambda: process.poll() is not None or
                   self.cluster.run("cat", path).raw.endswith(first), f"{path} has its first bytes")
        self.assertIsNone(process.poll(), "the writer ended")
        return process

    def test_a_stalled_writer(self):
        writer = self.writer("/f")
        writer.send_signal(signal.SIGSTOP)
        shown = self.cluster.ok("lease", "show", "/f", "--json").json
        self.assertTrue(shown["open"])
        lease = shown["lease"]
        holder = lease["holders"][0]["client"]
        self.assertEqual(holder, self.stat("/f")["holder"])
        self.assertIn(holder, self.cluster.ok("lease", "show", "/f").out)
        self.assertIn("/f", [entry["path"] for entry in self.cluster.ok("lease", "ls", "--json").json["leases"]])

        # A reader is not blocked by it.
        begun = time.monotonic()
        self.assertEqual(self.cat("/f"), b"first")
        self.assertLess(time.monotonic() - begun, 2)
        self.one_line(self.cluster.run("append", "/f", stdin=b"x", code=EXIT_CONFLICT), "/f", "LEASE_CONFLICT", holder)

        # Another writer is not either, once it is recovered.
        begun = time.monotonic()
        self.cluster.ok("lease", "recover", "--wait", "/f")
        self.assertLess(time.monotonic() - begun, 2)
        self.assertFalse(self.cluster.ok("lease", "show", "/f", "--json").json["open"])
        self.cluster.ok("append", "/f", stdin=b" second")
        self.assertEqual(self.cat("/f"), b"first second")
        newest = self.stat("/f")["generation"]
        self.assertGreater(newest, lease["generation"])

        # The old one is refused, and told everything.
        writer.send_signal(signal.SIGCONT)
        out, err = writer.communicate(b" late", timeout=60)
        err = err.decode()
        self.assertEqual(writer.returncode, EXIT_FENCED, err)
        self.assertEqual(len(err.splitlines()), 1, err)

        def spelled(token):
            return f"{token >> 32}.{token & 0xFFFFFFFF}"
        for part in ("STALE_GENERATION", "/f", f"token {spelled(lease['generation'])}", "mark ", "holder ", "another writer"):
            self.assertIn(part, err)
        self.assertEqual(self.cat("/f"), b"first second")

    def test_a_writer_that_is_started_again_takes_its_own_file_over(self):
        writer = self.writer("/own", "--writer-id=importer")
        writer.kill()
        writer.wait()
        self.cluster.run("append", "/own", stdin=b"x", code=EXIT_CONFLICT)
        begun = time.monotonic()
        self.cluster.ok("appendToFile", "--writer-id=importer", "/own", stdin=b" again")
        self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(self.cat("/own"), b"first again")

    def test_its_old_self_is_fenced(self):
        writer = self.writer("/self", "--writer-id=importer")
        writer.send_signal(signal.SIGSTOP)
        self.cluster.ok("appendToFile", "--writer-id=importer", "/self", stdin=b" again")
        writer.send_signal(signal.SIGCONT)
        out, err = writer.communicate(b" late", timeout=60)
        self.assertEqual(writer.returncode, EXIT_FENCED, err)
        self.assertEqual(self.cat("/self"), b"first again")

    def test_anybody_may_claim_after_the_soft_limit(self):
        writer = self.writer("/claim", "--soft-limit=2s")
        writer.kill()
        writer.wait()
        eventually(lambda: self.cluster.run("append", "/claim", stdin=b" claimed").code == EXIT_OK,
                   "the file can be claimed", seconds=20)
        self.assertEqual(self.cat("/claim"), b"first claimed")

    def test_the_master_closes_the_file_after_the_hard_limit(self):
        writer = self.writer("/hard", "--soft-limit=1s", "--hard-limit=3s")
        writer.kill()
        writer.wait()
        eventually(lambda: not self.stat("/hard")["open"], "the file is closed", seconds=30)
        self.assertEqual(self.cat("/hard"), b"first")

    def test_a_file_that_nobody_holds(self):
        self.cluster.ok("put", "-", "/closed", stdin=b"x")
        self.assertIn("nobody", self.cluster.ok("lease", "show", "/closed").out)
        self.cluster.ok("lease", "recover", "--wait", "/closed")
        self.assertEqual(self.cat("/closed"), b"x")


if __name__ == "__main__":
    main()
