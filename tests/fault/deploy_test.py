"""What is shipped beside the programs says what the programs do."""

import os
import re
import subprocess
import tempfile
import unittest

from harness import CHUNKSERVER_PROGRAM, MASTER_PROGRAM, PICKET, main

DEPLOY = os.environ["PICKET_SOURCE_DIR"] + "/deploy"


def output(*command, **kwargs):
    return subprocess.run(command, check=True, capture_output=True, text=True, **kwargs).stdout


def read(name):
    with open(f"{DEPLOY}/{name}") as file:
        return file.read()


COMMANDS = re.findall(r"^  ([a-zA-Z]+)\b", output(PICKET, "help").split("Global options")[0], re.MULTILINE)


def options(command):
    text = output(PICKET, "help", command).split("Global:")[0]
    words = re.findall(r"^  (-\S+)", text, re.MULTILINE)
    return {option for word in words for option in word.split(",")} - {"--help"}


class Deploy(unittest.TestCase):
    def test_sample_configurations(self):
        """To renew them: picket-master --sample-config > deploy/config/master.toml, and so on."""
        self.assertEqual(read("config/master.toml"), output(MASTER_PROGRAM, "--sample-config"))
        self.assertEqual(read("config/chunkserver.toml"), output(CHUNKSERVER_PROGRAM, "--sample-config"))
        for program, name in ((MASTER_PROGRAM, "master"), (CHUNKSERVER_PROGRAM, "chunkserver")):
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                # Every key with its default is a good configuration.
                file.write(re.sub(r"^# (\w+ = )", r"\1", read(f"config/{name}.toml"), flags=re.MULTILINE)
                           .replace('dir = ""', 'dir = "/x"').replace('advertise = ""\n', ""))
                file.flush()
                output(program, "--config", file.name, "--check-config")

    def test_client_configuration(self):
        home = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, home)
        environment = {"HOME": home, "PATH": os.environ["PATH"], "PICKET_CONFIG": f"{DEPLOY}/config/client.toml"}
        result = subprocess.run([PICKET, "ls", "/"], env=environment, capture_output=True, text=True)
        self.assertIn(result.returncode, (0, 6), result.stderr)  # it was understood

    def test_manual_page(self):
        page = read("man/picket.1").replace("\\-", "-")
        for command in COMMANDS:
            self.assertRegex(page, rf"(?m)^\.B\w* \"?{command}\b|, \" {command}$", command)
            for option in options(command):
                if len(option) == 2 or not any(short in page for short in self.shorts(command, option)):
                    self.assertIn(option, page, f"{command} {option}")
        for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130):
            self.assertRegex(page, rf"(?m)^\.B {code}$")

    @staticmethod
    def shorts(command, option):
        text = output(PICKET, "help", command)
        line = next(line for line in text.splitlines() if re.search(rf"{option}\b", line))
        return re.findall(r"(?<!-)-\w\b", line)

    def test_manual_pages_are_well_formed(self):
        for name in os.listdir(f"{DEPLOY}/man"):
            try:
                result = subprocess.run(["man", "--warnings", "-l", f"{DEPLOY}/man/{name}"], capture_output=True, text=True)
            except FileNotFoundError:
                self.skipTest("no man here")
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)

    def test_completion(self):
        script = read("completion/picket")
        self.assertEqual(sorted(re.search(r'_picket_commands="(.*)"', script)[1].split()), sorted(COMMANDS))
        for command in COMMANDS:
            offered = output("bash", "-c", f"source {DEPLOY}/completion/picket; _picket_options {command}").split()
            self.assertEqual(options(command) - set(offered), set(), command)
        completed = output("bash", "-c", f"source {DEPLOY}/completion/picket; COMP_WORDS=(picket ch) COMP_CWORD=1; "
                                         "_picket; echo ${COMPREPLY[@]}")
        self.assertEqual(completed.split(), ["checksum", "chunk"])


if __name__ == "__main__":
    main()
