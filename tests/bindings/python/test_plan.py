"""Chains, plans, schedules, estimates, packing, random numbers: against the vectors that all languages read."""
import copy
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import unittest

import numpy as np

import ckpt

SOURCE = pathlib.Path(os.environ.get("CKPT_SOURCE", pathlib.Path(__file__).resolve().parents[3]))
VECTORS = SOURCE / "bindings" / "vectors" / "vectors.txt"


def vectors(kind):
    for line in VECTORS.read_text().splitlines():
        if line.startswith(kind + " "):
            yield line[len(kind) + 1:].split(" ") if kind != "chain" else line[len(kind) + 1:].split(" ", 1)


def hexes(words):
    return [int(w, 16) for w in words]


class Vectors(unittest.TestCase):
    def setUp(self):
        self.chains = {name: ckpt.chain(text) for name, text in vectors("chain")}

    def test_plans(self):
        count = 0
        for chain, strategy, budget, arena, peak, digest in vectors("plan"):
            plan = self.chains[chain].plan(int(budget) or None, strategy)
            self.assertEqual((plan.arena_bytes, plan.peak_bytes, plan.hash), (int(arena), int(peak), int(digest, 16)))
            count += 1
        for chain, strategy, budget, minimum in vectors("toosmall"):
            with self.assertRaisesRegex(ckpt.BudgetError, minimum):
                self.chains[chain].plan(int(budget), strategy)
            self.assertEqual(self.chains[chain].minimum_budget(strategy), int(minimum))
        self.assertGreater(count, 0)

    def test_revolve(self):
        for steps, snapshots, extra in (map(int, v) for v in vectors("revolve")):
            self.assertEqual(ckpt.revolve_extra_forwards(steps, snapshots), extra)
            if steps > 2000:
                continue
            advances, state, kept, reversed_ = 0, 0, {}, []
            with ckpt.schedule(steps, snapshots) as schedule:
                for a in schedule:
                    if a.kind == "store":
                        self.assertEqual(a.first, state)
                        self.assertLess(a.snapshot, snapshots)
                        kept[a.snapshot] = state
                    elif a.kind == "restore":
                        state = kept[a.snapshot]
                    elif a.kind == "advance":
                        self.assertEqual(a.first, state)
                        advances += a.last - a.first
                        state = a.last
                    else:
                        self.assertEqual(a.first, state)
                        reversed_.append(a.first)
            self.assertEqual((advances, reversed_), (extra, list(range(steps))[::-1]))

    def test_philox(self):
        seen = set()
        for v in map(hexes, vectors("block")):
            self.assertEqual(ckpt.philox_block(v[:4], v[4:6]).tolist(), v[6:])
        for seed, step, segment, site, subsequence, offset in map(hexes, vectors("pack")):
            p = ckpt.Philox(seed, step=step, segment=segment, site=site)
            self.assertEqual((p.seed, p.subsequence, p.offset), (seed, subsequence, offset))
        for v in vectors("refuse"):
            seed, step, segment, site = hexes(v[:4])
            with self.assertRaisesRegex((ckpt.SizeOverflowError, ckpt.InvalidArgumentError), v[4] if site < 2**32 else ""):
                ckpt.Philox(seed, step=step, segment=segment, site=site)
        for v in map(hexes, vectors("u32")):
            self.assertEqual(ckpt.Philox.at(*v[:3]).u32(v[4], first=v[3]).tolist(), v[5:])
            seen.add("u32")
        for v in map(hexes, vectors("uniform")):
            self.assertEqual(ckpt.Philox.at(*v[:3]).uniform(v[4], first=v[3]).view("u4").tolist(), v[5:])
            seen.add("uniform")
        for v in map(hexes, vectors("normal")):
            mean, stddev = (struct.unpack("<f", struct.pack("<I", w))[0] for w in v[4:6])
            self.assertEqual(ckpt.Philox.at(*v[:3]).normal(v[6], first=v[3], mean=mean, stddev=stddev).view("u4").tolist(), v[7:])
            seen.add("normal")
        for v in map(hexes, vectors("bernoulli")):
            probability = struct.unpack("<d", struct.pack("<Q", v[4]))[0]
            self.assertEqual(ckpt.Philox.at(*v[:3]).bernoulli(v[5], first=v[3], probability=probability).tolist(), v[6:])
            seen.add("bernoulli")
        self.assertEqual(len(seen), 4)
        for probability, threshold in map(hexes, vectors("threshold")):
            self.assertEqual(ckpt.raw.ckpt_philox_threshold(struct.unpack("<d", struct.pack("<Q", probability))[0]), threshold)


SEGMENTS = [{"name": f"s{k}", "forward_seconds": 1.0, "backward_seconds": 2.0, "output_bytes": 1024,
             "slots": [{"name": "a", "bytes": 4096, "cost_seconds": 0.6}, {"name": "b", "bytes": 2048, "cost_seconds": 0.1, "reads": ["a"]}],
             "output_reads": ["b"]} for k in range(8)]


class Plans(unittest.TestCase):
    def setUp(self):
        self.chain = ckpt.chain(SEGMENTS)

    def test_every_question(self):
        full = self.chain.plan()
        self.assertEqual((full.recompute_count, full.status), (0, "optimal"))
        least = self.chain.minimum_budget()
        plan = self.chain.plan(least)
        self.assertLessEqual(plan.arena_bytes, least)
        with self.assertRaisesRegex(ckpt.BudgetError, str(least)):
            self.chain.plan(least - 1)
        peak, seconds, again = self.chain.verify(plan.actions)
        self.assertEqual(peak, plan.peak_bytes)
        self.assertAlmostEqual(again, plan.recompute_seconds)
        self.assertAlmostEqual(seconds, plan.forward_seconds + plan.backward_seconds + plan.recompute_seconds)
        again = ckpt.Plan(self.chain, plan.actions, budget=least)
        self.assertEqual(again.hash, plan.hash)
        self.assertEqual(ckpt.Plan.from_json(plan.to_json(), self.chain).hash, plan.hash)
        self.assertEqual(ckpt.chain(self.chain.to_json()).hash, self.chain.hash)
        self.assertTrue(json.loads(plan.to_schedule_json()) and json.loads(plan.to_trace_json()))
        live = max(sum(p.bytes for p in plan.placements if p.first_action <= k < p.end_action) for k in range(plan.action_count))
        self.assertLessEqual(live, plan.peak_bytes)
        self.assertEqual(max(p.offset + p.bytes for p in plan.placements), plan.arena_bytes)
        told = plan.explain(self.chain)
        self.assertEqual(len(told), 8 * 3 + 1)
        self.assertTrue(any(not e.kept and e.because == "budget" for e in told))
        curve = self.chain.curve()
        self.assertEqual([p.budget_bytes for p in curve], sorted(p.budget_bytes for p in curve))
        self.assertEqual([p.seconds for p in curve], sorted((p.seconds for p in curve), reverse=True))
        self.assertLess(self.chain.plan(least + 4096, plan_class="rotor").arena_bytes, least + 4097)
        self.assertIn("ckpt.Plan", repr(plan))

    def test_patterns(self):
        plan = self.chain.plan(strategy="selective", keep=["b"])
        self.assertTrue(all(a.slots in ((1,), ()) for a in plan.actions[:8]))
        with self.assertRaisesRegex(ckpt.NotFoundError, "nosuch"):
            self.chain.plan(strategy="selective", keep=["nosuch*"])

    def test_refusals(self):
        for source, pattern in (("{", "chain"), ({"segments": []}, "segments|input"), ([{"name": "a"}], "forward_seconds"), ({"x": {1, 2}}, "set")):
            with self.assertRaisesRegex(ValueError, pattern):
                ckpt.chain(source)
        with self.assertRaisesRegex(ckpt.InvalidPlanError, "action"):
            ckpt.Plan(self.chain, self.chain.plan().actions[1:])
        with self.assertRaisesRegex(ValueError, "'jump'"):
            ckpt.Plan(self.chain, [ckpt.Action(kind="jump", index=0)])
        with self.assertRaisesRegex(ValueError, "budget is 'x'"):
            self.chain.plan("x")
        with self.assertRaises(ckpt.NotFoundError):
            self.chain.plan(plan_class="best")
        with self.assertRaises(AttributeError):
            self.chain.plan().nosuch


class Tools(unittest.TestCase):
    def test_estimate(self):
        e = ckpt.estimate(layers=2, hidden=64, heads=4, sequence=32, micro_batch=1, policy="none")
        # Korthikanti et al. 2022, table 2 without dropout: 10 + 18 + 4 bytes an element, and the softmax's output
        s, h, a = 32, 64, 4
        self.assertEqual(e.layer_bytes, s * h * 32 + 2 * a * s * s)
        chain = ckpt.estimate_chain(layers=2, hidden=64, heads=4, sequence=32, micro_batch=1)
        self.assertGreaterEqual(chain.segment_count, 2)
        small = ckpt.estimate(layers=2, hidden=64, heads=4, sequence=32, micro_batch=1, policy="optimal")
        with self.assertRaisesRegex(ckpt.BudgetError, ""):
            ckpt.estimate(layers=2, hidden=64, heads=4, sequence=32, micro_batch=1, policy="optimal", budget=1024)
        self.assertEqual(small.policy, "optimal")
        with self.assertRaisesRegex(TypeError, "'layrs'"):
            ckpt.estimate(layrs=2)
        with self.assertRaisesRegex(ValueError, "attention is 'x'"):
            ckpt.estimate(layers=2, attention="x")
        with self.assertRaisesRegex(ckpt.NotFoundError, "'some'"):
            ckpt.estimate(layers=2, policy="some")
        with self.assertRaisesRegex(ValueError, "layers is -2"):
            ckpt.estimate(layers=-2)

    def test_pack(self):
        buffers = [(0, 4, 100), (2, 6, 50), (4, 8, 100), (6, 9, 70), (1, 3, 10)]
        packing = ckpt.pack(buffers)
        self.assertEqual(packing.height_bytes, packing.lower_bound_bytes)
        self.assertTrue(packing.proved and packing.fits)
        for i, (a, b, n) in enumerate(buffers):
            for j, (c, d, m) in enumerate(buffers[:i]):
                if a < d and c < b:
                    self.assertTrue(packing.offsets[i] + n <= packing.offsets[j] or packing.offsets[j] + m <= packing.offsets[i])
        self.assertFalse(ckpt.pack(buffers, capacity=10).fits)
        for bad in ([(1, 1, 5)], [(-1, 2, 3)], [(1, 2)], 3, [("a", "b", "c")]):
            with self.assertRaises(ValueError if bad != 3 else (ValueError, TypeError)):
                ckpt.pack(bad)

    def test_schedule_refusals(self):
        for steps, snapshots in ((5, 0), (-1, 2), (2.5, 2), (True, 2)):
            with self.assertRaises(ValueError):
                ckpt.schedule(steps, snapshots)
        with self.assertRaises(ckpt.SizeOverflowError):
            ckpt.schedule(2**63, 2)

    def test_philox_refusals(self):
        for again in (copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
            self.assertEqual(again(ckpt.Philox(3, step=4, segment=5, site=6)), ckpt.Philox(3, step=4, segment=5, site=6))
        p = ckpt.Philox(1)
        for out in (np.zeros(4), np.zeros((4, 4), np.float32)[:, ::2], [1.0], np.zeros(3, np.int32)):
            with self.assertRaisesRegex(ValueError, "out is"):
                p.uniform(out=out)
        with self.assertRaisesRegex(ValueError, "shape"):
            p.uniform(3, out=np.zeros(4, np.float32))
        with self.assertRaises(ValueError):
            p.normal(4, stddev=-1)
        with self.assertRaises(ValueError):
            ckpt.Philox(-1)
        rng = ckpt.Rng(3)
        rng.advance(5, round_up_to_4=True)
        self.assertEqual(rng.snapshot().offset, 8)
        rng.restore(ckpt.Philox.at(3, 0, 2))
        self.assertEqual(rng.snapshot(), ckpt.Philox.at(3, 0, 2))

    def test_command(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-m", "ckpt", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if "without the command" in (found := run("version")).stderr:
            self.skipTest(found.stderr)
        self.assertIn(ckpt.__version__, found.stdout)
        self.assertEqual(json.loads(run("revolve", "--steps", "10", "--snapshots", "3", "--json").stdout)["extra_forwards"], 15)
        self.assertEqual(run("plan", "nosuch.json").returncode, 1)

    def test_demo(self):
        done = subprocess.run([sys.executable, "-c", "import ckpt; ckpt.demo()"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("bitwise equal: yes", done.stdout)


if __name__ == "__main__":
    unittest.main()
