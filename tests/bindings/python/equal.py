"""What the tests of ckpt.torch share: steps, and the comparison of all that they give."""
import copy
import os
import sys
import unittest

try:
    import torch
except ImportError as error:
    print(f"skipped: PyTorch cannot be imported ({error})")
    sys.exit(77)

import ckpt
import ckpt.torch

torch.set_num_threads(1)
MODERN = int(torch.__version__.split(".")[0]) >= 2  # PyTorch 1 turns what a hook raises into a RuntimeError
print(f"PyTorch {torch.__version__} from {os.path.dirname(torch.__file__)}, CUDA {torch.cuda.is_available()}")


def step(run, model, x, loss=lambda y: (y * y).sum(), seed=7, steps=1):
    """Output, gradients, buffers and the generator's state after some steps."""
    for p in model.parameters():
        p.grad = None
    torch.manual_seed(seed)
    x = x.detach().clone().requires_grad_(x.requires_grad)
    for _ in range(steps):
        y = run(x)
        loss(y).backward()
    return [y.detach(), x.grad, *(p.grad for p in model.parameters()), *model.buffers(), torch.get_rng_state()]


def clone(values):
    return [None if v is None else v.clone() for v in values]


class Equal(unittest.TestCase):
    def assert_same(self, mine, plain):
        self.assertEqual(len(mine), len(plain))
        for k, (a, b) in enumerate(zip(mine, plain)):
            self.assertEqual(a is None, b is None, k)
            if a is not None:
                self.assertTrue(torch.equal(a, b), f"value {k} differs")

    def budgets(self, model, x, count=5):
        """From the smallest budget to all of it."""
        probe = ckpt.torch.Budgeted(model, None).plan_for(x)
        least, most = probe.chain.minimum_budget(), probe.plan.arena_bytes
        self.assertLess(least, most)
        return [least + (most - least) * k // (count - 1) for k in range(count)]

    def check(self, model, x, count=4, steps=2, **more):
        """All budgets, all segments: the same bits."""
        state = copy.deepcopy(model.state_dict())
        plain = clone(step(model, model, x, steps=steps, **more))
        planned = []
        for budget in self.budgets(model, x, count):
            model.load_state_dict(state)
            budgeted = ckpt.torch.Budgeted(model, budget, measure=True)
            self.assert_same(step(budgeted, model, x, steps=steps, **more), plain)
            p = budgeted.latest
            self.assertLessEqual(p.measured_peak_bytes, p.predicted_peak_bytes)
            self.assertGreaterEqual(p.measured_peak_bytes, 0.98 * p.predicted_peak_bytes)
            self.assertLessEqual(p.predicted_peak_bytes, budget)
            planned.append(p)
            model.load_state_dict(state)
            self.assert_same(step(lambda v: ckpt.torch.checkpoint_sequential(model, v, budget=budget), model, x, steps=steps, **more), plain)
        self.assertEqual(planned[-1].plan.recompute_count, 0)
        self.assertGreater(planned[0].plan.recompute_count, 0)
        for segments in (1, 2, len(model)):
            model.load_state_dict(state)
            self.assert_same(step(lambda v: ckpt.torch.checkpoint_sequential(model, v, segments=segments), model, x, steps=steps, **more), plain)
        model.load_state_dict(state)

        def each(v):
            for block in model:
                v = ckpt.torch.checkpoint(block, v)
            return v
        self.assert_same(step(each, model, x, steps=steps, **more), plain)
        return planned
