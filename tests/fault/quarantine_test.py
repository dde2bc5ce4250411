"""A replica that missed its chunk's last set ends in quarantine, where an operator sees it and decides."""

import os
import signal
import subprocess
import time

from harness import EXIT_CONFLICT, EXIT_NOT_FOUND, EXIT_OK, MIB, ClusterTest, background, eventually, main


class StaleReplica(ClusterTest):
    chunkservers = 4
    # What counts for nothing goes soon; a vanished primary's lease is short.
    settings = {"master_lease": "2s", "master_heartbeat": "200ms", "master_stale_settle": "1s"}

    def quarantined(self, server):
        return self.cluster.ok("quarantine", "ls", server, "--json").json["entries"]

    def test_from_a_stopped_member_to_purge(self):
        content = os.urandom(6 * MIB)
        with open(f"{self.scratch}/content", "wb") as file:
            file.write(content)
        put = self.enterContext(background(self.cluster.start("put", "--replication=2", "-", "/f", stdin=subprocess.PIPE)))
        put.stdin.write(content[:4 * MIB])
        put.stdin.flush()

        def being_written():
            result = self.cluster.run("chunk", "show", "/f", "--json")
            chunks = result.json["chunks"] if result.code == EXIT_OK else []
            return chunks[0] if chunks and chunks[0]["primary"] and len(chunks[0]["replicas"]) == 2 else None

        chunk = eventually(being_written, "the chunk is being written")
        victim = next(r["server"] for r in chunk["replicas"] if r["server"] != chunk["primary"])
        name = self.cluster.server_name(victim)
        pid = self.cluster.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            put.stdin.write(content[4 * MIB:])
            put.stdin.close()
            put.stdin = None
            _, err = put.communicate(timeout=150)
            self.assertEqual(put.returncode, EXIT_OK, err.decode())
        finally:
            os.kill(pid, signal.SIGCONT)

        # The set was made whole on another server; the member that missed it counts for nothing, and goes.
        entries = eventually(lambda: self.quarantined(victim), "the stale replica is in quarantine", 90)
        self.assertEqual([e["path"] for e in entries], ["/f"])
        self.assertFalse(entries[0]["last_hope"])
        sealed = self.cluster.chunks("/f")[0]
        self.assertLess(entries[0]["version"], sealed["version"])
        self.assertNotIn(victim, [r["server"] for r in sealed["replicas"]])
        self.same_content(f"{self.scratch}/content", "/f")

        # Below the mark that its deletion left, or stale again: it never counts, whoever brings it back.
        entry = entries[0]["name"]
        restored = self.cluster.run("quarantine", "restore", victim, entry)
        self.assertIn(restored.code, (EXIT_OK, EXIT_CONFLICT), repr(restored))
        self.assertNotIn(victim, [r["server"] for r in self.cluster.chunks("/f")[0]["replicas"] if r["counted"]])
        self.same_content(f"{self.scratch}/content", "/f")
        entries = eventually(lambda: self.quarantined(victim), "it is in quarantine again", 60)

        self.cluster.run("quarantine", "restore", victim, "0000000000000000.0000000000000000", code=EXIT_CONFLICT)
        self.cluster.run("quarantine", "ls", "nobody", code=EXIT_NOT_FOUND)
        self.cluster.ok("quarantine", "purge", victim)
        self.assertEqual(self.quarantined(victim), [])
        self.same_content(f"{self.scratch}/content", "/f")


if __name__ == "__main__":
    main()
