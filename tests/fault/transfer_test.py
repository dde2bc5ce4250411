"""Files of all sizes go in and come out equal."""

import os

from harness import EXIT_CONFLICT, GIB, MIB, ClusterTest, main


class Transfer(ClusterTest):
    def versions(self, path):
        return [(chunk["id"], chunk["version"]) for chunk in self.cluster.chunks(path)]

    def assert_replicated(self, path, replicas=3):
        for chunk in self.cluster.chunks(path):
            self.assertEqual(len(chunk["replicas"]), replicas, chunk)
            for replica in chunk["replicas"]:
                self.assertEqual(replica["version"], chunk["version"], chunk)
                self.assertEqual(replica["generation"], chunk["generation"], chunk)
                self.assertEqual(replica["state"], "sealed", chunk)
                self.assertTrue(replica["counted"], chunk)

    def test_one_gib(self):
        local = self.make_file("big", GIB)
        self.cluster.ok("put", local, "/big")
        self.same_content(local, "/big")
        self.assertEqual(len(self.cluster.chunks("/big")), 16)
        self.assert_replicated("/big")

        before, epoch = self.versions("/big"), self.cluster.report()["epoch"]
        self.cluster.kill("master")
        self.cluster.up()
        self.assertEqual(self.versions("/big"), before)
        self.assertGreater(self.cluster.report()["epoch"], epoch)
        self.same_content(local, "/big")

        # Ranges of one file, read at once.
        got = f"{self.scratch}/ranges"
        self.cluster.ok("get", "-t", "4", "/big", got)
        self.assertEqual(os.system(f"cmp {local} {got}"), 0)
        os.unlink(got)

    def test_sizes_around_a_chunk(self):
        for size, chunks in ((0, 0), (1, 1), (MIB - 1, 1), (MIB, 1), (MIB + 1, 2), (3 * MIB, 3)):
            with self.subTest(size=size):
                local = self.make_file(f"size-{size}", size)
                remote = f"/size-{size}"
                self.cluster.ok("put", "--chunk-size=1M", local, remote)
                self.assertEqual(len(self.cluster.chunks(remote)), chunks)
                self.assert_replicated(remote)
                self.same_content(local, remote)
                status = self.cluster.ok("stat", remote, "--json").json["entries"][0]
                self.assertEqual((status["length"], status["chunks"], status["open"]), (size, chunks, False))

    def test_a_small_file_takes_little_disk(self):
        local = self.make_file("small", 5)
        self.cluster.ok("put", local, "/small")
        chunk = self.cluster.chunks("/small")[0]
        for replica in chunk["replicas"]:
            server = self.cluster.data_dir(self.cluster.server_name(replica["server"]))
            for end in ("data", "meta"):
                taken = os.stat(f"{server}/replicas/{chunk['id']}.{end}").st_blocks * 512
                self.assertLess(taken, MIB, f"{end} of a sealed replica of 5 bytes")

    def test_many_files_in_parallel(self):
        tree = f"{self.scratch}/tree"
        for directory in ("", "a", "a/b", "empty"):
            os.makedirs(f"{tree}/{directory}", exist_ok=True)
        for i in range(40):
            with open(f"{tree}/{'a/b/' if i % 2 else ''}file{i}", "wb") as file:
                file.write(os.urandom(1 + i * 1000))
        self.cluster.ok("put", "-t", "8", tree, "/tree")
        self.assertEqual(self.cluster.ok("count", "/tree", "--json").json["entries"][0]["files"], 40)
        self.cluster.ok("get", "-t", "8", "/tree", f"{self.scratch}/tree-back")
        self.assertEqual(os.system(f"diff -r {tree} {self.scratch}/tree-back"), 0)
        self.cluster.ok("cp", "-t", "4", "/tree", "/tree-copy")
        self.cluster.ok("get", "/tree-copy", f"{self.scratch}/copy-back")
        self.assertEqual(os.system(f"diff -r {tree} {self.scratch}/copy-back"), 0)
        # Again, over itself: refused without -f, harmless with it.
        self.cluster.run("put", f"{tree}/file0", "/tree/file0", code=EXIT_CONFLICT)
        self.cluster.ok("put", "-f", f"{tree}/file0", "/tree/file0")
        self.same_content(f"{tree}/file0", "/tree/file0")

    def test_replication_of_one_file(self):
        local = self.make_file("single", 2 * MIB)
        self.cluster.ok("put", "--replication=1", "--no-sync", local, "/single")
        self.assert_replicated("/single", replicas=1)
        self.same_content(local, "/single")

    def test_equal_content_has_equal_checksums(self):
        local = self.make_file("sum", 3 * MIB + 5)
        for name in ("/sum1", "/sum2"):
            self.cluster.ok("put", "--chunk-size=1M", local, name)
        one, two = self.cluster.ok("checksum", "/sum1", "/sum2", "--json").json["entries"]
        self.assertEqual(one["checksum"], two["checksum"])
        self.assertEqual(one["algorithm"], "CRC32C-of-1048576CRC32C-of-65536CRC32C")
        self.cluster.ok("put", "--chunk-size=1M", self.make_file("other", 3 * MIB + 5), "/sum3")
        self.assertNotEqual(self.cluster.ok("checksum", "/sum3", "--json").json["entries"][0]["checksum"], one["checksum"])


if __name__ == "__main__":
    main()
