"""Wrong input and broken surroundings: one clear line, the documented exit code, nothing lost."""

import glob
import os
import signal
import socket
import subprocess
import time

from harness import (CHUNKSERVER_PROGRAM, EXIT_CONFLICT, EXIT_CORRUPT, EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_NOT_FOUND,
                     EXIT_OK, EXIT_UNAVAILABLE, EXIT_USAGE, KIB, MASTER_PROGRAM, MIB, Cluster, ClusterTest, background,
                     eventually, main)


class Unreachable(ClusterTest):
    chunkservers = 1

    def assert_unavailable(self, address):
        start = time.monotonic()
        result = self.cluster.run("--master", address, "ls", "/")
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(result.code, EXIT_UNAVAILABLE, repr(result))
        self.one_line(result, "picket ls:", address, "check")

    def test_nobody_listens(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.assert_unavailable(f"127.0.0.1:{unused.getsockname()[1]}")

    def test_somebody_listens_but_never_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.assert_unavailable(f"127.0.0.1:{silent.getsockname()[1]}")

    def test_address_that_is_none(self):
        result = self.cluster.run("--master", "127.0.0.1:notaport", "ls", "/")
        self.assertEqual(result.code, EXIT_USAGE, repr(result))
        self.one_line(result, "127.0.0.1:notaport")

    def test_no_master_is_named(self):
        nowhere = Cluster(f"{self.scratch}/nowhere")
        result = nowhere.run("ls", "/", code=EXIT_USAGE)
        self.one_line(result, "--master", "PICKET_MASTER")

    def test_configuration_file(self):
        missing = self.cluster.run("--config", "/nonexistent.toml", "ls", "/", code=EXIT_USAGE)
        self.one_line(missing, "/nonexistent.toml")
        path = f"{self.scratch}/wrong.toml"
        with open(path, "w") as file:
            file.write('mastr = "127.0.0.1:1"\n')
        self.one_line(self.cluster.run("--config", path, "ls", "/", code=EXIT_USAGE), "mastr", "master")


class Names(ClusterTest):
    chunkservers = 1

    def test_missing_path(self):
        for command in (["ls"], ["cat"], ["tail"], ["stat"], ["rm"], ["du"], ["count"], ["checksum"],
                        ["chunk", "show"], ["get"]):
            result = self.cluster.run(*command, "/no/such", code=EXIT_NOT_FOUND)
            self.one_line(result, f"picket {command[0]}: /no/such: NOT_FOUND")
        self.cluster.run("mv", "/no/such", "/x", code=EXIT_NOT_FOUND)
        self.cluster.run("cp", "/no/such", "/x", code=EXIT_NOT_FOUND)
        self.cluster.run("put", "/etc/hostname", "/no/such/parent", code=EXIT_NOT_FOUND)
        self.cluster.run("put", "/no/such/local", "/x", code=EXIT_NOT_FOUND)
        self.cluster.run("mkdir", "/no/such/parent", code=EXIT_NOT_FOUND)
        self.cluster.run("rm", "-f", "/no/such", code=EXIT_OK)
        self.one_line(self.cluster.run("ls", "/nothing*", code=EXIT_NOT_FOUND), "/nothing*")

    def test_name_too_long(self):
        self.cluster.ok("touch", "/" + "n" * 255)
        for command in (["touch"], ["mkdir"], ["put", "/etc/hostname"]):
            result = self.cluster.run(*command, "/" + "n" * 256, code=EXIT_USAGE)
            self.one_line(result, "255")

    def test_name_that_is_not_utf8(self):
        result = self.cluster.run("touch", b"/bad\xff", code=EXIT_USAGE)
        self.one_line(result, "\\xff", "UTF-8")

    def test_wrong_kinds(self):
        self.cluster.ok("mkdir", "/dir")
        self.cluster.ok("touch", "/dir/file")
        self.one_line(self.cluster.run("rm", "/dir", code=EXIT_FAILURE), "-r")
        self.cluster.run("cat", "/dir", code=EXIT_FAILURE)
        self.cluster.run("ls", "/dir/file/below", code=EXIT_FAILURE)
        self.cluster.run("mkdir", "/dir", code=EXIT_CONFLICT)
        self.cluster.run("mv", "/dir", "/dir/below")
        self.cluster.run("mv", "/dir/file", "/dir/file/x")
        self.cluster.run("cp", "/dir", "/dir/below", code=EXIT_USAGE)
        self.assertEqual(self.cluster.ok("ls", "-R", "-C", "/dir").out, "/dir/file\n")


class FewServers(ClusterTest):
    each = True
    chunkservers = 2
    settings = {"master_heartbeat": "200ms", "master_suspect_after": "1s", "master_dead_after": "2s"}

    def lose(self, name):
        before = self.live()
        self.cluster.kill(name)
        eventually(lambda: self.live() < before, f"{name} is missed")

    def live(self):
        return sum(server["state"] == "live" for server in self.cluster.report()["servers"])

    def test_fewer_than_the_goal_is_a_warning(self):
        local = self.make_file("few", MIB)
        result = self.cluster.ok("put", local, "/few")
        self.one_line(result, "picket put: /few: warning:", "2", "3")
        self.assertEqual(len(self.cluster.chunks("/few")[0]["replicas"]), 2)
        self.same_content(local, "/few")

    def test_fewer_than_the_minimum(self):
        self.lose("chunkserver-1")
        result = self.cluster.run("put", self.make_file("one", MIB), "/one", code=EXIT_UNAVAILABLE)
        self.assertIn("NOT_ENOUGH_REPLICAS", result.err)
        self.cluster.run("test", "-e", "/one", code=1)
        local = self.make_file("single", MIB)
        self.cluster.ok("put", "--replication=1", local, "/single")
        self.same_content(local, "/single")

    def test_no_live_chunkserver(self):
        local = self.make_file("before", MIB)
        self.cluster.ok("put", local, "/before")
        for name in ("chunkserver-1", "chunkserver-2"):
            self.lose(name)
        result = self.cluster.run("put", local, "/none", code=EXIT_UNAVAILABLE)
        self.assertIn("/none", result.err)
        self.assertIn("chunkserver", result.err)
        self.assertNotIn("/none\n", self.cluster.ok("ls", "-C", "/").out)
        self.cluster.run("get", "/before", f"{self.scratch}/never", code=EXIT_UNAVAILABLE)
        self.assertEqual([n for n in os.listdir(self.scratch) if "never" in n or "picket-get" in n], [])
        self.cluster.up()
        self.same_content(local, "/before")


class FullDisk(ClusterTest):
    # More than any disk has must stay free.
    settings = {"chunkserver_reserve": "1PiB"}

    def test_no_space(self):
        result = self.cluster.run("put", self.make_file("full", MIB), "/full")
        self.assertIn(result.code, (EXIT_FAILURE, EXIT_UNAVAILABLE), repr(result))
        self.assertIn("space", result.err)
        self.cluster.run("test", "-e", "/full", code=1)


class InterruptedPut(ClusterTest):
    def start_put(self, *args, content=b"x" * MIB):
        process = self.cluster.start("put", *args, stdin=subprocess.PIPE)
        self.enterContext(background(process))
        process.stdin.write(content)
        process.stdin.flush()
        return process

    def is_open(self, path):
        result = self.cluster.run("stat", path, "--json")
        return result.code == EXIT_OK and result.json["entries"][0]["open"]

    def test_new_file_is_visible_and_goes_with_ctrl_c(self):
        put = self.start_put("-", "/new")
        eventually(lambda: self.is_open("/new"), "the new file is there, open")
        self.one_line(self.cluster.run("put", "/etc/hostname", "/new", code=EXIT_CONFLICT), "/new")
        put.send_signal(signal.SIGINT)
        _, err = put.communicate(timeout=30)
        self.assertEqual(put.returncode, EXIT_INTERRUPTED, err)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertIn(b"removed", err)
        self.cluster.run("test", "-e", "/new", code=1)

    def test_killed_put_leaves_an_open_file(self):
        put = self.start_put("-", "/killed")
        eventually(lambda: self.is_open("/killed"), "the new file is there, open")
        put.kill()
        put.wait()
        self.assertTrue(self.is_open("/killed"))
        self.cluster.run("put", "/etc/hostname", "/killed", code=EXIT_CONFLICT)

    def test_overwrite_keeps_the_old_content_until_it_is_closed(self):
        self.cluster.ok("put", "-", "/over", stdin=b"old")
        before = self.cluster.report()["open_files"]
        put = self.start_put("-f", "-", "/over", content=b"new" * MIB)
        eventually(lambda: self.cluster.report()["open_files"] > before, "the overwrite is open")
        self.assertEqual(self.cluster.ok("cat", "/over").out, "old")
        put.send_signal(signal.SIGINT)
        _, err = put.communicate(timeout=30)
        self.assertEqual(put.returncode, EXIT_INTERRUPTED, err)
        self.assertIn(b"unchanged", err)
        self.assertEqual(self.cluster.ok("cat", "/over").out, "old")

        put = self.start_put("-f", "-", "/over", content=b"new")
        self.assertEqual(self.cluster.ok("cat", "/over").out, "old")
        put.communicate(timeout=30)
        self.assertEqual(put.returncode, EXIT_OK)
        self.assertEqual(self.cluster.ok("cat", "/over").out, "new")
        self.cluster.ok("put", "-f", "-", "/over", stdin=b"new")
        self.assertEqual(self.cluster.ok("cat", "/over").out, "new")

    def test_interrupted_get_leaves_nothing(self):
        self.cluster.ok("put", self.make_file("source", 64 * MIB), "/source")
        directory = f"{self.scratch}/into"
        os.mkdir(directory)
        get = self.cluster.start("get", "/source", directory)
        with background(get):
            eventually(lambda: os.listdir(directory) or get.poll() is not None, "the hidden file")
            get.send_signal(signal.SIGINT)
            get.communicate(timeout=30)
        self.assertIn(get.returncode, (EXIT_INTERRUPTED, EXIT_OK))
        self.assertIn(os.listdir(directory), ([], ["source"]))


class DamagedReplicas(ClusterTest):
    each = True
    chunkservers = 2
    settings = {"master_heartbeat": "200ms", "master_default_replication": "2"}

    def replica_files(self, chunk_id, suffix="data"):
        return glob.glob(f"{self.cluster.directory}/data/chunkserver-*/**/*{chunk_id}*{suffix}", recursive=True)

    def test_truncated_replica(self):
        local = self.make_file("content", MIB)
        self.cluster.ok("put", local, "/file")
        self.cluster.ok("put", "--replication=1", local, "/single")
        for path in ("/file", "/single"):
            files = self.replica_files(self.cluster.chunks(path)[0]["id"])
            self.assertTrue(files)
            os.truncate(files[0], 100 * KIB)
        self.same_content(local, "/file")
        result = self.cluster.run("get", "/single", f"{self.scratch}/never", code=EXIT_CORRUPT)
        self.assertIn("/single", result.err)
        self.assertIn("put the file again", result.err)
        # Also after a start, which looks at what is there.
        self.cluster.ok("dev", "down")
        self.cluster.up()
        # Whoever happens to read it finds it, and the master hears of it.
        def counted():
            self.same_content(local, "/file")
            return sum(replica["counted"] for replica in self.cluster.chunks("/file")[0]["replicas"])

        eventually(lambda: counted() == 1, "the truncated replica does not count")

    def test_flipped_bit(self):
        local = self.make_file("content", MIB)
        self.cluster.ok("put", local, "/file")
        with open(self.replica_files(self.cluster.chunks("/file")[0]["id"])[0], "r+b") as file:
            file.seek(500 * KIB)
            byte = file.read(1)
            file.seek(500 * KIB)
            file.write(bytes([byte[0] ^ 1]))
        self.same_content(local, "/file")

    def test_foreign_files_among_the_replicas(self):
        local = self.make_file("content", MIB)
        self.cluster.ok("put", local, "/file")
        self.cluster.ok("dev", "down")
        for path in self.replica_files("", "meta"):
            directory = os.path.dirname(path)
            for name in ("README", "00000000000000ff.meta", "00000000000000ff.data", "zz.data"):
                with open(f"{directory}/{name}", "wb") as file:
                    file.write(b"not a replica")
        self.cluster.up()
        self.same_content(local, "/file")


class WrongWorlds(ClusterTest):
    """Servers started on the wrong directory, or with a wrong configuration."""

    chunkservers = 1

    def server(self, program, *args, seconds=20):
        return subprocess.run([program, *args], capture_output=True, text=True, timeout=seconds)

    def test_chunkserver_of_another_cluster(self):
        other = Cluster(f"{self.scratch}/other", 1)
        self.addCleanup(other.destroy)
        other.up()
        other.kill("chunkserver-1")
        stray = subprocess.Popen(
            [CHUNKSERVER_PROGRAM, "--dir", other.data_dir("chunkserver-1"), "--master",
             self.cluster.processes()["master"]["address"]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with background(stray):
            line = next((line for line in stray.stderr if "WRONG_CLUSTER" in line), None)
        self.assertIsNotNone(line, "no word of the wrong cluster")
        self.assertEqual(len(self.cluster.report()["servers"]), 1)
        other.up()  # unharmed

    def test_directories(self):
        empty = f"{self.scratch}/empty"
        foreign = f"{self.scratch}/foreign"
        os.makedirs(empty, exist_ok=True)
        os.makedirs(foreign, exist_ok=True)
        open(f"{foreign}/file", "w").close()
        for program in (MASTER_PROGRAM, CHUNKSERVER_PROGRAM):
            for directory in (empty, foreign, f"{self.scratch}/absent"):
                result = self.server(program, "--dir", directory, "--listen", "127.0.0.1:0")
                self.assertEqual(result.returncode, 1, result)
                self.assertIn(directory, result.stderr)
        locked = self.server(CHUNKSERVER_PROGRAM, "--dir", self.cluster.data_dir("chunkserver-1"))
        self.assertEqual(locked.returncode, 1, locked)
        swapped = self.server(CHUNKSERVER_PROGRAM, "--dir", self.cluster.data_dir("master"))
        self.assertEqual(swapped.returncode, 1, swapped)
        self.assertIn("master", swapped.stderr)

    def test_configuration(self):
        path = f"{self.scratch}/master.toml"
        with open(path, "w") as file:
            file.write('dir = "/x"\nlisen = "127.0.0.1:1"\n')
        result = self.server(MASTER_PROGRAM, "--config", path, "--check-config")
        self.assertEqual(result.returncode, 2, result)
        for part in ("lisen", "listen", path):
            self.assertIn(part, result.stderr)
        for program in (MASTER_PROGRAM, CHUNKSERVER_PROGRAM):
            self.assertEqual(self.server(program, "--version").returncode, 0)
            self.assertEqual(self.server(program, "--help").returncode, 0)
            self.assertEqual(self.server(program, "--nonsense").returncode, 2)


if __name__ == "__main__":
    main()
