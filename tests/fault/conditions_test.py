"""Compare, then change: in one step of the master, whoever else is at it."""

import threading

from harness import EXIT_CONFLICT, EXIT_OK, EXIT_USAGE, ClusterTest, main


class Conditions(ClusterTest):
    def stat(self, path):
        return self.cluster.ok("stat", path, "--json").json["entries"][0]

    def test_two_updaters_lose_nothing(self):
        """Read, add one, replace if nothing has changed, redo: the sum is what both did."""
        self.cluster.ok("put", "-", "/counter", stdin=b"0")
        each = 8
        redone = []

        def update(name):
            done = 0
            while done < each:
                version = str(self.stat("/counter")["mod_revision"])
                value = int(self.cluster.ok("cat", "/counter").out)
                result = self.cluster.run("put", "--if-version", version, "-", "/counter", stdin=str(value + 1).encode())
                if result.code == EXIT_OK:
                    done += 1
                else:
                    self.assertEqual(result.code, EXIT_CONFLICT, result)
                    redone.append(name)

        threads = [threading.Thread(target=update, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.cluster.ok("cat", "/counter").out, str(2 * each))

    def test_an_old_version_is_refused_with_the_present_one(self):
        self.cluster.ok("put", "-", "/f", stdin=b"one")
        old = self.stat("/f")["mod_revision"]
        self.cluster.ok("put", "-f", "-", "/f", stdin=b"two")
        now = self.stat("/f")["mod_revision"]
        for command in (("put", "-", "/f"), ("appendToFile", "/f"), ("truncate", "0", "/f"), ("rm", "/f"),
                        ("mv", "/f", "/g"), ("touch", "/f")):
            refused = self.cluster.run(command[0], "--if-version", str(old), *command[1:], stdin=b"x", code=EXIT_CONFLICT)
            self.one_line(refused, "CONFLICT", "/f", str(old), str(now))
        self.assertEqual(self.cluster.ok("cat", "/f").out, "two")
        self.cluster.ok("appendToFile", "--if-version", str(now), "/f", stdin=b"three")
        self.assertEqual(self.cluster.ok("cat", "/f").out, "twothree")

    def test_another_object_of_the_same_name(self):
        self.cluster.ok("put", "-", "/o", stdin=b"one")
        first = self.stat("/o")["create_revision"]
        self.cluster.ok("appendToFile", "--if-revision", str(first), "/o", stdin=b"!")
        self.cluster.ok("rm", "/o")
        self.cluster.ok("put", "-", "/o", stdin=b"two")
        self.one_line(self.cluster.run("rm", "--if-revision", str(first), "/o", code=EXIT_CONFLICT), "CONFLICT", str(first))
        self.cluster.ok("rm", "--if-revision", str(self.stat("/o")["create_revision"]), "/o")

    def test_absent(self):
        self.cluster.ok("put", "--if-absent", "-", "/n", stdin=b"one")
        self.one_line(self.cluster.run("put", "-f", "--if-absent", "-", "/n", stdin=b"x", code=EXIT_CONFLICT), "/n")
        self.cluster.run("mkdir", "-p", "--if-absent", "/n", code=EXIT_CONFLICT)
        self.assertEqual(self.cluster.ok("cat", "/n").out, "one")

    def test_a_version_is_of_one_path(self):
        self.cluster.run("rm", "--if-version", "7", "/a", "/b", code=EXIT_USAGE)


if __name__ == "__main__":
    main()
