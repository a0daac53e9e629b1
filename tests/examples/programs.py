"""The examples, run as a user runs them.

    python3 programs.py MINIMAL TRAIN_GPT CLASS

MINIMAL and TRAIN_GPT are the programs, CLASS is one of the classes below (one ctest test each)."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

MINIMAL, TRAIN_GPT = sys.argv[1], sys.argv[2]
TINY = ["--layers", "3", "--heads", "2", "--channels", "16", "--sequence", "16", "--batch", "2", "--threads", "2"]
CUDA = [*TINY[:-2], "--device", "cuda"]
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


class Plan(Case):
    CHAIN = {"input": {"bytes": 100}, "segments": [{"name": "a", "forward_seconds": 1, "backward_seconds": 1, "output_bytes": 100,
                                                    "slots": [{"name": "s", "bytes": 1000, "cost_seconds": 0.5}]}]}

    def plan(self, *arguments, status=0):
        run = subprocess.run([pathlib.Path(MINIMAL).with_name("plan"), *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run

    def test_own_chain(self):
        self.assertIn("optimal in class sigma", self.plan().stdout)

    def test_chain_of_a_file(self):
        chain = self.path / "chain.json"
        chain.write_text(json.dumps(self.CHAIN))
        self.assertIn("optimal in class sigma", self.plan(chain).stdout)
        self.assertIn("budget 5000:", self.plan(chain, 5000).stdout)
        self.assertIn("smallest budget", self.plan(chain, 1, status=1).stderr)
        for bytes_text in "", "0", "-5", " -5", " 5", "1e9", "abc", "99999999999999999999":
            self.assertIn(f"BYTES is '{bytes_text}'", self.plan(chain, bytes_text, status=1).stderr)
        self.assertIn("'more'", self.plan(chain, 5000, "more", status=1).stderr)

    def test_files_that_are_no_chain(self):
        for file in self.path, self.path / "missing":
            self.assertIn(f"cannot read {file}", self.plan(file, status=1).stderr)
        self.assertIn(str(self.text), self.plan(self.text, status=1).stderr)


class Compare(Case):
    def test_table_json_and_picture(self):
        run = self.gpt("--compare", "--steps", 4, "--dropout", 0.1, f"--json={self.path}/out.json", "--svg", self.path / "svg")
        self.assertRegex(run.stdout, r"strategy +budget +peak predicted +peak measured +of store_all +recomputed +time +predicted +tokens/s +loss +bitwise equal")
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

    def test_rows_over_budgets(self):
        run = self.gpt("--compare", "--steps", 12, "--budget-count", 4, "--strategy", "every_segment", "--strategy", "auto", "--json")
        rows = json.loads(run.stdout)["rows"]
        self.assertEqual([row["strategy"] for row in rows], ["store_all", "every_segment"] + 5 * ["auto"])
        autos = rows[2:6]
        self.assertEqual([row["budget_bytes"] for row in autos], sorted(row["budget_bytes"] for row in autos))
        self.assertEqual(autos[-1]["recompute_count"], 0)
        self.assertEqual(rows[6]["budget_bytes"], rows[1]["arena_measured_bytes"])
        for row in rows:
            self.assertTrue(row["bitwise_equal"] and row["peaks_as_predicted"], row)
            # Step by step against store_all's; the first three are not timed.
            ratios = [mine / all for mine, all in zip(row["each_step_cpu_seconds"][3:], rows[0]["each_step_cpu_seconds"][3:])]
            self.assertAlmostEqual(row["time_ratio"] / statistics.median(ratios), 1, delta=1e-6)
            self.assertAlmostEqual(row["step_seconds"] / statistics.median(row["each_step_seconds"][3:]), 1, delta=1e-6)
            self.assertGreaterEqual(row["time_ratio_predicted"], 1)

    def test_sources_are_the_default_text(self):
        out = json.loads(self.gpt("--steps", 1, "--json", text=False).stdout)
        self.assertGreater(out["config"]["text_bytes"], 100000)


class Save(Case):
    def train(self, steps, save, *more, tiny=TINY):
        self.gpt(*tiny, "--steps", steps, "--save", self.path / save, "--dropout", 0.1, "--accumulation", 2, *more, tiny=False)
        return (self.path / save).read_bytes()

    def test_six_steps_are_three_and_three(self):
        whole = self.train(6, "whole", "--strategy", "store_all")
        self.train(3, "half")
        # What is resumed may run under another strategy, budget and number of threads.
        for more in [], ["--strategy", "full"], ["--strategy", "every_segment", "--threads", "1"]:
            tiny = TINY if "--threads" not in more else TINY[:-2]
            self.assertEqual(self.train(3, "rest", "--resume", self.path / "half", *more, tiny=tiny), whole)
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
        refuse(good[:8] + b"\x09" + good[9:], "version 9", "expected 2")
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
        for place in self.path / "no" / "file", self.path:
            self.refused("--steps", 1, "--save", place, says=[f"save file '{place}'"])  # before it trains


class Device(Case):
    """On "cuda": the double, or a GPU (CKPT_PLUGIN_PATH says which)."""

    def train(self, save, *more, steps=6):
        run = self.gpt(*CUDA, "--steps", steps, "--save", self.path / save, "--dropout", 0.1, "--accumulation", 2, "--json", *more, tiny=False)
        out = json.loads(run.stdout)
        self.assertEqual(out["config"]["device"], "cuda")
        self.assertEqual(out["peak_measured_bytes"], out["peak_predicted_bytes"])
        return out, (self.path / save).read_bytes()

    def test_losses_are_the_cpus(self):
        losses = []
        for arguments in [*TINY], [*CUDA], [*CUDA, "--dtype", "bfloat16"], [*CUDA, "--dtype", "float16"]:
            out = json.loads(self.gpt(*arguments, "--steps", 4, "--dropout", 0.1, "--json", tiny=False).stdout)
            losses.append(out["loss"])
        for loss, tolerance in zip(losses[1:], (1e-5, 2e-3, 1e-3)):
            self.assertAlmostEqual(loss / losses[0], 1, delta=tolerance)
        self.assertEqual(len(set(losses)), 4, "each type has roundings of its own")

    def test_graphs_resuming_and_budgets_change_nothing(self):
        for dtype in "float32", "bfloat16":
            with self.subTest(dtype=dtype):
                out, whole = self.train("whole", "--dtype", dtype)
                self.assertEqual(out["config"]["dtype"], dtype)
                self.assertEqual(self.train("graph", "--dtype", dtype, "--graph")[1], whole)
                self.assertEqual(self.train("graph", "--dtype", dtype, "--graph", "--budget", out["arena_measured_bytes"] * 7 // 10)[1], whole)
                self.train("half", "--dtype", dtype, steps=3)
                self.assertEqual(self.train("rest", "--dtype", dtype, "--resume", self.path / "half", "--strategy", "full", steps=3)[1], whole)
        self.refused(*CUDA, "--steps", 1, "--dropout", 0.1, "--accumulation", 2, "--resume", self.path / "half", tiny=False,
                     says=["of another configuration: --dtype is bfloat16 there and float32 here"])

    def test_compare(self):
        for dtype in "float32", "bfloat16":
            out = json.loads(self.gpt(*CUDA, "--dtype", dtype, "--compare", "--steps", 4, "--dropout", 0.1, "--json", tiny=False).stdout)
            for row in out["rows"]:
                self.assertTrue(row["bitwise_equal"] and row["peaks_as_predicted"], row)
                self.assertEqual(row["loss"], out["rows"][0]["loss"])

    @unittest.skipUnless("CKPT_TEST_NVTX" in os.environ, "no recorder of NVTX ranges")
    def test_profilers_see_the_segments(self):
        recorder = {"NVTX_INJECTION64_PATH": os.environ["CKPT_TEST_NVTX"], "NVTX_RECORDER_FILE": str(self.path / "ranges")}
        with unittest.mock.patch.dict(os.environ, recorder):
            self.gpt(*CUDA, "--steps", 1, "--strategy", "every_segment", tiny=False)
        forward = ["embedding", "block", "block", "block", "head"]
        # Each segment is made again before its backward, but for the embedding: its backward reads nothing of its own.
        backward = ["head (recompute)", "head (backward)", *3 * ["block (recompute)", "block (backward)"], "embedding (backward)"]
        self.assertEqual((self.path / "ranges").read_text().splitlines(), forward + backward)

    def test_what_is_not_there(self):
        self.refused("--device", "cuda:7", "--steps", 1, tiny=False, says=["--device: ", "7"])


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
                (["--max-norm", "1e-300"], ["--max-norm is 1e-300", "float32"]),
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
                (["--device", ""], ["--device is ''"]),
                (["--dtype", "int8"], ["--dtype is 'int8', expected float32, bfloat16 or float16"]),
                (["--dtype", "bfloat16"], ["--dtype is bfloat16, expected float32 with --device cpu"]),
                (["--graph"], ["--graph with --device cpu"]),
                (["--compare", "--save", "x"], ["--save with --compare"]),
                (["--compare=1"], ["--compare is '1', expected no value"]),
                (["--json="], ["--json is ''"]),
                (["--compare", "--strategy", "full", "--budget", "1GiB"], ["--budget with --compare"]),
                (["--budget-count", "4"], ["--budget-count is 4", "--compare"]),
                (["--compare", "--budget-count", "1"], ["--budget-count is '1'"]),
                (["--compare", "--budget-count", "4", "--budget", "1GiB"], ["--budget with --budget-count"]),
                (["--compare", "--budget-count", "4", "--strategy", "full"], ["--budget-count is for rows of auto"])]:
            with self.subTest(arguments=arguments):
                self.refused(*arguments, says=says)
        self.refused("--heads", "5", "--channels", "16", tiny=False, says=["--heads is 5, expected a divisor of --channels (16)"])

    def test_options_of_a_gpu(self):
        self.refused("--device", "gpu", says=["--device: ", "gpu"], tiny=False)
        for arguments, says in [(["--graph", "--compare"], ["--graph with --compare"]), (["--graph", "--svg", "x"], ["--graph with --svg"]),
                                (["--graph", "--steps", "3"], ["--graph with --steps 3: expected at least 4"]),
                                (["--threads", "2"], ["--threads is 2", "--device cpu"])]:
            with self.subTest(arguments=arguments):
                self.refused("--device", "cuda", *arguments, says=says, tiny=False)

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
        for place in self.path / "no" / "where", self.text / "where":
            says = "No such file" if place.parent != self.text else "Not a directory"
            self.refused("--steps", 1, "--svg", place, says=[f"--svg: directory '{place}': {says}"])  # before it trains
            self.refused("--steps", 1, f"--json={place}", says=[f"--json: file '{place}': {says}"])
        self.refused("--steps", 1, f"--json={self.path}", says=["--json: ", "directory"])
        self.gpt("--steps", 1, "--json=/dev/null")
        self.gpt("--steps", 1, "--svg", f"{self.path}/new/")
        self.assertTrue((self.path / "new" / "timeline.svg").exists())

    def test_help(self):
        text = self.gpt("--help").stdout
        for option in ("--text", "--budget", "--strategy", "--compare", "--save", "--resume"):
            self.assertIn(option, text)


class Budget(Case):
    def smallest(self, *arguments):
        found = set()
        for budget in 1, 1000:
            says = self.refused("--steps", 1, "--budget", budget, *arguments, status=2, says=[f"--budget is {budget} bytes", "smallest budget that works"])
            found.add(int(re.search(r"the smallest budget that works is (\d+) bytes", says).group(1)))
        self.assertEqual(len(found), 1)
        return found.pop()

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
