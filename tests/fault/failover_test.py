"""Processes die while a file is written: the put goes on, and nothing that was written is lost."""

import subprocess

from harness import EXIT_OK, MIB, ClusterTest, background, eventually, main

CHUNK = 64 * MIB


class KillsDuringPut(ClusterTest):
    each = True
    # A dead primary's lease must run out before its chunk can be written again.
    settings = {"master_lease": "3s", "master_heartbeat": "500ms"}

    SIZE = 96 * MIB

    def start_put(self, path, first_bytes):
        """A put from a pipe, of which so much has been written to it and is readable in the store."""
        with open(self.make_file("content", self.SIZE), "rb") as file:
            self.content = file.read()
        process = self.cluster.start("put", "-", path, stdin=subprocess.PIPE)
        self.put = self.enterContext(background(process))
        process.stdin.write(self.content[:first_bytes])
        process.stdin.flush()
        # The client is silent now, so it flushes: what has come is on the replicas of the last chunk.
        index = first_bytes // CHUNK
        return eventually(lambda: self.open_chunk(path, index), "the chunk being written, with its primary")

    def open_chunk(self, path, index):
        result = self.cluster.run("chunk", "show", path, "--json")
        chunks = result.json["chunks"] if result.code == EXIT_OK else []
        return chunks[index] if len(chunks) > index and chunks[index]["primary"] else None

    def finish_put(self, path, first_bytes):
        self.put.stdin.write(self.content[first_bytes:])
        self.put.stdin.close()
        self.put.stdin = None
        _, err = self.put.communicate(timeout=120)
        self.assertEqual(self.put.returncode, EXIT_OK, err.decode())
        self.same_content(f"{self.scratch}/content", path)
        return err.decode()

    def kill_member(self, is_primary):
        first = 70 * MIB
        chunk = self.start_put("/f", first)
        self.assertEqual(len(chunk["replicas"]), 3)
        victim = next(r for r in chunk["replicas"] if (r["server"] == chunk["primary"]) == is_primary)
        self.cluster.kill(self.cluster.server_name(victim["server"]))
        self.finish_put("/f", first)

        after = next(c for c in self.cluster.chunks("/f") if c["id"] == chunk["id"])
        self.assertTrue(after["sealed"])
        self.assertGreater(after["version"], chunk["version"])
        self.assertEqual(after["generation"], chunk["generation"])
        counted = [r for r in after["replicas"] if r["counted"]]
        self.assertEqual(len(counted), 2)
        self.assertTrue(all(r["version"] == after["version"] for r in counted), after)
        self.assertNotIn(victim["server"], [r["server"] for r in counted])

        # It comes back, behind: not counted, not read.
        self.cluster.up()
        again = next(c for c in self.cluster.chunks("/f") if c["id"] == chunk["id"])
        stale = [r for r in again["replicas"] if r["server"] == victim["server"]]
        self.assertFalse(any(r["counted"] for r in stale), again)
        self.same_content(f"{self.scratch}/content", "/f")

    def test_secondary(self):
        self.kill_member(is_primary=False)

    def test_primary(self):
        self.kill_member(is_primary=True)

    def test_master(self):
        first = 70 * MIB
        self.start_put("/f", first)
        before = {c["id"]: c["version"] for c in self.cluster.chunks("/f")}
        epoch = self.cluster.report()["epoch"]
        self.cluster.kill("master")
        # It goes on writing while there is no master.
        self.put.stdin.write(self.content[first : first + 4 * MIB])
        self.put.stdin.flush()
        self.cluster.up()
        self.finish_put("/f", first + 4 * MIB)

        after = self.cluster.chunks("/f")
        self.assertGreater(self.cluster.report()["epoch"], epoch)
        self.assertEqual({c["id"]: c["version"] for c in after if c["id"] in before}, before)
        for chunk in after:
            self.assertEqual([r["version"] for r in chunk["replicas"] if r["counted"]], [chunk["version"]] * 3, chunk)


class KillsBetweenPuts(ClusterTest):
    def test_everything_is_killed_between_two_puts(self):
        first, second = self.make_file("first", 5 * MIB), self.make_file("second", 5 * MIB)
        self.cluster.ok("put", "--chunk-size=1M", first, "/first")
        for name in self.cluster.processes():
            self.cluster.kill(name)
        self.cluster.up()
        self.cluster.ok("put", "--chunk-size=1M", second, "/second")
        self.same_content(first, "/first")
        self.same_content(second, "/second")
        for path in ("/first", "/second"):
            for chunk in self.cluster.chunks(path):
                self.assertEqual(len([r for r in chunk["replicas"] if r["counted"]]), 3, chunk)

    def test_a_chunkserver_is_away_between_two_puts(self):
        local = self.make_file("away", 2 * MIB)
        self.cluster.ok("put", local, "/before")
        self.cluster.kill("chunkserver-2")
        self.same_content(local, "/before")
        self.cluster.ok("put", local, "/during")
        self.same_content(local, "/during")
        self.cluster.up()
        self.cluster.ok("put", local, "/after")
        for path in ("/before", "/after"):
            self.assertEqual(len([r for r in self.cluster.chunks(path)[0]["replicas"] if r["counted"]]), 3)


if __name__ == "__main__":
    main()
