"""ckpt.torch: gradients bitwise those of plain autograd, whatever is recomputed, and the predicted bytes."""
import copy
import gc
import io
import unittest
import warnings
import weakref

from equal import MODERN, Equal, clone, step  # leaves where there is no PyTorch
import torch
from torch import nn
from torch.nn import functional

import ckpt
import ckpt.torch
import models
from ckpt.torch._measure import look_all


class Models(Equal):
    def test_gpt_with_dropout(self):
        torch.manual_seed(0)
        planned = self.check(models.gpt(6, 32, 2, dropout=0.1), torch.randn(2, 16, 32))
        self.assertGreater(planned[0].plan.recompute_count, 5)  # at the smallest budget blocks run more than once again

    def test_cnn_with_batch_norm(self):
        torch.manual_seed(0)
        self.check(models.cnn(8, 4), torch.randn(3, 4, 16, 16, requires_grad=True), steps=3)

    def test_eval_mode(self):
        torch.manual_seed(0)
        self.check(models.cnn(4, 4).eval(), torch.randn(3, 4, 16, 16))

    def test_mlp_with_activations_in_place_and_views(self):
        torch.manual_seed(0)
        parts = [nn.ReLU(inplace=True)]
        for _ in range(4):
            parts += [nn.Linear(24, 24), nn.ReLU(inplace=True), nn.Unflatten(1, (4, 6)), nn.Flatten(), nn.Sigmoid(), nn.Dropout(0.2), nn.Tanh()]
        model = nn.Sequential(*parts)
        x = torch.randn(8, 24)
        state = copy.deepcopy(model.state_dict())
        with torch.no_grad():
            plain = clone(step(lambda v: model(v.clone()), model, x, loss=lambda y: torch.zeros((), requires_grad=True)))
        plain = clone(step(lambda v: model(v.clone()), model, x))
        for budget in self.budgets(model, x):
            model.load_state_dict(state)
            self.assert_same(step(ckpt.torch.Budgeted(model, budget), model, x), plain)
        for segments in (1, 3, len(model)):
            self.assert_same(step(lambda v: ckpt.torch.checkpoint_sequential(model, v, segments=segments), model, x), plain)

    def test_autocast(self):
        torch.manual_seed(0)
        model, x = models.gpt(4, 32, 2, dropout=0.1), torch.randn(2, 16, 32)

        def under(run):
            def go(v):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return run(v).float()
            return go
        plain = clone(step(under(model), model, x))
        for budget in (None, *self.budgets(model, x, 3)):
            with self.subTest(budget=budget):
                try:
                    self.assert_same(step(under(ckpt.torch.Budgeted(model, budget)), model, x), plain)
                except ckpt.BudgetError:
                    self.assertEqual(budget, self.budgets(model, x, 3)[0])  # other sizes under autocast

    def test_nothing_wants_a_gradient_of_the_input_or_of_some_blocks(self):
        torch.manual_seed(0)
        model = models.gpt(4, 32, 2, dropout=0.1)
        for p in [*model[0].parameters(), *model[2].parameters()]:
            p.requires_grad_(False)
        self.check(model, torch.randn(2, 16, 32))

    def test_blocks_that_share_weights_and_capture_others(self):
        torch.manual_seed(0)
        shared, free = nn.Linear(16, 16), nn.Parameter(torch.randn(16))
        model = nn.Sequential(shared, nn.Tanh(), shared, nn.Tanh(), shared)
        blocks = [lambda v: torch.tanh(shared(v) * free), lambda v: functional.gelu(v) * free.sigmoid(), lambda v: shared(v) + v, lambda v: v * 2]
        x = torch.randn(5, 16)

        def plain_run(v):
            for block in blocks:
                v = block(v)
            return v
        plain = clone(step(plain_run, model, x)) + [free.grad.clone()]
        budgeted = ckpt.torch.Budgeted(blocks, None)
        least = budgeted.plan_for(x).chain.minimum_budget()
        for budget in (least, 2 * least):
            free.grad = None
            self.assert_same(step(ckpt.torch.Budgeted(blocks, budget), model, x) + [free.grad], plain)
        free.grad = None
        self.assert_same(step(lambda v: ckpt.torch.checkpoint_sequential(blocks, v, segments=2), model, x) + [free.grad], plain)

    def test_in_place_behind_what_passes_its_input_through(self):
        torch.manual_seed(0)
        for before in ([nn.Identity()], [nn.Flatten(), nn.Identity()], [nn.Sequential(nn.Identity(), nn.Unflatten(1, (4, 6)))], [nn.Dropout(0.0)]):
            for first in ([], [nn.Linear(24, 24)]):
                model = nn.Sequential(*first, *before, nn.ReLU(inplace=True), nn.Flatten(), nn.Tanh(), nn.Linear(24, 24), nn.Sigmoid())
                x = torch.randn(8, 24)
                plain = clone(step(model, model, x.clone()))
                least = ckpt.torch.Budgeted(model).plan_for(x).chain.minimum_budget()
                for budget in (least, None):
                    self.assert_same(step(ckpt.torch.Budgeted(model, budget), model, x), plain)
                for segments in range(1, len(model) + 1):
                    self.assert_same(step(lambda v: ckpt.torch.checkpoint_sequential(model, v, segments=segments), model, x), plain)
                self.assert_same(step(lambda v: ckpt.torch.checkpoint(model, v), model, x), plain)

    def test_what_a_kernel_writes_after_it_was_saved(self):
        """RReLU saves its noise before it draws it: a further run may not end there."""
        torch.manual_seed(0)
        x = torch.randn(64, 8, requires_grad=True)
        model = nn.Sequential(nn.Tanh(), nn.RReLU(), nn.Linear(8, 8), nn.RReLU())
        plain = clone(step(model, model, x))
        for budget in self.budgets(model, x, 3):
            self.assert_same(step(ckpt.torch.Budgeted(model, budget), model, x), plain)
        for segments in (1, 2, 4):
            self.assert_same(step(lambda v: ckpt.torch.checkpoint_sequential(model, v, segments=segments), model, x), plain)
        self.assert_same(step(lambda v: ckpt.torch.checkpoint(model[3], model[:3](v)), model, x), plain)

    def test_a_backward_of_the_blocks_own(self):
        """Forces from energies: torch.autograd.grad inside a block, of all that it saved so far."""
        class Force(nn.Module):
            def __init__(self, create_graph):
                super().__init__()
                self.create_graph, self.parts = create_graph, nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 6))

            def forward(self, x):
                with torch.enable_grad():
                    z = x if self.create_graph else x.detach().requires_grad_(True)
                    e = self.parts(z)
                    force, = torch.autograd.grad(e.square().sum(), z, create_graph=self.create_graph)
                    again, = torch.autograd.grad((e.exp() * z).sum(), z, create_graph=self.create_graph) if self.create_graph else (z,)
                return x * force + again.sigmoid() * functional.dropout(x, 0.2)

        torch.manual_seed(0)
        for create_graph in (False, True):
            model, x = nn.Sequential(nn.Linear(6, 6), Force(create_graph), nn.Tanh(), Force(create_graph), nn.Linear(6, 6)), torch.randn(5, 6)
            state = copy.deepcopy(model.state_dict())
            plain = clone(step(model, model, x, steps=2))
            runs = [ckpt.torch.Budgeted(model, budget, measure=measure) for budget in [*self.budgets(model, x, 3), None] for measure in (False, True)]
            runs += [lambda v, n=n: ckpt.torch.checkpoint_sequential(model, v, segments=n) for n in (1, 2, 5)]
            runs += [lambda v: ckpt.torch.checkpoint(model, v), lambda v: ckpt.torch.checkpoint(ckpt.torch.checkpoint, model, v)]
            for run in runs:
                model.load_state_dict(state)
                self.assert_same(step(run, model, x, steps=2), plain)
                if isinstance(run, ckpt.torch.Budgeted) and run.measure:
                    self.assertLessEqual(run.latest.measured_peak_bytes, run.latest.predicted_peak_bytes)

    def test_buffers_that_forward_reads_and_changes(self):
        """A further run begins from what they were: power iterations, moving averages, in place or by another tensor, of any size."""
        class Average(nn.Module):
            def __init__(self, in_place):
                super().__init__()
                self.in_place = in_place
                self.register_buffer("mean", torch.zeros(1000, 6))

            def forward(self, x):
                out = x * (1 + self.mean[:5])
                if self.training:
                    with torch.no_grad():
                        if self.in_place:
                            self.mean.mul_(0.9).add_(x.mean(0))
                        else:
                            self.mean = 0.9 * self.mean + x.mean(0)
                return out * self.mean[5:10].exp()

        torch.manual_seed(0)
        spectral, new = nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm if hasattr(nn.utils, "parametrizations") else nn.utils.spectral_norm
        model = nn.Sequential(nn.Linear(6, 6), Average(True), spectral(nn.Linear(6, 6)), nn.Tanh(), Average(False), new(nn.Linear(6, 6)), nn.BatchNorm1d(6),
                              nn.Sequential(Average(True), Average(False)))
        x, state = torch.randn(5, 6), copy.deepcopy(model.state_dict())
        for captured in (False, True):  # functions that capture the modules
            blocks = [lambda v, m=m: m(v) for m in model] if captured else model
            for train in (True, False):
                model.train(train)
                model.load_state_dict(state)
                plain = clone(step(model, model, x, steps=3))
                runs = [ckpt.torch.Budgeted(blocks, budget) for budget in (ckpt.torch.Budgeted(blocks).plan_for(x).chain.minimum_budget(), None)]
                runs += [lambda v, n=n: ckpt.torch.checkpoint_sequential(blocks, v, segments=n) for n in (1, 3, 8)]
                runs += [lambda v: ckpt.torch.checkpoint(model, v), lambda v: ckpt.torch.checkpoint(ckpt.torch.checkpoint, model, v)]
                for run in runs:
                    model.load_state_dict(state)
                    self.assert_same(step(run, model, x, steps=3), plain)

    def test_complex_boundaries_and_their_lazy_conjugates(self):
        """What a node saves may read a boundary's storage as its conjugate, negated, or as real numbers."""
        torch.manual_seed(0)
        lin = nn.Linear(16, 16)
        x = torch.randn(8, 16, requires_grad=True)
        blocks = [lambda v: torch.fft.fft(torch.tanh(lin(v))), lambda c: c * c.conj() + c.exp(), lambda c: c.conj().t(),
                  lambda c: c * torch.view_as_real(c.conj())[..., 1],
                  lambda c: c.conj().imag.sin() * c.real, torch.tanh]
        model = nn.ModuleList([lin])

        def plain_run(v):
            for block in blocks:
                v = block(v)
            return v
        plain = clone(step(plain_run, model, x))
        least, most = (lambda b: (b.chain.minimum_budget(), b.plan.arena_bytes))(ckpt.torch.Budgeted(blocks).plan_for(x))
        for budget in (least, (least + most) // 2, most):
            self.assert_same(step(ckpt.torch.Budgeted(blocks, budget), model, x), plain)
        for segments in range(1, len(blocks) + 1):
            self.assert_same(step(lambda v: ckpt.torch.checkpoint_sequential(blocks, v, segments=segments), model, x), plain)

    def test_outputs_that_are_inputs_or_views_of_them_fit(self):
        torch.manual_seed(0)
        a, b = nn.Linear(16, 16), nn.Linear(16, 16)
        model, x = nn.ModuleList([a, b]), torch.randn(8, 16, requires_grad=True)
        for blocks in ([lambda v: (v, torch.tanh(a(v))), lambda t: (t[0] + t[1], t[1]), lambda t: torch.tanh(b(t[0])) * t[1]],
                       [lambda v: torch.tanh(a(v)), nn.Identity(), lambda v: torch.tanh(b(v)), nn.Identity()],
                       [lambda v: torch.tanh(a(v)), lambda v: v[1:5], torch.sin, lambda v: v.expand(3, 4, 16), torch.cos],
                       [lambda v: v, lambda v: v.t(), lambda v: torch.tanh(v), lambda v: v.t(), torch.exp]):
            def plain_run(v):
                for block in blocks:
                    v = block(v)
                return v
            plain = clone(step(plain_run, model, x))
            least, most = (lambda p: (p.chain.minimum_budget(), p.plan.arena_bytes))(ckpt.torch.Budgeted(blocks).plan_for(x))
            for budget in (least, (least + most) // 2, most):
                run = ckpt.torch.Budgeted(blocks, budget, measure=True)
                self.assert_same(step(run, model, x), plain)
                self.assertLessEqual(run.latest.measured_peak_bytes, run.latest.predicted_peak_bytes)
                self.assertLessEqual(run.latest.predicted_peak_bytes, budget)

    def test_a_buffer_that_begins_to_change(self):
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(()))
                self.changes = False

            def forward(self, x):
                if self.changes:
                    self.count.add_(1)
                return x.exp()
        late, x = Late(), torch.randn(4, requires_grad=True)
        ckpt.torch.checkpoint(late, x).sum().backward()
        late.changes = True
        with self.assertWarnsRegex(UserWarning, "Late changed its buffer 'count'"):
            ckpt.torch.checkpoint(late, x).sum().backward()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ckpt.torch.checkpoint(late, x).sum().backward()
        self.assertEqual(late.count.item(), 2)

    def test_tensors_in_containers_that_are_not_known(self):
        class Box:
            def __init__(self, value):
                self.value = value

        x = torch.randn(4, 8, requires_grad=True)
        blocks = [lambda v: [Box(v.exp())], lambda b: b[0].value.sin()]
        for run in (ckpt.torch.Budgeted(blocks), lambda v: ckpt.torch.checkpoint_sequential(blocks, v, segments=2)):
            with self.assertRaisesRegex(ckpt.UnsupportedError, r"block 0 \(<lambda>\) gives the next block a Box that holds tensors"):
                run(x)
        for run in (ckpt.torch.Budgeted([torch.sin, *blocks[:1]]), lambda v: ckpt.torch.checkpoint(blocks[0], v)):  # to the caller
            run(x)[0].value.sum().backward()

    def test_what_is_changed_between_steps(self):
        """Budget, strategy and blocks: the next step has a plan for them."""
        torch.manual_seed(0)
        model, x = nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.1))]), torch.randn(8, 16)
        least, _, most = self.budgets(model, x, 3)
        run = ckpt.torch.Budgeted(model, least)
        plain = clone(step(model, model, x))
        self.assert_same(step(run, model, x), plain)
        self.assertLessEqual(run.latest.predicted_peak_bytes, least)
        for change, recomputes in ((lambda: setattr(run, "budget", most), False), (lambda: run.__dict__.update(strategy="every_segment", budget=2 * most), True),
                                   (lambda: [setattr(m, "inplace", True) for m in model if isinstance(m, nn.ReLU)], True)):
            change()
            self.assert_same(step(run, model, x), plain)
            self.assertEqual(run.latest.plan.recompute_count > 0, recomputes)
        model.append(nn.Linear(16, 16)) if hasattr(model, "append") else model.add_module("last", nn.Linear(16, 16))
        self.assert_same(step(run, model, x), clone(step(model, model, x)))

    def test_copies_and_pickles_after_a_step(self):
        torch.manual_seed(0)
        x = torch.randn(4, 4, 8, 8)
        run = ckpt.torch.Budgeted(models.cnn(4, 4), "1MiB")
        run(x).sum().backward()
        written = io.BytesIO()
        torch.save(run, written)
        written.seek(0)
        for other in (copy.deepcopy(run), torch.load(written, **({"weights_only": False} if MODERN else {}))):
            self.assertEqual(other.budget, 1 << 20)
            self.assert_same(list(other.state_dict().values()), list(run.state_dict().values()))
            self.assertFalse({p.data_ptr() for p in other.parameters()} & {p.data_ptr() for p in run.parameters()})
            state = copy.deepcopy(run.state_dict())
            self.assert_same(step(other, other, x), clone(step(run, run, x)))
            run.load_state_dict(state)

    def test_a_backward_into_earlier_blocks(self):
        x = torch.randn(5, 6, requires_grad=True)
        blocks = [lambda v: v.exp().sin(), lambda v: v * torch.autograd.grad(v.sum(), x, retain_graph=True)[0]]
        with self.assertRaisesRegex(ckpt.UnsupportedError if MODERN else RuntimeError, r"backward reaches block 0 \(<lambda>\) from inside a later block"):
            ckpt.torch.checkpoint_sequential(blocks, x, segments=2)

    def test_containers_pass_between_blocks(self):
        torch.manual_seed(0)
        a, b = nn.Linear(8, 8), nn.Linear(8, 8)
        model = nn.ModuleList([a, b])
        blocks = [lambda x: {"x": torch.tanh(a(x)), "more": (x * 2, 3, None)}, lambda d: (b(d["x"]) * d["more"][1], d["more"][0]),
                  lambda t: torch.sigmoid(t[0]) + t[1]]

        def plain_run(v):
            for block in blocks:
                v = block(v)
            return v
        x = torch.randn(4, 8, requires_grad=True)
        plain = clone(step(plain_run, model, x))
        least = ckpt.torch.Budgeted(blocks).plan_for(x).chain.minimum_budget()
        for budget in (least, least + 1024, None):
            self.assert_same(step(ckpt.torch.Budgeted(blocks, budget), model, x), plain)


def live_bytes(without=()):
    """Of all tensors that Python sees, each storage once, rounded as the planner does."""
    gc.collect()
    skip = {t.data_ptr() for t in without}
    found = {}
    for o in gc.get_objects():
        if issubclass(type(o), torch.Tensor) and o.layout is torch.strided and o.data_ptr() not in skip and o.dtype.is_floating_point:
            storage = o.untyped_storage() if hasattr(o, "untyped_storage") else o.storage()
            found[storage.data_ptr()] = (storage.nbytes() + 511) // 512 * 512
    return sum(found.values())


class Memory(Equal):
    def test_between_forward_and_backward_lives_what_the_plan_holds(self):
        """Counted from outside: whatever refers to a tensor."""
        torch.manual_seed(0)
        model, x = models.cnn(12, 8), torch.randn(4, 8, 16, 16)
        own = [x, *model.parameters(), *model.buffers()]
        for budget in self.budgets(model, x, 3)[:2]:
            run = ckpt.torch.Budgeted(model, budget, measure=True)  # with hooks on all blocks, Python sees all tensors
            run.plan_for(x)
            before = live_bytes(own)
            y = run(x)
            held = live_bytes([*own, y]) - before
            self.assertLessEqual(abs(held - run.latest.plan.held_bytes), 1024)
            y.sum().backward()
            del y
            for p in model.parameters():
                p.grad = None
            self.assertEqual(live_bytes(own), before)

    def test_looking_at_blocks_keeps_nothing(self):
        model, x = models.cnn(4, 8), torch.randn(4, 8, 16, 16)
        before = live_bytes()
        for _ in range(3):
            ckpt.torch.Budgeted(model).plan_for(x)
        self.assertEqual(live_bytes(), before)


class EarlyEnds(Equal):
    """A further run for what is saved alone ends when that is there: the plan knows what it saves by that."""

    def setUp(self):
        torch.manual_seed(0)
        self.model, self.x = models.gpt(8, 16, 2), torch.randn(2, 8, 16)
        self.blocks = list(self.model)

    def planned(self, budget, enough):
        looks, start = look_all(self.blocks, [str(k) for k in range(8)], (self.x,), {})
        for one in looks:
            one.seconds, one.enough_seconds = 1.0, enough
        return ckpt.torch.Planned(self.blocks, looks, start, budget, "auto")

    @staticmethod
    def again(planned, enough):
        """Seconds of further runs: those that give no output take `enough`."""
        seen, sum_of = set(), 0
        for s in planned.program.steps:
            if s.kind == "forward":
                sum_of += 0 if s.index not in seen else 1 if s.output else enough
                seen.add(s.index)
        return sum_of

    def test_plans(self):
        whole = self.planned(None, 1.0)
        for point in whole.chain.curve():
            late, early = self.planned(point.budget_bytes, 1.0), self.planned(point.budget_bytes, 0.75)
            self.assertAlmostEqual(late.plan.summary.recompute_seconds, self.again(late, 1))
            self.assertAlmostEqual(early.plan.summary.recompute_seconds, self.again(early, 0.75))
            self.assertLessEqual(self.again(early, 0.75), self.again(late, 0.75) + 1e-9)
            self.assertEqual(early.plan.summary.minimum_budget_bytes, late.plan.summary.minimum_budget_bytes)
            self.assertLessEqual(early.plan.summary.universal_gap_seconds, early.plan.summary.recompute_seconds + 1e-9)
        # Two thirds of the bytes: single blocks are run again, and none for its output.
        early = self.planned(whole.plan.arena_bytes * 2 // 3, 0.75)
        self.assertAlmostEqual(self.again(early, 0.75), 0.75 * self.again(early, 1))

    @unittest.skipUnless(MODERN, "PyTorch 1 runs to the end")
    def test_what_is_measured(self):
        looks, _ = look_all(self.blocks, [str(k) for k in range(8)], (self.x,), {})
        for one in looks:  # all but the second product of the MLP and a sum
            self.assertLess(one.enough_seconds, one.seconds)
            self.assertGreater(one.enough_seconds, 0)
            self.assertEqual((one.seconds, one.enough_seconds), (looks[0].seconds, looks[0].enough_seconds))
        late = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.RReLU()).train() for _ in range(3)])
        for one in look_all(list(late), ["a", "b", "c"], (self.x,), {})[0]:  # its noise is written after it is saved
            self.assertEqual(one.enough_seconds, one.seconds)

    def test_gradients_and_peaks(self):
        self.check(self.model, self.x)


class Checkpoint(Equal):
    def test_kwargs_containers_and_other_arguments(self):
        torch.manual_seed(0)
        lin = nn.Linear(6, 6)

        def block(x, scale, *, parts, flag, none=None):
            y = torch.tanh(lin(x)) * scale + parts["a"][0] * parts["b"]
            return {"y": functional.dropout(y, 0.3) if flag else y, "n": none}

        x, other = torch.randn(3, 6, requires_grad=True), torch.randn(3, 6, requires_grad=True)
        outs = []
        for run in (lambda f, *a, **k: f(*a, **k), ckpt.torch.checkpoint):
            for t in (x, other, *lin.parameters()):
                t.grad = None
            torch.manual_seed(3)
            out = run(block, x, 2.5, parts={"a": [other], "b": 3}, flag=True)
            self.assertIsNone(out["n"])
            out["y"].square().sum().backward()
            outs.append(clone([out["y"].detach(), x.grad, other.grad, *(p.grad for p in lin.parameters()), torch.get_rng_state()]))
        self.assert_same(*outs)

    def test_memory_is_given_back(self):
        """Between forward and backward nothing of the block is kept but its input."""
        kept = []

        def block(x):
            y = torch.exp(x)
            kept.append(weakref.ref(y))
            return (y * y).sum()
        x = torch.randn(1000, requires_grad=True)
        out = ckpt.torch.checkpoint(block, x)
        self.assertEqual([r() for r in kept], [None])
        out.backward()
        self.assertEqual(len(kept), 2)
        del out
        gc.collect()
        self.assertIsNone(kept[1]())
        self.assertTrue(torch.equal(x.grad, 2 * torch.exp(x.detach()) ** 2) or torch.allclose(x.grad, 2 * torch.exp(x.detach()) ** 2))

    def test_no_grad(self):
        calls = []
        lin = nn.Linear(3, 3)
        with torch.no_grad():
            y = ckpt.torch.checkpoint(lambda v: calls.append(1) or lin(v), torch.ones(2, 3))
            z = ckpt.torch.Budgeted(nn.Sequential(lin, lin), "1KiB")(torch.ones(2, 3))
        self.assertFalse(y.requires_grad or z.requires_grad)
        self.assertEqual(len(calls), 1)

    def test_bad_arguments(self):
        x = torch.ones(2, 3)
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
        for call, pattern in ((lambda: ckpt.torch.checkpoint(model, x, use_reentrant=True), "use_reentrant"),
                              (lambda: ckpt.torch.checkpoint(model, x, context_fn=print), "context_fn"),
                              (lambda: ckpt.torch.checkpoint(model, x, determinism_check="none"), "determinism_check"),
                              (lambda: ckpt.torch.checkpoint_sequential(model, x), "expected one of them"),
                              (lambda: ckpt.torch.checkpoint_sequential(model, x, "1MiB", segments=2), "expected one of them"),
                              (lambda: ckpt.torch.checkpoint_sequential(model, x, segments=4), "expected 1 to 3"),
                              (lambda: ckpt.torch.checkpoint_sequential(model, x, segments=0), "expected 1 to 3"),
                              (lambda: ckpt.torch.checkpoint_sequential(nn.Linear(3, 3), x, segments=1), "modules is Linear"),
                              (lambda: ckpt.torch.checkpoint_sequential([], x, segments=1), "empty"),
                              (lambda: ckpt.torch.Budgeted(None), "modules is NoneType"), (lambda: ckpt.torch.checkpoint(None, x), "function is NoneType"),
                              (lambda: ckpt.torch.checkpoint_sequential([model, 3], x, segments=1), r"modules\[1\] is int"),
                              (lambda: ckpt.torch.Budgeted(model, "lots"), "budget is 'lots'"),
                              (lambda: ckpt.torch.Budgeted(model, 0), "budget is 0"),
                              (lambda: ckpt.torch.Budgeted(model, 16)(x), "smallest|budget")):
            with self.assertRaisesRegex(ckpt.Error, pattern):
                call()


if __name__ == "__main__":
    unittest.main()
