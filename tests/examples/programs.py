"""The examples, run as a user runs them.

    python3 programs.py MINIMAL TRAIN_GPT CLASS

MINIMAL and TRAIN_GPT are the programs, CLASS is one of the classes below (one ctest test each)."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

MINIMAL, TRAIN_GPT = sys.argv[1], sys.argv[2]
TINY = ["--layers", "3", "--heads", "2", "--channels", "16", "--sequence", "16", "--batch", "2", "--threads", "2"]
ROW = {"strategy", "budget_bytes", "peak_predicted_bytes", "peak_measured_bytes", "step_seconds", "tokens_per_second", "recomputed_fraction", "loss",
       "bitwise_equal", "arena_predicted_bytes", "arena_measured_bytes"}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.text = self.path / "text.txt"
        self.text.write_bytes(bytes((k * k * 7 + k // 3) % 256 for k in range(4000)))

    def gpt(self, *arguments, status=0, tiny=True, text=True):
        command = [TRAIN_GPT, *(TINY if tiny else []), *(["--text", str(self.text)] if text else []), *map(str, arguments)]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode, status, f"{command}\n{run.stdout}\n{run.stderr}")
        return run

    def refused(self, *arguments, says, status=1, **more):
        """One line on standard error with all of `says` in it."""
        run = self.gpt(*arguments, status=status, **more)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        for part in says:
            self.assertIn(part, run.stderr)
        self.assertEqual(run.stdout, "")
        return run.stderr


class Minimal(Case):
    def test_runs(self):
        run = subprocess.run([MINIMAL], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("loss and gradients of all steps bitwise equal: yes", run.stdout)
        numbers = re.findall(r"arena predicted (\d+), measured (\d+) bytes; (\d+) of", run.stdout)
        self.assertTrue(numbers)
        self.assertTrue(all(predicted == measured for predicted, measured, _ in numbers))
        half = len(numbers) // 2
        self.assertTrue(all(int(again) == 0 for _, _, again in numbers[:half]), "all is stored")
        self.assertTrue(all(int(again) > 0 for _, _, again in numbers[half:]), "half is not enough to store all")
        self.assertLessEqual(2 * int(numbers[-1][1]), int(numbers[0][1]))
        losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", run.stdout)]
        self.assertLess(losses[half - 1], 0.5 * losses[0])


class Compare(Case):
    def test_table_json_and_picture(self):
        run = self.gpt("--compare", "--steps", 4, "--dropout", 0.1, f"--json={self.path}/out.json", "--svg", self.path / "svg")
        self.assertRegex(run.stdout, r"strategy +budget +peak predicted +peak measured +of store_all +recomputed +tokens/s +loss +bitwise equal")
        out = json.loads((self.path / "out.json").read_text())
        rows = {row["strategy"]: row for row in out["rows"]}
        self.assertEqual({"store_all", "every_segment", "sqrt", "uniform:2", "block:3", "full", "selective", "auto"}, set(rows))
        self.assertEqual(out["config"]["layers"], 3)
        for row in out["rows"]:
            self.assertLessEqual(ROW, set(row))
            self.assertTrue(row["bitwise_equal"], row)
            self.assertEqual(row["peak_predicted_bytes"], row["peak_measured_bytes"], row)
            self.assertEqual(row["arena_predicted_bytes"], row["arena_measured_bytes"], row)
            self.assertEqual(row["loss"], out["rows"][0]["loss"])
            if row["budget_bytes"]:
                self.assertLessEqual(row["arena_measured_bytes"], row["budget_bytes"])
        self.assertEqual(rows["store_all"]["recompute_count"], 0)
        self.assertEqual(rows["store_all"]["recomputed_fraction"], 0)
        # Five segments; each is run again once by every_segment, and by full as often as there are segments behind it.
        self.assertLess(rows["every_segment"]["peak_measured_bytes"], rows["store_all"]["peak_measured_bytes"])
        self.assertLessEqual(rows["every_segment"]["recompute_count"], 5)
        self.assertGreater(rows["full"]["recompute_count"], rows["every_segment"]["recompute_count"])
        svg = xml.etree.ElementTree.parse(self.path / "svg" / "timeline.svg").getroot()
        titles = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}text") if t.get("class") == "title"]
        self.assertEqual([title.split(",")[0] for title in titles], [row["strategy"] for row in out["rows"]])

    def test_chosen_rows_and_json_alone_on_standard_output(self):
        run = self.gpt("--compare", "--steps", 3, "--accumulation", 2, "--strategy", "sqrt", "--strategy", "uniform:2", "--strategy", "selective",
                       "--keep", "block/qkv", "--json")
        out = json.loads(run.stdout)
        self.assertEqual([row["strategy"] for row in out["rows"]], ["store_all", "sqrt", "uniform:2", "selective"])
        self.assertTrue(all(row["bitwise_equal"] for row in out["rows"]))
        self.assertIn("bitwise equal", run.stderr)

    def test_sources_are_the_default_text(self):
        out = json.loads(self.gpt("--steps", 1, "--json", text=False).stdout)
        self.assertGreater(out["config"]["text_bytes"], 100000)


class Save(Case):
    def train(self, steps, save, *more):
        self.gpt("--steps", steps, "--save", self.path / save, "--dropout", 0.1, "--accumulation", 2, *more)
        return (self.path / save).read_bytes()

    def test_six_steps_are_three_and_three(self):
        whole = self.train(6, "whole", "--strategy", "store_all")
        self.train(3, "half")
        # What is resumed may run under another strategy, budget and number of threads.
        for more in [], ["--strategy", "full"], ["--strategy", "every_segment", "--threads", "1"]:
            more = [x for x in more if x not in ("--threads", "1")]
            self.assertEqual(self.train(3, "rest", "--resume", self.path / "half", *more), whole)
        self.assertNotEqual(self.train(5, "other"), whole)

    def test_save_every(self):
        self.gpt("--steps", 5, "--save", self.path / "a", "--save-every", 2)
        self.gpt("--steps", 5, "--save", self.path / "b")
        self.assertEqual((self.path / "a").read_bytes(), (self.path / "b").read_bytes())
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), ["a", "b", "text.txt"], "no partial file is left")

    def test_files_that_are_refused(self):
        good = self.train(2, "good")
        bad = self.path / "bad"

        def refuse(data, *says, more=()):
            bad.write_bytes(data)
            self.refused("--steps", 1, "--dropout", 0.1, "--accumulation", 2, "--resume", bad, *more, says=[f"save file '{bad}': ", *says])

        refuse(b"", "not a save file")
        refuse(b"something else altogether" * 40, "not a save file")
        refuse(good[:40], "truncated")
        refuse(good[:-1], "truncated")
        refuse(good + b"x", "damaged or truncated")
        refuse(good[:8] + b"\x09" + good[9:], "version 9", "expected 1")
        for place in (17, 60, len(good) // 2, len(good) - 9, len(good) - 1):
            refuse(good[:place] + bytes([good[place] ^ 1]) + good[place + 1:], "damaged")
        self.refused("--resume", self.path / "nowhere", says=["nowhere", "No such file"])
        self.refused("--resume", self.path, says=[f"save file '{self.path}'"])

    def test_another_configuration_is_refused(self):
        self.gpt("--steps", 1, "--save", self.path / "file")
        for option, value, says in [("--layers", 4, "--layers is 3 there and 4 here"), ("--heads", 4, "--heads is 2 there and 4 here"),
                                    ("--channels", 32, "--channels is 16"), ("--sequence", 8, "--sequence is 16"), ("--batch", 3, "--batch is 2"),
                                    ("--accumulation", 2, "--accumulation is 1"), ("--dropout", 0.5, "--dropout is 0 there and 0.5 here"),
                                    ("--seed", 2, "--seed is 1"), ("--learning-rate", 0.5, "--learning-rate is 0.001"),
                                    ("--weight-decay", 0, "--weight-decay is 0.1"), ("--max-norm", 0, "--max-norm is 1"),
                                    ("--attention", "plain", "--attention is tiled there and plain here")]:
            tiny = [x for k, x in enumerate(TINY) if option not in (x, TINY[k - 1] if k else None)]
            self.refused(*tiny, option, value, "--steps", 1, "--resume", self.path / "file", tiny=False,
                         says=[f"save file '{self.path}/file': of another configuration: {says}"])
        self.text.write_bytes(self.text.read_bytes()[::-1])
        self.refused("--steps", 1, "--resume", self.path / "file", says=["of another text"])

    def test_saving_where_it_cannot_be(self):
        run = self.gpt("--steps", 1, "--save", self.path / "no" / "file", status=1)
        self.assertIn(f"save file '{self.path}/no/file", run.stderr)


class BadInput(Case):
    def test_options(self):
        for arguments, says in [
                (["--frobnicate"], ["unknown option '--frobnicate'"]),
                (["extra"], ["unknown option 'extra'"]),
                (["--steps"], ["--steps", "no value"]),
                (["--steps", "abc"], ["--steps is 'abc', expected a whole number from 1"]),
                (["--steps", "-1"], ["--steps is '-1'"]),
                (["--steps", "1.5"], ["--steps is '1.5'"]),
                (["--steps", "0"], ["--steps is '0'"]),
                (["--steps", "1", "--steps", "2"], ["--steps is given twice"]),
                (["--seed", "99999999999999999999"], ["--seed is '99999999999999999999'"]),
                (["--dropout", "1"], ["--dropout is '1'", "from 0 to"]),
                (["--dropout", "nan"], ["--dropout is 'nan'"]),
                (["--learning-rate", ""], ["--learning-rate is ''"]),
                (["--attention", "sparse"], ["--attention is 'sparse', expected plain or tiled"]),
                (["--budget", "12 MiB"], ["--budget is '12 MiB'", "expected a size"]),
                (["--budget", "12MB"], ["--budget is '12MB'"]),
                (["--budget", "0"], ["--budget is '0'"]),
                (["--budget", "0x10"], ["--budget is '0x10'"]),
                (["--budget", "1.5"], ["--budget is '1.5'"]),
                (["--strategy", "magic"], ["--strategy is 'magic'", "store_all", "selective"]),
                (["--strategy", "uniform"], ["--strategy is 'uniform'"]),
                (["--strategy", "sqrt:2"], ["--strategy is 'sqrt:2'"]),
                (["--strategy", "sqrt", "--strategy", "full"], ["--strategy is given 2 times"]),
                (["--budget", "1GiB", "--budget", "2GiB"], ["--budget is given 2 times"]),
                (["--strategy", "selective"], ["expected --keep PATTERN or --recompute PATTERN"]),
                (["--keep", "block/qkv"], ["--keep 'block/qkv'", "selective"]),
                (["--strategy", "selective", "--keep", "block/nothing"], ["block/nothing"]),
                (["--strategy", "selective", "--keep", "block/qkv", "--recompute", "block/q*"], ["qkv"]),
                (["--save-every", "2"], ["--save-every without --save"]),
                (["--compare", "--save", "x"], ["--save with --compare"]),
                (["--compare=1"], ["--compare is '1', expected no value"]),
                (["--json="], ["--json is ''"]),
                (["--compare", "--strategy", "full", "--budget", "1GiB"], ["--budget with --compare"])]:
            with self.subTest(arguments=arguments):
                self.refused(*arguments, says=says)
        self.refused("--heads", "5", "--channels", "16", tiny=False, says=["--heads is 5, expected a divisor of --channels (16)"])

    def test_text(self):
        missing, empty, short = self.path / "missing", self.path / "empty", self.path / "short"
        empty.write_bytes(b"")
        short.write_bytes(b"x" * 16)
        self.refused("--text", missing, text=False, says=[f"text file '{missing}'", "No such file"])
        self.refused("--text", self.path, text=False, says=[f"text file '{self.path}'", "directory"])
        self.refused("--text", empty, text=False, says=[f"text file '{empty}' is empty", "17"])
        self.refused("--text", short, text=False, says=[f"text file '{short}' has 16 bytes, expected at least 17"])
        short.write_bytes(b"x" * 17)
        self.gpt("--text", short, "--steps", 1, text=False)

    def test_places_that_cannot_be_written(self):
        self.assertIn("--svg", self.gpt("--steps", 1, "--svg", self.path / "no" / "where", status=1).stderr)
        self.assertIn("--json", self.gpt("--steps", 1, f"--json={self.path}/no/where", status=1).stderr)

    def test_help(self):
        text = self.gpt("--help").stdout
        for option in ("--text", "--budget", "--strategy", "--compare", "--save", "--resume"):
            self.assertIn(option, text)


class Budget(Case):
    def smallest(self, *arguments):
        says = self.refused("--steps", 1, "--budget", 1000, *arguments, status=2, says=["--budget is 1000 bytes", "smallest budget that works"])
        return int(re.search(r"the smallest budget that works is (\d+) bytes", says).group(1))

    def test_the_smallest_budget_works_and_less_does_not(self):
        for arguments in [], ["--attention", "plain"], ["--strategy", "every_segment"], ["--strategy", "store_all"]:
            with self.subTest(arguments=arguments):
                smallest = self.smallest(*arguments)
                out = json.loads(self.gpt("--steps", 4, "--budget", smallest, "--json", *arguments).stdout)
                self.assertLessEqual(out["arena_measured_bytes"], smallest)
                self.assertEqual(out["arena_measured_bytes"], out["arena_predicted_bytes"])
                self.assertEqual(out["peak_measured_bytes"], out["peak_predicted_bytes"])
                for less in (1, 256):
                    says = self.refused("--steps", 1, "--budget", smallest - less, *arguments, status=2, says=[f"--budget is {smallest - less} bytes"])
                    self.assertIn(f"the smallest budget that works is {smallest} bytes", says)

    def test_an_infeasible_row_ends_the_comparison(self):
        run = self.gpt("--compare", "--steps", 1, "--strategy", "auto", "--budget", 1000, status=2)
        self.assertIn("smallest budget that works", run.stderr)

    def test_budgets_do_not_change_what_is_learnt(self):
        smallest = self.smallest()
        self.gpt("--steps", 4, "--dropout", 0.2, "--save", self.path / "all")
        self.gpt("--steps", 4, "--dropout", 0.2, "--save", self.path / "little", "--budget", smallest)
        self.assertEqual((self.path / "all").read_bytes(), (self.path / "little").read_bytes())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
