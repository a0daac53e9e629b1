"""The command `ckpt` as a user runs it: outputs, exit statuses, and the line for each kind of bad input.

    command.py PATH_OF_CKPT [CLASS]
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

CKPT = str(pathlib.Path(sys.argv.pop(1)).resolve())

EXAMPLE = {
    "input": {"bytes": 4096, "memory": "arena", "grad": "none"},
    "output": {"memory": "arena", "grad": "caller"},
    "segments": [
        {"name": "block%d" % i, "forward_seconds": 1.0, "backward_seconds": 2.0, "output_bytes": 4096,
         "slots": [{"name": "qkv", "bytes": 12288, "cost_seconds": 0.3, "reads": [], "flags": ["transient"]},
                   {"name": "act", "bytes": 16384, "cost_seconds": 0.1, "reads": ["qkv"]}],
         "output_reads": ["act"], "forward_scratch_bytes": 0, "backward_scratch_bytes": 0, "backward_reads": ["input"]}
        for i in range(4)]}

FIELDS = ["status", "class", "budget_bytes", "minimum_budget_bytes", "peak_bytes", "arena_bytes", "held_bytes", "forward_seconds",
          "backward_seconds", "recompute_seconds", "class_gap_seconds", "universal_gap_seconds", "plan_seconds", "hash", "actions"]

# Stages of the planner's core, each a whole segment here: budget, boundaries, saved + output, seconds, and the overhead that a class
# of stages needs (rotor, sigma). The command's machine keeps output and saved bytes apart, so it needs no more.
GOLDEN = [
    (71, [15, 14, 16, 17, 10], [16, 16, 18, 12], [2, 5, 2, 5], 16, 9),
    (37, [18, 7, 10, 7, 6], [7, 11, 9, 7], [3, 2, 4, 3], 9, 8),
    (46, [3, 3, 19, 4, 9], [5, 19, 4, 11], [1, 4, 1, 3], 11, 6),
    (62, [4, 11, 4, 13, 16, 12], [11, 6, 14, 17, 13], [1, 1, 5, 4, 4], 18, 9),
    (85, [11, 19, 12, 19, 8, 19], [19, 13, 21, 8, 19], [4, 2, 2, 3, 5], 8, 6),
    (51, [18, 14, 6, 16, 8, 14], [14, 8, 17, 10, 15], [5, 3, 5, 5, 4], 39, 31),
    (57, [11, 4, 12, 7, 11, 7, 15, 9], [6, 12, 8, 11, 7, 17, 10], [1, 3, 5, 1, 4, 3, 2], 21, 13)]


def golden_chain(boundaries, totals, seconds):
    return {"input": {"bytes": boundaries[0], "memory": "caller", "grad": "arena"}, "output": {"grad": "arena"},
            "segments": [{"name": f"s{i}", "forward_seconds": seconds[i], "backward_seconds": 1, "output_bytes": boundaries[i + 1],
                          "saved_bytes": totals[i] - boundaries[i + 1]} for i in range(len(totals))]}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else
                         (content if isinstance(content, str) else json.dumps(content)).encode())
        return name

    def run_ckpt(self, *arguments):
        return subprocess.run([CKPT, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)

    def good(self, *arguments):
        done = self.run_ckpt(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def object(self, *arguments):
        return json.loads(self.good(*arguments, "--json"))

    def refused(self, line, *arguments, status=1):
        """One line on stderr that matches, nothing on stdout."""
        done = self.run_ckpt(*arguments)
        self.assertEqual(done.returncode, status, (arguments, done.stderr))
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, line)


class Plan(Case):
    def test_fields(self):
        self.file("c.json", EXAMPLE)
        for arguments in ([], ["--budget", "64KiB"], ["--strategy", "sqrt"], ["--class", "rotor"]):
            plan = self.object("plan", "c.json", *arguments)
            self.assertEqual(list(plan), FIELDS)
            self.assertIn(plan["status"], ("OPTIMAL", "GAP"))
            self.assertRegex(plan["hash"], "^0x[0-9a-f]{16}$")
            self.assertEqual(plan["forward_seconds"], 4)
            self.assertEqual(plan["backward_seconds"], 8)
            self.assertLessEqual(plan["peak_bytes"], plan["arena_bytes"])
            self.assertLessEqual(plan["held_bytes"], plan["peak_bytes"])
            self.assertLessEqual(plan["minimum_budget_bytes"], plan["arena_bytes"])
            self.assertEqual([a[1] for a in plan["actions"] if a[0] == "backward"], [3, 2, 1, 0])

    def test_what_fits_makes_nothing_twice(self):
        self.file("c.json", EXAMPLE)
        plan = self.object("plan", "c.json", "--budget", "1GiB")
        self.assertEqual((plan["status"], plan["class"], plan["recompute_seconds"]), ("OPTIMAL", "sigma+s+w", 0))
        self.assertEqual(plan["budget_bytes"], 2 ** 30)
        # Held: input, four outputs of which the last is not read again, four slots "act".
        self.assertEqual(plan["held_bytes"], 4 * 4096 + 4 * 16384)

    def test_minimum_is_the_edge(self):
        self.file("c.json", EXAMPLE)
        minimum = self.object("plan", "c.json")["minimum_budget_bytes"]
        plan = self.object("plan", "c.json", "--budget", minimum)
        self.assertEqual(plan["arena_bytes"], minimum)
        done = self.run_ckpt("plan", "c.json", "--budget", minimum - 1, "--json")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(json.loads(done.stdout), {"status": "INFEASIBLE", "class": "sigma+s+w", "budget_bytes": minimum - 1, "minimum_budget_bytes": minimum})
        self.assertEqual(done.stderr.count("\n"), 1)
        self.refused(rf"^ckpt: c.json: --budget is {minimum - 1} bytes, expected at least {minimum}, ", "plan", "c.json", "--budget", minimum - 1, status=2)
        self.refused(r"the smallest budget that works with strategy store_all$", "plan", "c.json", "--budget", "1", "--strategy", "store_all", status=2)

    def test_what_is_printed_may_be_typed(self):
        """A size in MiB with two digits is no less than the bytes beside it."""
        segment = '{"name": "%d", "forward_seconds": 1, "backward_seconds": 2, "output_bytes": 3015841, "saved_bytes": 12345677}'
        self.file("c.json", '{"input": {"bytes": 1234567}, "segments": [%s]}' % ", ".join(segment % k for k in range(5)))
        text = self.run_ckpt("plan", "c.json").stdout
        self.assertRegex(text, r"(?m)^status +OPTIMAL, class [a-z+]+, strategy auto: store_all$")
        size = re.search(r"(?m)^minimum +([0-9.]+) MiB \((\d+)\)$", text)
        self.assertGreaterEqual(float(size.group(1)) * 2**20, int(size.group(2)))
        self.assertEqual(self.run_ckpt("plan", "c.json", "--budget", size.group(1) + "MiB").returncode, 0)
        for line in self.run_ckpt("plan", "c.json", "--curve").stdout.splitlines()[1:]:
            self.assertEqual(self.run_ckpt("plan", "c.json", "--budget", line.split()[0] + "MiB").returncode, 0, line)
        self.assertRegex(self.run_ckpt("plan", "c.json", "--strategy", "sqrt").stdout, r"(?m)^status +GAP, strategy sqrt$")

    def test_sizes(self):
        self.file("c.json", EXAMPLE)
        for text, size in (("65536", 65536), ("64KiB", 65536), ("0.0625MiB", 65536), ("65536B", 65536), ("1.5MiB", 1572864), ("2GiB", 2 ** 31), ("1TiB", 2 ** 40)):
            self.assertEqual(self.object("plan", "c.json", "--budget", text)["budget_bytes"], size)
        for text in ("64kb", "KiB", "", "1e9", "0x10", "1.2.3KiB", "9223372036854775808", "9000000000GiB", "NaN", "64 KiB"):
            self.refused(rf"^ckpt: --budget is '{re.escape(text)}', expected a size such as 4096, 512MiB or 1.5GiB", "plan", "c.json", f"--budget={text}" if text else "--budget=")if text else None
        self.refused("^ckpt: --budget is '-5'", "plan", "c.json", "--budget=-5")
        self.refused("^ckpt: --budget is 0, expected at least 1 byte", "plan", "c.json", "--budget", "0")

    def test_alignment(self):
        chain = copy.deepcopy(EXAMPLE)
        chain["input"]["bytes"] = 1
        self.file("c.json", chain)
        peaks = [self.object("plan", "c.json", "--alignment", a)["peak_bytes"] for a in (1, 256, 4096)]
        self.assertEqual(self.object("plan", "c.json")["peak_bytes"], peaks[1])
        self.assertEqual([p - peaks[0] for p in peaks], [0, 255, 4095])
        self.refused("alignment_bytes is 3, expected a power of two", "plan", "c.json", "--alignment", "3")

    def test_same_answer_twice(self):
        self.file("c.json", EXAMPLE)
        one, two = (self.object("plan", "c.json", "--budget", "64KiB") for _ in range(2))
        del one["plan_seconds"], two["plan_seconds"]
        self.assertEqual(one, two)

    def test_curve(self):
        self.file("c.json", EXAMPLE)
        curve = self.object("plan", "c.json", "--curve")["curve"]
        self.assertEqual(curve[0]["budget_bytes"], self.object("plan", "c.json")["minimum_budget_bytes"])
        self.assertEqual(curve[-1]["recompute_seconds"], 0)
        for a, b in zip(curve, curve[1:]):
            self.assertLess(a["budget_bytes"], b["budget_bytes"])
            self.assertGreater(a["seconds"], b["seconds"])
        self.assertEqual(len(self.object("plan", "c.json", "--curve", "--points", "2")["curve"]), 2)
        pipeline = self.object("plan", "c.json", "--curve", "--in-flight", "3")["curve"]
        self.assertEqual(pipeline[0]["budget_bytes"], self.object("plan", "c.json", "--in-flight", "3")["minimum_budget_bytes"])
        self.assertEqual(pipeline[-1]["recompute_seconds"], 0)
        self.assertEqual(len(self.good("plan", "c.json", "--curve").splitlines()), len(curve) + 1)
        self.refused("excludes", "plan", "c.json", "--curve", "--budget", "1GiB")

    def test_explain(self):
        self.file("c.json", EXAMPLE)
        plan = self.object("plan", "c.json", "--budget", "64KiB", "--explain")
        self.assertEqual(list(plan), FIELDS + ["explanations"])
        names = [e["name"] for e in plan["explanations"]]
        self.assertEqual(names, [f"block{i}/{part}" for i in range(4) for part in ("qkv", "act", "output")] + ["input (boundary 0)"])
        text = self.good("plan", "c.json", "--budget", "64KiB", "--explain")
        self.assertEqual(len([line for line in text.splitlines() if re.match("(keep|drop)  ", line)]), len(names))

    def test_explain_marked_slots(self):
        chain = copy.deepcopy(EXAMPLE)
        chain["segments"][1]["slots"][1]["flags"] = ["recompute"]
        chain["segments"][2]["slots"][0]["flags"] = ["keep"]
        self.file("c.json", chain)
        minimum = self.object("plan", "c.json")["minimum_budget_bytes"]
        for budget in (minimum, minimum + 8192, minimum + 40000):
            reasons = {e["name"]: e["because"] for e in self.object("plan", "c.json", "--budget", budget, "--explain")["explanations"]}
            self.assertEqual((reasons["block1/act"], reasons["block2/qkv"]), ("marked", "marked"))

    def test_patterns_and_strategies(self):
        self.file("c.json", EXAMPLE)
        self.assertGreater(self.object("plan", "c.json", "--strategy", "selective", "--recompute", "act")["recompute_seconds"], 0)
        self.assertEqual(self.object("plan", "c.json", "--strategy", "selective", "--keep", "*")["recompute_seconds"], 0)
        self.refused("nothing_there", "plan", "c.json", "--strategy", "selective", "--keep", "nothing_there")
        self.refused("^ckpt: --strategy is 'fast'", "plan", "c.json", "--strategy", "fast")
        self.refused("^ckpt: --class is 'tau'", "plan", "c.json", "--class", "tau")

    def test_in_flight(self):
        self.file("c.json", EXAMPLE)
        one, two = (self.object("plan", "c.json", "--in-flight", n, "--strategy", "store_all") for n in (1, 2))
        self.assertEqual(two["peak_bytes"], one["peak_bytes"])
        self.assertGreaterEqual(two["arena_bytes"], one["held_bytes"] + one["peak_bytes"])


class Golden(Case):
    def test_instances(self):
        for number, (budget, boundaries, totals, seconds, rotor, sigma) in enumerate(GOLDEN):
            name = self.file(f"g{number}.json", golden_chain(boundaries, totals, seconds))
            found = {}
            for plan_class in ("rotor", "sigma", "sigma+s+w"):
                plan = self.object("plan", name, "--budget", budget, "--class", plan_class, "--alignment", 1)
                self.assertEqual((plan["status"], plan["class"]), ("OPTIMAL", plan_class))
                self.assertLessEqual(plan["arena_bytes"], budget)
                self.file("p.json", plan)
                self.good("verify", "p.json", name)
                found[plan_class] = plan["recompute_seconds"]
            self.assertLessEqual(found["rotor"], rotor)
            self.assertLessEqual(found["sigma"], min(sigma, found["rotor"]))
            self.assertLessEqual(found["sigma+s+w"], found["sigma"])

    def test_output(self):
        self.file("c.json", EXAMPLE)
        self.good("plan", "c.json", "--strategy", "every_segment", "-o", "p.json")
        plan = json.loads((self.folder / "p.json").read_text())
        self.assertEqual((plan["format"], plan["version"], plan["strategy"], plan["alignment_bytes"]), ("ckpt-plan", 1, "every_segment", 256))
        self.assertEqual(plan["actions"], [
            ["forward", 0, [], True], ["forward", 1, [], True], ["forward", 2, [], True], ["forward", 3, [], True], ["free", 4],
            ["forward", 3, ["act"], False], ["backward", 3], ["free", 3],
            ["forward", 2, ["act"], False], ["backward", 2], ["free", 2],
            ["forward", 1, ["act"], False], ["backward", 1], ["free", 1],
            ["forward", 0, ["act"], False], ["backward", 0], ["free", 0]])


class Files(Case):
    def test_svg(self):
        chain = copy.deepcopy(EXAMPLE)
        chain["segments"][0]["name"] = "<a & \"b\">"
        self.file("c.json", chain)
        self.good("plan", "c.json", "--budget", "64KiB", "--svg", "p.svg")
        svg = xml.dom.minidom.parse(str(self.folder / "p.svg"))
        groups = svg.getElementsByTagName("g")
        titles = [g.getElementsByTagName("title")[0].firstChild.data for g in groups]
        self.assertTrue(any(t.startswith("<a & \"b\">/act: 16384 bytes at ") for t in titles), titles)
        self.assertTrue([g for g in groups if "recompute" in g.getAttribute("class")])
        lines = [x for x in svg.getElementsByTagName("line") if x.getAttribute("class") == "limit"]
        self.assertEqual(len(lines), 1)
        texts = [t.firstChild.data for t in svg.getElementsByTagName("text")]
        for wanted in ("actions of the plan", "memory", "budget 64.00 KiB (65536)", "recomputed", "slot", "gradient"):
            self.assertIn(wanted, texts)
        self.assertNotIn("href", (self.folder / "p.svg").read_text())

    def test_svg_rectangles_do_not_overlap(self):
        self.file("c.json", EXAMPLE)
        self.good("plan", "c.json", "--budget", "50KiB", "--svg", "p.svg")
        boxes = [tuple(map(int, re.search(r": (\d+) bytes at (\d+), \[(\d+), (\d+)\)", t.firstChild.data).groups()))
                 for t in xml.dom.minidom.parse(str(self.folder / "p.svg")).getElementsByTagName("title")]
        self.assertGreater(len(boxes), 8)
        for k, (size, at, begin, end) in enumerate(boxes):
            for other, place, first, last in boxes[:k]:
                self.assertFalse(begin < last and first < end and at < place + other and place < at + size)

    def test_chrome_trace(self):
        self.file("c.json", EXAMPLE)
        plan = self.object("plan", "c.json", "--budget", "50KiB", "--trace", "t.json")
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        runs = [e for e in events if e["ph"] == "X"]
        self.assertAlmostEqual(sum(e["dur"] for e in runs if e["cat"] == "recompute") / 1e6, plan["recompute_seconds"])
        self.assertAlmostEqual(sum(e["dur"] for e in runs if e["cat"] == "backward") / 1e6, 8)
        self.assertEqual(max(e["args"]["bytes"] for e in events if e["ph"] == "C"), plan["peak_bytes"])
        self.assertEqual({e["name"] for e in runs}, {f"block{i}" for i in range(4)})
        for a, b in zip(runs, runs[1:]):
            self.assertLessEqual(a["ts"] + a["dur"], b["ts"] + 1e-6)

    def replay(self, actions, steps):
        """checkpoint_schedules' machine: a forward state and adjoint dependencies in WORK, restart points in RAM."""
        state, ram, adjoint, done, ended = 0, set(), set(), steps, False
        most = 0
        for a in actions:
            kind = a["action"]
            if kind == "Forward":
                self.assertEqual(state, a["n0"])
                if a["write_ics"]:
                    ram.add(a["n0"])
                if a["write_adj_deps"]:
                    adjoint.update(range(a["n0"], a["n1"]))
                state = a["n1"]
            elif kind in ("Copy", "Move"):
                if a["from_storage"] == "RAM":
                    self.assertIn(a["n"], ram)
                    state = a["n"]
                    if kind == "Move":
                        ram.remove(a["n"])
                else:
                    self.assertEqual(state, a["n"])
                    ram.add(a["n"])
            elif kind == "Reverse":
                self.assertTrue(ended)
                self.assertEqual(a["n1"], done)
                self.assertIn(a["n0"], adjoint)
                adjoint.remove(a["n0"])
                done = a["n0"]
                state = None
            elif kind == "EndForward":
                self.assertEqual((state, done), (steps, steps))
                ended = True
            else:
                self.assertEqual((kind, done), ("EndReverse", 0))
            most = max(most, len(ram))
        self.assertEqual(actions[-1]["action"], "EndReverse")
        return most

    def test_schedules(self):
        self.file("c.json", EXAMPLE)
        for arguments in (["--strategy", "every_segment"], ["--strategy", "full"], ["--strategy", "store_all"], ["--strategy", "sqrt"], ["--budget", "45KiB"]):
            self.good("plan", "c.json", *arguments, "--schedule", "s.json")
            self.replay(json.loads((self.folder / "s.json").read_text()), 4)
        for number, (budget, boundaries, totals, seconds, _, _) in enumerate(GOLDEN):
            name = self.file("g.json", golden_chain(boundaries, totals, seconds))
            self.good("plan", name, "--budget", budget, "--alignment", 1, "--schedule", "s.json")
            self.replay(json.loads((self.folder / "s.json").read_text()), len(totals))

    def test_schedules_of_loops(self):
        for steps, snapshots in ((1, 1), (2, 1), (10, 3), (50, 7), (33, 1)):
            self.good("revolve", "--steps", steps, "--snapshots", snapshots, "--schedule", "s.json")
            actions = json.loads((self.folder / "s.json").read_text())
            self.assertLessEqual(self.replay(actions, steps), snapshots)
            extra = self.object("revolve", "--steps", steps, "--snapshots", snapshots)["extra_forwards"]
            self.assertEqual(sum(a["n1"] - a["n0"] for a in actions if a["action"] == "Forward"), steps + extra)

    def test_not_writable(self):
        self.file("c.json", EXAMPLE)
        self.refused("^ckpt: nowhere/p.svg: cannot be written: No such file", "plan", "c.json", "--svg", "nowhere/p.svg")
        self.refused("^ckpt: nowhere/p.json: cannot be written", "plan", "c.json", "-o", "nowhere/p.json")


class BadInput(Case):
    def test_arguments(self):
        self.file("c.json", EXAMPLE)
        for arguments in ([], ["paint"], ["--json"], ["plan"], ["plan", "c.json", "--quick"], ["plan", "c.json", "d.json"], ["plan", "c.json", "--budget"], ["plan", "c.json", "--in-flight", "0"],
                          ["plan", "c.json", "--work-limit", "-1"], ["plan", "c.json", "--points", "3"], ["pack"], ["verify", "p.json"], ["revolve"], ["revolve", "--steps", "-1", "--snapshots", "1"],
                          ["version", "now"], ["devices", "--all"], ["estimate"], ["verify", "c.json", "c.json", "--quick"]):
            self.refused("^ckpt: ", *arguments)
        self.refused("^ckpt: nothing.json: cannot be read: No such file", "plan", "nothing.json")
        self.refused("^ckpt: .: cannot be read", "plan", ".")
        self.refused("^ckpt: unknown option '--budgt' of plan", "plan", "c.json", "--budgt", "80KiB")
        self.refused("^ckpt: no subcommand, expected plan, pack")
        self.refused("^ckpt: --budget is '0.5'", "plan", "c.json", "--budget", "0.5")
        self.refused("^ckpt: --in-flight is '5000', expected a whole number, 1 to 4096", "plan", "c.json", "--in-flight", "5000")
        for option in ("--svg", "--output", "--trace", "--schedule"):
            self.refused("^ckpt: " + option + ".*expected the name of a file", "plan", "c.json", option, "")
        self.assertIn("plan", self.good("--help"))
        self.assertIn("--budget", self.good("plan", "--help"))

    def test_chains(self):
        def changed(change):
            chain = copy.deepcopy(EXAMPLE)
            change(chain)
            return chain
        slot = lambda chain: chain["segments"][3]["slots"][1]
        cases = [
            (lambda c: slot(c).pop("bytes"), r"segments\[3\].slots\[1\].bytes is missing, expected a whole number of bytes, 0 to 2\^60"),
            (lambda c: slot(c).update(bytes=-1), r"segments\[3\].slots\[1\].bytes is -1, expected a whole number of bytes, 0 to 2\^60"),
            (lambda c: slot(c).update(bytes=2 ** 70), r"segments\[3\].slots\[1\].bytes is 1180591620717411303424, expected"),
            (lambda c: slot(c).update(bytes=1.5), r"segments\[3\].slots\[1\].bytes is 1.5, expected"),
            (lambda c: slot(c).update(bytes=float("nan")), r"segments\[3\].slots\[1\].bytes: found 'NaN', expected"),
            (lambda c: slot(c).update(cost_seconds=float("inf")), r"segments\[3\].slots\[1\].cost_seconds: found 'Infinity', expected"),
            (lambda c: slot(c).update(flags=["keeep"]), r"segments\[3\].slots\[1\].flags\[0\] is 'keeep', expected one of transient, keep, recompute"),
            (lambda c: slot(c).update(size=3), r"segments\[3\].slots\[1\]: unknown field 'size' \(its value is 3\), expected name, bytes"),
            (lambda c: slot(c).update(reads=["act"]), r"segments\[3\].slots\[1\].reads\[0\] is 'act', expected the name of an earlier slot"),
            (lambda c: c["segments"][3]["slots"][0].update(reads=["act"]), r"segments\[3\].slots\[0\].reads\[0\] is 'act', expected the name of an earlier slot"),
            (lambda c: slot(c).update(name="qkv"), r"segments\[3\].slots\[1\].name is 'qkv', expected a name that no other slot"),
            (lambda c: c["segments"][3].update(name="block0"), r"segments\[3\].name is 'block0', expected a name that no other segment has"),
            (lambda c: c.update(segments=[]), r"segments is an empty list, expected a list of at least one segment"),
            (lambda c: c.pop("segments"), r"segments is missing"),
            (lambda c: c["segments"][3].pop("backward_seconds"), r"segments\[3\].backward_seconds is missing"),
            (lambda c: c["segments"][3].update(forward_seconds=0.1), r"segments\[3\].forward_seconds is 0.1, expected at least the 0.4"),
            (lambda c: c["segments"][3].update(slots={}), r"segments\[3\].slots is an object, expected a list of slots"),
            (lambda c: c["input"].update(memory=5), r"input.memory is 5, expected one of arena, caller"),
            (lambda c: c.update(inputs=[{"bytes": 1}]), r"inputs is a list, expected either input or inputs, not both")]
        for change, line in cases:
            self.file("c.json", changed(change))
            self.refused(r"^ckpt: c.json: (line 1, column \d+: )?" + line, "plan", "c.json")

    def test_texts(self):
        text = json.dumps(EXAMPLE)
        for cut in range(0, len(text), 7):
            self.file("c.json", text[:cut])
            self.refused(r"^ckpt: c.json: line 1, column \d+: .*: the text ends, expected the rest of it$", "plan", "c.json")
        for content, line in ((b"", "the text ends"), (b"\xff\xfe", "found"), (b"nonsense", "found 'nonsense'"), (b"[" * 10000, "more than 32 levels deep"), (b"[]", "the text is an empty list, expected an object"),
                              (text.replace('"block0"', '"a\\u0000b"').encode(), r"segments\[0\].name is 'a\?b', expected a name"),
                              (text.replace('"bytes": 16384', '"bytes": 1e999', 1).encode(), r"segments\[0\].slots\[1\].bytes is '1e999', expected a number of at most"),
                              (text.replace('"bytes": 16384', '"bytes": 1, "bytes": 2', 1).encode(), "field 'bytes' comes twice, expected once")):
            self.file("c.json", content)
            self.refused("^ckpt: c.json: .*" + line, "plan", "c.json")


class Verify(Case):
    def setUp(self):
        super().setUp()
        self.file("c.json", EXAMPLE)
        self.plan = self.object("plan", "c.json", "--budget", "50KiB", "-o", "p.json")

    def test_good(self):
        self.assertRegex(self.good("verify", "p.json", "c.json"), "^valid: ")
        seen = self.object("verify", "p.json", "c.json")
        self.assertEqual({k: seen[k] for k in ("valid", "peak_bytes", "arena_bytes", "held_bytes", "recompute_seconds", "hash")},
                         {"valid": True, **{k: self.plan[k] for k in ("peak_bytes", "arena_bytes", "held_bytes", "recompute_seconds", "hash")}})
        for alignment in (1, 64, 512):
            self.file("q.json", self.good("plan", "c.json", "--alignment", alignment, "--json"))
            self.good("verify", "q.json", "c.json")
            self.good("verify", "q.json", "c.json", "--alignment", alignment)
            self.refused("^ckpt: q.json: hash is '0x[0-9a-f]{16}', expected '0x[0-9a-f]{16}'", "verify", "q.json", "c.json", "--alignment", 4096)
        self.file("bare.json", {"actions": self.plan["actions"]})
        self.good("verify", "bare.json", "c.json")

    def test_bad(self):
        actions = self.plan["actions"]
        cases = [
            ({"actions": actions[1:]}, "actions: "),
            ({"actions": actions[:-2]}, "actions: "),
            ({"actions": [["forward", 9, [], True]]}, r"actions\[0\]\[1\] is 9, expected a segment, 0 to 3"),
            ({"actions": [["free", 5]]}, r"actions\[0\]\[1\] is 5, expected a boundary, 0 to 4"),
            ({"actions": [["forward", 0, ["nothing"], True]]}, r"actions\[0\]\[2\]\[0\] is 'nothing', expected the name of a slot of segment 'block0'"),
            ({"actions": [["forward", 0, ["act", "act"], True]]}, r"actions\[0\]\[2\]\[1\] is 'act', expected each slot once"),
            ({"actions": [["forward", 0, [], 1]]}, r"actions\[0\]\[3\] is 1, expected true, false or a list"),
            ({"actions": [["forward", 0]]}, r"actions\[0\] is a list, expected \[\"forward\", segment"),
            ({"actions": [["jump", 0]]}, r"actions\[0\]\[0\] is 'jump', expected one of forward, backward, free, drop"),
            ({"actions": []}, "actions is an empty list, expected a list of actions"),
            ({}, "actions is missing, expected a list of actions"),
            ({**self.plan, "arena_bytes": 1}, r"arena_bytes is 1, expected at least \d+, which is what the actions take"),
            ({**self.plan, "held_bytes": 1}, r"held_bytes is 1, expected \d+, which is what the actions take"),
            ({**self.plan, "peak_bytes": 1}, r"peak_bytes is 1, expected \d+, which is what the actions take"),
            ({**self.plan, "version": 2}, "version is 2, expected a whole number, 1 to 1"),
            ({**self.plan, "format": "other"}, "format is 'other', expected one of ckpt-plan"),
            ({**self.plan, "hash": "0x0"}, "hash is '0x0', expected a text of"),
            ({**self.plan, "hash": "0x0123456789abcdef"}, "hash is '0x0123456789abcdef', expected '0x"),
            ({**self.plan, "peak_bytes": 5}, f"peak_bytes is 5, expected {self.plan['peak_bytes']}, which is what the actions take"),
            ({**self.plan, "peak_bytes": -5}, "peak_bytes is -5, expected a whole number of bytes"),
            ({**self.plan, "budget_bytes": 256}, "budget_bytes: .*the budget is 256"),
            ({**self.plan, "colour": "red"}, "unknown field 'colour'"),
            ("{\"actions\": [[", "the text ends")]
        for content, line in cases:
            self.file("p.json", content)
            self.refused("^ckpt: p.json: .*" + line, "verify", "p.json", "c.json")

    def test_every_change_of_an_action_is_seen(self):
        for k, action in enumerate(self.plan["actions"]):
            changed = copy.deepcopy(self.plan)
            del changed["actions"][k]
            self.file("p.json", changed)
            self.refused("^ckpt: p.json: ", "verify", "p.json", "c.json")

    def test_other_chain(self):
        chain = copy.deepcopy(EXAMPLE)
        chain["segments"][1]["slots"][1]["bytes"] += 4096
        self.file("d.json", chain)
        self.refused("^ckpt: p.json: chain_hash is '0x[0-9a-f]{16}', expected \"0x[0-9a-f]{16}\": the plan was made for another chain", "verify", "p.json", "d.json")


class Pack(Case):
    def test_known(self):
        self.file("t.csv", "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n")
        packed = self.object("pack", "t.csv")
        self.assertEqual(list(packed), ["lower_bound_bytes", "height_bytes", "proved", "offsets"])
        self.assertEqual((packed["lower_bound_bytes"], packed["height_bytes"], packed["proved"]), (12, 12, True))
        self.assertEqual(set(packed["offsets"]), {"b1", "b2", "b3", "b4", "b5"})

    def test_offsets(self):
        rows = [(f"x{k}", k * 7 % 31, k * 7 % 31 + 1 + k * 5 % 13, 1 + k * 37 % 101) for k in range(200)]
        self.file("t.csv", "size,id,upper,lower\r\n" + "".join(f"{s}, {i} ,{u},{l}\r\n" for i, l, u, s in rows))
        for alignment in (1, 64):
            packed = self.object("pack", "t.csv", "--alignment", alignment)
            at = packed["offsets"]
            size = {i: (s + alignment - 1) // alignment * alignment for i, _, _, s in rows}
            self.assertEqual(max(at[i] + size[i] for i, _, _, _ in rows), packed["height_bytes"])
            self.assertEqual(max(sum(size[i] for i, l, u, _ in rows if l <= t < u) for t in range(50)), packed["lower_bound_bytes"])
            for k, (i, l, u, _) in enumerate(rows):
                self.assertEqual(at[i] % alignment, 0)
                for j, m, v, _ in rows[:k]:
                    self.assertFalse(l < v and m < u and at[i] < at[j] + size[j] and at[j] < at[i] + size[i])
        text = self.good("pack", "t.csv")
        self.assertRegex(text, "buffers +200\n")
        self.assertEqual({line.split()[1]: int(line.split()[0]) for line in text.split("id\n")[1].splitlines()}, self.object("pack", "t.csv")["offsets"])

    def test_many_that_live_together(self):
        self.file("t.csv", "\ufeffid,lower,upper,size\n" + "".join(f"b{k},0,1,{k}\n" for k in range(50000)))
        self.assertTrue(self.object("pack", "t.csv")["proved"])

    def test_capacity_and_svg(self):
        self.file("t.csv", "id,lower,upper,size\na<b,0,2,10\nb,1,3,10\n")
        self.good("pack", "t.csv", "--capacity", "20", "--svg", "t.svg")
        titles = [t.firstChild.data for t in xml.dom.minidom.parse(str(self.folder / "t.svg")).getElementsByTagName("title")]
        self.assertEqual(len(titles), 2)
        self.assertTrue(any(t.startswith("a<b: 10 bytes at ") for t in titles))
        done = self.run_ckpt("pack", "t.csv", "--capacity", "19", "--json")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(json.loads(done.stdout)["height_bytes"], 20)
        self.assertRegex(done.stderr, "20")
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_bad(self):
        head = "id,lower,upper,size\n"
        number = "expected a whole number, 0 to"
        self.file("t.csv", head.encode() + b"\xff,0,1,1\n")
        self.refused("^ckpt: t.csv: line 2: id is not UTF-8", "pack", "t.csv")
        self.file("t.csv", head + "a,0,1,1\n")
        self.refused("^ckpt: --capacity is 0, expected at least 1 byte", "pack", "t.csv", "--capacity", "0")
        for text, line in (("", "the file is empty, expected a line id,lower,upper,size"), (head, "no buffer, expected at least one line"), ("id,lower,upper\n1,2,3\n", "line 1: column size is missing, expected id,lower,upper,size"),
                           ("id,lower,upper,size,colour\n", "line 1: unknown column 'colour', expected id,lower,upper,size"), (head + "a,0,1\n", "line 2: 3 fields, expected 4: id,lower,upper,size"),
                           (head + "a,0,1,-4\n", f"line 2: size is '-4', {number}"), (head + "a,0,1,nan\n", f"line 2: size is 'nan', {number}"), (head + "a,0,1,1.5\n", f"line 2: size is '1.5', {number}"),
                           (head + "a,0,1,\n", f"line 2: size is '', {number}"), (head + "a,0,99999999999999999999,1\n", f"line 2: upper is '99999999999999999999', {number}"),
                           (head + "a,0,1,1152921504606846977\n", f"line 2: size is '1152921504606846977', {number}"), (head + "a,5,5,1\n", "line 2: upper is 5, expected more than lower, which is 5"),
                           (head + "a,0,1,1\n\na,0,1,1\n", "line 4: id is 'a', expected one that no other buffer has"), (head + ",0,1,1\n", "line 2: id is '', expected a name"),
                           ("id,lower,upper,size,size\n", "line 1: 5 columns, expected id,lower,upper,size, each once")):
            self.file("t.csv", text)
            self.refused("^ckpt: t.csv: " + re.escape(line), "pack", "t.csv")
        self.file("t.csv", head + "a,0,1,1\n")
        self.refused("alignment_bytes is 3", "pack", "t.csv", "--alignment", "3")


class Loops(Case):
    def test_revolve(self):
        for steps, snapshots, extra in ((10, 3, 15), (50, 7, 105), (100, 5, 316), (250, 10, 672), (1000, 10, 3636), (10000, 25, 36346)):
            self.assertEqual(self.object("revolve", "--steps", steps, "--snapshots", snapshots),
                             {"steps": steps, "snapshots": snapshots, "extra_forwards": extra, "total_forwards": steps + extra})
        self.assertIn("15 extra forward steps", self.good("revolve", "--steps", 10, "--snapshots", 3))
        actions = self.object("revolve", "--steps", 10, "--snapshots", 3, "--actions")["actions"]
        self.assertEqual(sum(a[2] - a[1] for a in actions if a[0] == "advance"), 15 + 10 - 10)
        self.assertEqual([a[1] for a in actions if a[0] == "backward"], list(range(9, -1, -1)))
        self.refused("snapshot_count is 0", "revolve", "--steps", 10, "--snapshots", 0)
        self.refused("--steps is '0', expected a whole number, 1 to", "revolve", "--steps", 0, "--snapshots", 1)

    def test_devices_and_version(self):
        self.assertEqual(self.object("devices")["devices"][0]["device"], "cpu")
        self.assertRegex(self.good("devices"), "^cpu ")
        if not any(d["device"] == "cuda:0" for d in self.object("devices")["devices"]):
            self.assertRegex(self.good("devices"), r"\ncuda +none: .*cuda")
        version = self.object("version")["version"]
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(self.good("version"), f"ckpt {version}\n")


class Estimate(Case):
    GPT3 = ["estimate", "--layers", 96, "--hidden", 12288, "--heads", 96, "--seq", 2048, "--batch", 1, "--tensor-parallel", 8]

    def kept(self, *arguments):
        rank = self.object(*self.GPT3, *arguments)["ranks"][0]
        return {p["policy"]: p["layer_bytes"] * p["layers_in_flight"] / 2 ** 30 for p in rank["policies"]}

    def test_published(self):
        plain, sequence = self.kept(), self.kept("--sequence-parallel")
        for found, wanted in ((plain["none"], 51.75), (plain["attention"], 29.25), (plain["full"], 4.5), (sequence["none"], 32.0625), (sequence["attention"], 9.5625)):
            self.assertAlmostEqual(found, wanted, delta=wanted / 1000)
        llama = self.object("estimate", "--layers", 32, "--hidden", 4096, "--heads", 32, "--kv-heads", 8, "--ffn", 14336, "--seq", 8192, "--activation", "swiglu", "--attention", "flash")
        self.assertAlmostEqual(llama["ranks"][0]["policies"][0]["activation_bytes"] / 2 ** 30, 34.0, delta=0.1)

    def test_chain_and_budget(self):
        small = ["estimate", "--layers", 4, "--hidden", 256, "--heads", 4, "--seq", 128, "--vocab", 1000]
        done = self.run_ckpt(*small, "--budget", "1KiB", "--json")
        self.assertEqual(done.returncode, 2)
        refused = json.loads(done.stdout)["ranks"][0]["policies"][-1]
        self.assertEqual(refused["status"], "INFEASIBLE")
        minimum = refused["minimum_budget_bytes"]
        optimal = self.object(*small, "--budget", minimum, "--chain", "c.json", "--alignment", 1)["ranks"][0]["policies"][-1]
        self.assertEqual((optimal["policy"], optimal["arena_bytes"]), ("optimal", minimum))
        self.assertGreater(optimal["recompute_flops"], 0)
        plan = self.object("plan", "c.json", "--budget", minimum)
        self.assertEqual((plan["peak_bytes"], plan["arena_bytes"]), (optimal["peak_bytes"], optimal["arena_bytes"]))
        self.assertRegex(done.stderr, r"^ckpt: rank 0: --budget is 1024 bytes, expected at least \d+, the smallest budget that works\n$")

    def test_bad(self):
        self.refused("heads", *["estimate", "--layers", 4, "--hidden", 255, "--heads", 4, "--seq", 128])
        self.refused("--dtype", *self.GPT3, "--dtype", "int3")
        self.refused("--bandwidth", *self.GPT3, "--flops", "1e15")
        self.refused("^ckpt: ", *self.GPT3, "--layers", "many")


unittest.main()
