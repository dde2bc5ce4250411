"""The command line: what each command prints, in text and JSON, and where copies go."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess

from harness import (EXIT_CONFLICT, EXIT_FAILURE, EXIT_NOT_FOUND, EXIT_OK, EXIT_PARTIAL, EXIT_USAGE, MIB, PICKET,
                     ClusterTest, eventually, main)

MTIME = 1_700_000_000  # 2023-11-14 22:13:20 UTC


def touch(path, content=b"", mode=0o644, mtime=MTIME):
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
    os.utime(path, (mtime, mtime))
    return path


class Cli(ClusterTest):
    chunkservers = 1
    settings = {"master_default_replication": "1"}

    def setUp(self):
        super().setUp()
        self.top = f"/{self._testMethodName}"
        self.local = f"{self.scratch}/{self._testMethodName}"
        os.makedirs(self.local)
        self.cluster.ok("mkdir", self.top)

    def names(self, *args):
        return self.cluster.ok("ls", "-C", *args).out.split()

    def lines(self, *args):
        return self.cluster.ok(*args).out.splitlines()


class Printing(Cli):
    def setUp(self):
        super().setUp()
        self.cluster.ok("put", "-p", touch(f"{self.local}/small", b"abc", mtime=MTIME + 60), self.top)
        self.cluster.ok("put", "-p", touch(f"{self.local}/large", b"x" * 1536, 0o600), self.top)
        status = self.cluster.ok("stat", self.top, "--json").json["entries"][0]
        self.owner, self.group = status["owner"], status["group"]

    def test_ls(self):
        who = f"{self.owner} {self.group}"
        self.assertEqual(self.lines("ls", self.top), [
            "Found 2 items",
            f"-rw-------   1 {who}       1536 2023-11-14 22:13 {self.top}/large",
            f"-rw-r--r--   1 {who}          3 2023-11-14 22:14 {self.top}/small",
        ])
        self.assertEqual(self.lines("-ls", "-h", f"{self.top}/large"),
                         [f"-rw-------   1 {who}      1.5 K 2023-11-14 22:13 {self.top}/large"])
        directory = self.lines("ls", "-d", self.top)
        self.assertRegex(directory[0], rf"^drwxr-xr-x   - {who}          0 \d{{4}}-\d\d-\d\d \d\d:\d\d {self.top}$")

    def test_ls_orders(self):
        large, small = f"{self.top}/large", f"{self.top}/small"
        self.assertEqual(self.names(self.top), [large, small])
        self.assertEqual(self.names("-r", self.top), [small, large])
        self.assertEqual(self.names("-t", self.top), [small, large])
        self.assertEqual(self.names("-t", "-r", self.top), [large, small])
        self.assertEqual(self.names("-S", self.top), [large, small])
        self.cluster.ok("mkdir", "-p", f"{self.top}/a/b")
        self.assertEqual(self.names("-R", self.top), [f"{self.top}/a", f"{self.top}/a/b", large, small])

    def test_ls_in_local_time(self):
        environment = dict(self.cluster.environment, TZ="UTC-5")
        out = subprocess.run([PICKET, "ls", self.top], env=environment, capture_output=True, text=True).stdout
        self.assertIn("2023-11-15 03:13", out)

    def test_stat(self):
        path = f"{self.top}/small"
        self.assertEqual(self.lines("stat", path), ["2023-11-14 22:14:20"])
        formatted = self.lines("stat", "%a|%A|%b|%F|%g|%n|%o|%r|%u|%y|%Y|%%", path)
        self.assertEqual(formatted, [f"644|rw-r--r--|3|regular file|{self.group}|small|67108864|1|{self.owner}|"
                                     f"2023-11-14 22:14:20|{(MTIME + 60) * 1000}|%"])
        self.assertEqual(self.lines("stat", "%F %n", self.top), [f"directory {self.top[1:]}"])
        facts = self.cluster.ok("stat", path, "--json").json["entries"][0]
        self.assertEqual(list(facts), ["path", "type", "length", "mode", "owner", "group", "mtime", "replication",
                                       "chunk_size", "chunks", "stored_bytes", "open", "holder", "inode", "generation",
                                       "create_revision", "mod_revision"])
        self.assertEqual((facts["path"], facts["type"], facts["length"], facts["mode"], facts["mtime"], facts["open"]),
                         (path, "file", 3, "0644", "2023-11-14T22:14:20Z", False))

    def test_sums(self):
        self.assertEqual(self.lines("du", "-s", self.top), [f"1539  1539  {self.top}"])
        self.assertEqual(self.lines("du", "-h", self.top), [f"1.5 K  1.5 K  {self.top}/large", f"3      3      {self.top}/small"])
        self.assertEqual(self.cluster.ok("count", self.top).out, f"{1:>12} {2:>12} {1539:>18} {self.top}\n")
        self.assertEqual(self.cluster.ok("count", "--json", self.top).json["entries"],
                         [{"path": self.top, "directories": 1, "files": 2, "bytes": 1539, "bytes_with_replicas": 1539}])
        df = self.cluster.ok("df", "--json").json
        self.assertGreater(df["total_bytes"], df["free_bytes"])
        self.assertEqual(self.lines("df", "-h")[0].split(), ["Filesystem", "Size", "Used", "Available", "Use%"])

    def test_chunk_show(self):
        path = f"{self.top}/small"
        chunk, = self.cluster.chunks(path)
        self.assertLessEqual({"id", "version", "generation", "replicas"}, set(chunk))
        replica, = chunk["replicas"]
        self.assertLessEqual({"server", "version", "generation", "state"}, set(replica))
        self.assertEqual((replica["version"], replica["state"]), (chunk["version"], "sealed"))
        by_id = self.cluster.ok("chunk", "show", chunk["id"], "--json").json["chunks"]
        self.assertEqual([c["path"] for c in by_id], [path])
        text = self.cluster.ok("chunk", "show", path).out
        for part in (chunk["id"], replica["server"], "VERSION", "GENERATION", "sealed"):
            self.assertIn(part, text)
        self.cluster.run("chunk", "show", "00000000deadbeef", code=EXIT_NOT_FOUND)

    def test_admin_report(self):
        report = self.cluster.ok("admin", "report", "--json").json
        self.assertEqual((report["epoch"], report["state"], len(report["servers"])), (1, "serving", 1))
        self.assertIn(report["servers"][0]["id"], self.cluster.ok("admin", "report").out)

    def test_control_characters_reach_pipes_only(self):
        name = f"{self.top}/evil\x1b[31m\nname"
        self.cluster.ok("touch", name)
        self.assertIn(name, self.cluster.ok("ls", self.top).out)
        self.assertIn(name, [e["path"] for e in self.cluster.ok("ls", "--json", self.top).json["entries"]])
        shown = self.on_terminal("ls", self.top)
        self.assertIn("evil\\x1b[31m\\nname", shown)
        self.assertNotIn("\x1b", shown)
        self.one_line(self.cluster.run("cat", name + "\n", code=EXIT_NOT_FOUND), "\\n")

    def test_progress_on_a_terminal_only(self):
        big = touch(f"{self.local}/big", os.urandom(MIB) * 100)
        shown = self.on_terminal("put", big, f"{self.top}/big")
        if "%" in shown:  # unless it was over before the first drawing
            self.assertRegex(shown, r"big +\d+%.*B/s")
        self.assertEqual(self.cluster.ok("get", f"{self.top}/big", f"{self.local}/back").err, "")

    def on_terminal(self, *args):
        """What a terminal gets of both outputs."""
        ours, theirs = pty.openpty()
        process = self.cluster.start(*args, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            select.select([ours], [], [], 60)
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other side has been closed
                break
            if not data:
                break
            shown += data
        os.close(ours)
        self.assertEqual(process.wait(), EXIT_OK, shown)
        return shown.decode()


class Copying(Cli):
    def test_destinations(self):
        file = touch(f"{self.local}/file", b"one")
        self.cluster.ok("put", file, self.top)                       # into a directory
        self.cluster.ok("put", file, f"{self.top}/renamed")          # to a name
        self.cluster.run("put", file, f"{self.top}/absent/", code=EXIT_NOT_FOUND)
        self.cluster.run("put", file, file, f"{self.top}/renamed", code=EXIT_FAILURE)  # several need a directory
        self.cluster.run("put", file, f"{self.top}/renamed", code=EXIT_CONFLICT)
        self.cluster.run("put", "-", self.top, code=EXIT_USAGE)
        self.assertEqual(self.names(self.top), [f"{self.top}/file", f"{self.top}/renamed"])

        self.cluster.run("get", f"{self.top}/file", f"{self.top}/renamed", self.local, code=EXIT_PARTIAL)
        self.assertTrue(os.path.exists(f"{self.local}/renamed"))
        self.one_line(self.cluster.run("get", f"{self.top}/file", file, code=EXIT_CONFLICT), "-f")
        self.cluster.ok("get", "-f", f"{self.top}/file", file)
        self.assertEqual(self.cluster.ok("get", f"{self.top}/file", "-").out, "one")
        self.cluster.ok("get", f"{self.top}/file", cwd=self.scratch)
        self.assertTrue(os.path.exists(f"{self.scratch}/file"))
        os.unlink(f"{self.scratch}/file")
        self.assertEqual([n for n in os.listdir(self.local) if n.startswith(".")], [])

    def test_directories(self):
        os.makedirs(f"{self.local}/d/sub")
        touch(f"{self.local}/d/sub/f", b"x")
        self.cluster.ok("put", f"{self.local}/d", f"{self.top}/new")  # becomes it
        self.cluster.ok("put", f"{self.local}/d/", self.top)          # goes into it
        self.assertEqual(self.names("-R", self.top), [f"{self.top}/{n}" for n in (
            "d", "d/sub", "d/sub/f", "new", "new/sub", "new/sub/f")])
        # Again: every file is refused, or with -f replaced.
        self.cluster.run("put", f"{self.local}/d", self.top, code=EXIT_PARTIAL)
        self.cluster.ok("put", "-f", f"{self.local}/d", self.top)
        # A file in the way of a directory is not what -f replaces.
        file = touch(f"{self.local}/file", b"mine")
        in_the_way = self.cluster.run("get", "-f", f"{self.top}/d", file, code=EXIT_CONFLICT)
        self.one_line(in_the_way, file, "move the file away")

    def test_special_files_and_links(self):
        d = f"{self.local}/d"
        os.makedirs(d)
        touch(f"{d}/plain", b"x")
        os.mkfifo(f"{d}/pipe")
        os.symlink("plain", f"{d}/link")
        os.symlink(".", f"{d}/loop")
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(f"{d}/socket")
        sock.close()
        result = self.cluster.run("put", d, f"{self.top}/skipping", code=EXIT_PARTIAL)
        self.assertEqual(len(result.err.splitlines()), 4, result)
        for part in ("pipe: skipped: a named pipe", "socket: skipped: a socket", "link: skipped", "-L"):
            self.assertIn(part, result.err)
        self.assertEqual(self.names(f"{self.top}/skipping"), [f"{self.top}/skipping/plain"])
        self.cluster.run("put", "-L", d, f"{self.top}/following", code=EXIT_PARTIAL)
        self.assertEqual(self.names(f"{self.top}/following"),
                         [f"{self.top}/following/link", f"{self.top}/following/plain"])

    def test_preserving(self):
        d = f"{self.local}/d"
        os.makedirs(d)
        touch(f"{d}/f", b"x", mode=0o640)
        os.chmod(d, 0o750)
        os.utime(d, (MTIME - 5, MTIME - 5))
        self.cluster.ok("put", "-p", d, f"{self.top}/p")
        self.cluster.ok("cp", "-p", f"{self.top}/p", f"{self.top}/q")
        for name in ("p", "q"):
            self.assertEqual(self.lines("stat", "%a %Y", f"{self.top}/{name}", f"{self.top}/{name}/f"),
                             [f"750 {(MTIME - 5) * 1000}", f"640 {MTIME * 1000}"])
        self.cluster.ok("get", "-p", f"{self.top}/q", f"{self.local}/back")
        for path, mode, mtime in ((f"{self.local}/back", 0o750, MTIME - 5), (f"{self.local}/back/f", 0o640, MTIME)):
            self.assertEqual((os.stat(path).st_mode & 0o777, os.stat(path).st_mtime), (mode, mtime), path)

    def test_json_of_copies(self):
        file = touch(f"{self.local}/f", b"abc")
        self.assertEqual(self.cluster.ok("put", "--json", file, self.top).json,
                         {"copied": [{"source": file, "target": f"{self.top}/f", "bytes": 3}]})

    def test_mv_and_cp(self):
        for name in ("a", "b"):
            self.cluster.ok("put", "-", f"{self.top}/{name}", stdin=name.encode())
        self.cluster.ok("mkdir", f"{self.top}/d")
        self.cluster.ok("cp", f"{self.top}/a", f"{self.top}/b", f"{self.top}/d")
        self.cluster.run("cp", f"{self.top}/a", f"{self.top}/d", code=EXIT_CONFLICT)
        self.cluster.run("cp", f"{self.top}/a", f"{self.top}/a", code=EXIT_USAGE)
        self.cluster.run("mv", f"{self.top}/a", f"{self.top}/b", code=EXIT_CONFLICT)
        self.cluster.ok("mv", "-f", f"{self.top}/a", f"{self.top}/b")
        self.assertEqual(self.cluster.ok("cat", f"{self.top}/b").out, "a")
        self.cluster.run("mv", f"{self.top}/b", f"{self.top}/d", code=EXIT_CONFLICT)
        self.cluster.ok("mv", f"{self.top}/b", f"{self.top}/d/c")
        self.cluster.ok("mv", f"{self.top}/d", f"{self.top}/e")
        self.assertEqual(self.names("-R", self.top), [f"{self.top}/{n}" for n in ("e", "e/a", "e/b", "e/c")])

    def test_rm_and_the_trash(self):
        self.cluster.ok("mkdir", "-p", f"{self.top}/d/e")
        self.cluster.ok("touch", f"{self.top}/f", f"{self.top}/g")
        moved = self.cluster.ok("rm", f"{self.top}/f").out
        trash = re.fullmatch(r"Moved: '(.*)' to trash at: (/\.Trash/.*)\n", moved)
        self.assertEqual(trash[1], f"{self.top}/f")
        # The trash is nobody's, but no column is empty.
        self.assertEqual(len(self.lines("ls", "-d", "/.Trash")[0].split()), 8)
        self.cluster.ok("mv", trash[2], f"{self.top}/back")
        self.assertEqual(self.cluster.ok("rm", "-skipTrash", f"{self.top}/g").out, f"Deleted {self.top}/g\n")
        self.cluster.run("rm", f"{self.top}/d", code=EXIT_FAILURE)
        facts = self.cluster.ok("rm", "-r", "--json", f"{self.top}/d").json["removed"]
        self.assertEqual(facts[0]["path"], f"{self.top}/d")
        self.assertEqual(self.names(self.top), [f"{self.top}/back"])


class Small(Cli):
    def test_test(self):
        self.cluster.ok("touch", f"{self.top}/empty")
        self.cluster.ok("put", "-", f"{self.top}/full", stdin=b"x")
        answers = {"-e": (1, 1, 1, 0), "-d": (1, 0, 0, 0), "-f": (0, 1, 1, 0), "-z": (0, 1, 0, 0)}
        for flag, expected in answers.items():
            for name, yes in zip(("", "/empty", "/full", "/absent"), expected):
                result = self.cluster.run("test", flag, self.top + name)
                self.assertEqual((result.code, result.out, result.err), (0 if yes else 1, "", ""), (flag, name))
        self.cluster.run("test", self.top, code=EXIT_USAGE)

    def test_touch(self):
        path = f"{self.top}/t"
        self.cluster.ok("touch", "-c", path)
        self.cluster.run("test", "-e", path, code=1)
        self.cluster.ok("touch", path)
        self.cluster.ok("put", "-f", "-p", touch(f"{self.local}/t", b"x"), path)
        self.cluster.ok("touch", path)
        status = self.cluster.ok("stat", "--json", path).json["entries"][0]
        self.assertEqual(status["length"], 1)
        self.assertGreater(status["mtime"], "2024")

    def test_globs(self):
        for name in ("a1", "a2", "b1", ".hidden", "x[1]", "ä1"):
            self.cluster.ok("touch", f"{self.top}/{name}")
        self.cluster.ok("mkdir", f"{self.top}/d")
        self.cluster.ok("touch", f"{self.top}/d/a1")

        def matches(pattern):
            return [p.removeprefix(self.top + "/") for p in self.names("-d", f"{self.top}/{pattern}")]

        self.assertEqual(matches("a*"), ["a1", "a2"])
        self.assertEqual(matches("?1"), ["a1", "b1", "ä1"])
        self.assertEqual(matches("[ab]1"), ["a1", "b1"])
        self.assertEqual(matches("{b1,a2}"), ["a2", "b1"])
        self.assertEqual(matches("{d/a1,b?}"), ["b1", "d/a1"])
        self.assertEqual(matches("*/a*"), ["d/a1"])
        self.assertEqual(matches("x\\[1\\]"), ["x[1]"])
        self.assertEqual(matches("x[1]"), ["x[1]"])  # nothing matches, so it is a name
        self.assertNotIn(".hidden", matches("*"))
        self.assertEqual(matches(".h*"), [".hidden"])
        self.cluster.run("ls", f"{self.top}/z*", code=EXIT_NOT_FOUND)

    def test_cat_and_tail(self):
        content = os.urandom(3000)
        self.cluster.ok("put", "-", f"{self.top}/f", stdin=content)
        self.cluster.ok("put", "-", f"{self.top}/g", stdin=b"tail")
        self.assertEqual(self.cluster.ok("cat", f"{self.top}/f", f"{self.top}/g").raw, content + b"tail")
        self.assertEqual(self.cluster.ok("tail", f"{self.top}/f").raw, content[-1024:])
        self.assertEqual(self.cluster.ok("tail", f"{self.top}/g").raw, b"tail")

    def test_tail_follows_a_file_being_written(self):
        put = self.cluster.start("put", "-", f"{self.top}/log", stdin=subprocess.PIPE)
        put.stdin.write(b"first\n")
        put.stdin.flush()
        eventually(lambda: self.cluster.run("cat", f"{self.top}/log").raw == b"first\n", "the first line can be read")
        tail = self.cluster.start("tail", "-f", f"{self.top}/log")
        self.assertEqual(tail.stdout.readline(), b"first\n")
        put.stdin.write(b"second\n")
        put.stdin.close()
        self.assertEqual(tail.stdout.readline(), b"second\n")
        self.assertEqual(put.wait(60), EXIT_OK)
        tail.send_signal(signal.SIGINT)
        self.assertEqual(tail.wait(60), 130)
        for stream in (put.stdout, put.stderr, tail.stdout, tail.stderr):
            stream.close()

    def test_a_reader_that_goes_away_is_no_error(self):
        self.cluster.ok("put", "-", f"{self.top}/f", stdin=b"y\n" * MIB)
        cat = self.cluster.start("cat", f"{self.top}/f")
        self.assertEqual(cat.stdout.readline(), b"y\n")
        cat.stdout.close()
        self.assertEqual(cat.stderr.read(), b"")
        cat.stderr.close()
        self.assertEqual(cat.wait(60), -signal.SIGPIPE)

    def test_some_fail(self):
        self.cluster.ok("touch", f"{self.top}/there")
        result = self.cluster.run("ls", "-C", f"{self.top}/there", f"{self.top}/absent", code=EXIT_PARTIAL)
        self.assertEqual(result.out, f"{self.top}/there\n")
        self.one_line(result, "absent")

    def test_home_directory(self):
        self.cluster.ok("mkdir", "-p", ".")
        self.cluster.ok("touch", "relative")
        path, = self.names()
        self.assertRegex(path, r"^/user/[^/]+/relative$")
        self.cluster.ok("rm", "-skipTrash", "relative")


class Usage(Cli):
    def test_verbs(self):
        self.one_line(self.cluster.run("sl", code=EXIT_USAGE), "did you mean: picket ls")
        self.one_line(self.cluster.run("--nonsense", code=EXIT_USAGE), "picket help")
        self.one_line(self.cluster.run("ls", "--nonsense", code=EXIT_USAGE), "--nonsense", "picket help ls")
        self.one_line(self.cluster.run("put", "x", code=EXIT_USAGE))
        self.one_line(self.cluster.run("put", "-t", "0", "x", "/y", code=EXIT_USAGE))
        self.one_line(self.cluster.run("put", "--chunk-size=64X", "x", "/y", code=EXIT_USAGE), "64X")
        self.cluster.run(code=EXIT_USAGE)

    def test_help(self):
        overview = self.cluster.ok("help").out
        for verb in ("put", "get", "cat", "tail", "ls", "mkdir", "mv", "cp", "rm", "stat", "test", "touch", "du", "df",
                     "count", "checksum", "chunk", "admin", "dev", "help", "version"):
            self.assertIn(f"\n  {verb}", overview)
            self.assertIn(f"Usage: picket {verb}", self.cluster.ok("help", verb).out)
            self.assertIn(f"Usage: picket {verb}", self.cluster.ok(verb, "--help").out)
            self.assertIn(f"Usage: picket {verb}", self.cluster.ok(f"-{verb}", "--help").out)

    def test_version(self):
        self.assertRegex(self.cluster.ok("version").out, r"^picket \d+\.\d+\.\d+\n$")
        self.assertEqual(self.cluster.ok("--version").out, self.cluster.ok("version").out)
        self.assertLessEqual({"picket", "library"}, set(self.cluster.ok("--json", "version").json))

    def test_global_options_on_either_side(self):
        master = self.cluster.processes()["master"]["address"]
        before = self.cluster.ok("--json", "--master", master, "ls", self.top).out
        after = self.cluster.ok("ls", self.top, f"--master={master}", "--json").out
        self.assertEqual(json.loads(before), json.loads(after))
        self.assertIn(master, self.cluster.ok("ls", "-v", self.top).err)


if __name__ == "__main__":
    main()
