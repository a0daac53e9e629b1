"""ckpt.torch within graphs of autograd: several backwards, hooks, faults, what changes between forward and backward, processes."""
import copy
import gc
import tempfile
import unittest
import weakref

from equal import MODERN, Equal, clone, step  # leaves where there is no PyTorch
import torch
from torch import nn

import ckpt
import ckpt.torch
import models


class Graphs(Equal):
    def setUp(self):
        torch.manual_seed(0)
        self.model, self.x = models.gpt(4, 16, 2, dropout=0.1), torch.randn(2, 8, 16, requires_grad=True)
        self.least = self.budgets(self.model, self.x, 2)[0]

    def runs(self):
        yield "least", ckpt.torch.Budgeted(self.model, self.least)
        yield "half", ckpt.torch.Budgeted(self.model, 2 * self.least)
        yield "segments", lambda v: ckpt.torch.checkpoint_sequential(self.model, v, segments=3)
        yield "one", lambda v: ckpt.torch.checkpoint(self.model, v)

    def compare(self, act):
        """act(run, x) -> tensors."""
        def fresh():
            torch.manual_seed(5)
            for p in self.model.parameters():
                p.grad = None
            return self.x.detach().clone().requires_grad_(True)
        plain = clone(act(self.model, fresh()))
        for name, run in self.runs():
            with self.subTest(name):
                self.assert_same(act(run, fresh()), plain)

    def grads(self, x):
        return [x.grad, *(p.grad for p in self.model.parameters())]

    def test_retain_graph_and_several_backwards(self):
        def act(run, x):
            y = run(x)
            y.sum().backward(retain_graph=True)
            first = clone(self.grads(x))
            y.square().sum().backward(retain_graph=True)
            y[0].sum().backward()
            return first + self.grads(x)
        self.compare(act)

    def test_accumulation(self):
        def act(run, x):
            for k in range(3):
                run(x * (k + 1)).sum().backward()
            return self.grads(x)
        self.compare(act)

    def test_two_forwards_before_backward(self):
        def act(run, x):
            a, b = run(x), run(2 * x)
            a.sum().backward()
            b.sum().backward()
            return self.grads(x)
        self.compare(act)

    def test_autograd_grad_of_some(self):
        def act(run, x):
            return list(torch.autograd.grad(run(x).sum(), [x, self.model[2].fc1.weight]))
        self.compare(act)

    def test_double_backward(self):
        def act(run, x):
            (g,) = torch.autograd.grad(run(x).square().sum(), x, create_graph=True)
            (h,) = torch.autograd.grad(g.square().sum(), x)
            return [g.detach(), h]
        self.compare(act)

    def test_tensor_hooks_and_module_hooks(self):
        def act(run, x):
            seen = []
            handles = [self.model[1].fc1.weight.register_hook(lambda g: seen.append(g.clone())), self.model[2].register_full_backward_hook(
                lambda m, i, o: seen.append(o[0].clone()))]
            run(x).sum().backward()
            for h in handles:
                h.remove()
            return seen + self.grads(x)
        self.compare(act)

    def test_modes_parameters_and_buffers_are_those_of_the_first_run(self):
        """A further run finds them as they were: eval() or a return from functional_call may come before backward."""
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(16, 16)
                self.register_buffer("scale", torch.ones(16))

            def forward(self, v):
                v = torch.exp(torch.tanh(self.lin(v))) * self.scale
                return v * 1.7 if self.training else v

        torch.manual_seed(0)
        model = nn.Sequential(*[Scaled() for _ in range(4)])
        other = {f"module.{n}": t.detach() * 2 for n, t in [*model.named_parameters(), *model.named_buffers()]}
        functional_call = getattr(getattr(torch, "func", None), "functional_call", None)
        runs = [model, *[ckpt.torch.Budgeted(model, b) for b in self.budgets(model, self.x, 3)],
                *[lambda v, n=n: ckpt.torch.checkpoint_sequential(model, v, segments=n) for n in (1, 2, 4)], lambda v: ckpt.torch.checkpoint(model, v)]

        class Holder(nn.Module):
            def __init__(self, run):
                super().__init__()
                self.module, self.run = model, [run]

            def forward(self, v):
                return self.run[0](v)
        outs = []
        for run in runs:
            x = self.x.detach().clone().requires_grad_(True)
            model.zero_grad(set_to_none=True)
            y = run(x)
            model.eval()
            y.square().sum().backward()
            self.assertFalse(any(m.training for m in model.modules()))
            out = [x.grad, *(p.grad for p in model.parameters())]
            if functional_call is not None:
                given = {n: t.clone().requires_grad_("scale" not in n) for n, t in other.items()}
                y = functional_call(Holder(run), given, (x,))
                y.square().sum().backward()
                out += [x.grad, *(t.grad for t in given.values())]
                self.assertTrue(all(m.scale.eq(1).all() for m in model))
            model.train()
            outs.append(clone(out))
        for out in outs[1:]:
            self.assert_same(out, outs[0])

    def test_a_buffer_that_changes_before_backward(self):
        model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Tanh()) for _ in range(3)])
        x = torch.randn(8, 16)
        for run in (lambda v: ckpt.torch.checkpoint_sequential(model, v, segments=3), lambda v: ckpt.torch.checkpoint(model, v)):
            model.eval()
            y = run(x)
            model.train()
            run(x)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                y.sum().backward()

    @unittest.skipUnless(hasattr(torch, "func"), "torch.func")
    def test_transforms_are_refused(self):
        for transform in (torch.func.grad(lambda v: ckpt.torch.Budgeted(self.model, self.least)(v).sum()),
                          lambda x: torch.func.vmap(ckpt.torch.Budgeted(self.model, self.least))(x[None])):
            with self.assertRaisesRegex(ckpt.UnsupportedError, "torch.func"):
                transform(self.x.detach())

    def test_changed_in_place(self):
        for name, run in self.runs():
            with self.subTest(name):
                y = run(self.x)
                with torch.no_grad():
                    self.model[1].fc2.bias.add_(1)
                    self.model[1].fc2.weight.add_(1)
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    y.sum().backward()
                x = self.x.detach().clone()
                y = run(x)
                x.add_(1)
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    y.sum().backward()

    def test_exception_in_recompute_and_the_step_after_it(self):
        armed = [False]

        class Mine(Exception):
            pass

        def block(v):
            if armed[0]:
                raise Mine("in recompute")
            return torch.tanh(v * 2) * torch.sigmoid(v) * torch.exp(v)
        x = torch.randn(4, 4, requires_grad=True)
        blocks = [torch.sigmoid, block, torch.tanh, block]
        least = ckpt.torch.Budgeted(blocks).plan_for(x).chain.minimum_budget()
        for run in (lambda v: ckpt.torch.checkpoint(block, v), ckpt.torch.Budgeted(blocks, least),
                    lambda v: ckpt.torch.checkpoint_sequential(blocks, v, segments=3)):
            y = run(x)
            armed[0] = True
            state = torch.get_rng_state()
            with self.assertRaisesRegex(Mine if MODERN else RuntimeError, "in recompute"):
                y.sum().backward(retain_graph=True)
            self.assertTrue(torch.equal(torch.get_rng_state(), state))
            armed[0] = False
            x.grad = None
            y.sum().backward()
            again, x.grad = x.grad, None
            run(x).sum().backward()
            self.assertTrue(torch.equal(again, x.grad))
            x.grad = None

    def test_another_route_in_recompute(self):
        count = [0]

        def block(v):
            count[0] += 1
            return torch.tanh(v[:count[0]] * 2).sum()
        with self.assertRaisesRegex(ckpt.CheckError if MODERN else RuntimeError, r"block 0 \(block\) saved another tensor.*\[2, 3\].* instead of .*\[1, 3\]"):
            ckpt.torch.checkpoint(block, torch.randn(4, 3, requires_grad=True)).backward()

        def fewer(v):
            count[0] += 1
            return torch.tanh(torch.tanh(v)).sum() if count[0] % 2 else torch.tanh(v).sum()
        count[0] = 0
        with self.assertRaisesRegex(ckpt.CheckError if MODERN else RuntimeError, "saved .* tensors when it ran again"):
            ckpt.torch.checkpoint(fewer, torch.randn(4, 3, requires_grad=True)).backward()

    def test_steps_do_not_grow(self):
        import resource
        run = ckpt.torch.Budgeted(self.model, self.least)

        def tensors():
            return sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects())
        for k in range(300):
            run(self.x).sum().backward()
            if k == 50:
                gc.collect()
                before, resident = tensors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if k % 7 == 3:
                run(self.x)  # no backward
        gc.collect()
        self.assertLessEqual(tensors(), before + 2)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident, 8 << 10)

    def hiding(self):
        class Hides(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.hidden, self.uses = nn.Linear(4, 4), [nn.BatchNorm1d(4)], True

            def forward(self, v):
                v = torch.tanh(self.inner(v))
                return torch.tanh(self.hidden[0](v)) if self.uses else v

        torch.manual_seed(1)
        blocks = [Hides() for _ in range(4)]
        return blocks, copy.deepcopy(blocks), torch.randn(8, 4, requires_grad=True)

    def same_gradients(self, run, other, x):
        out = []
        for model in (run, other):
            x.grad = None
            model(x).sum().backward()
            out.append(x.grad)
        self.assertTrue(torch.equal(*out))

    def test_module_that_is_registered_nowhere(self):
        """Found where it runs: its statistics move once a step, though its block runs twice."""
        blocks, copies, x = self.hiding()
        run, other = ckpt.torch.Budgeted(nn.Sequential(*blocks), strategy="every_segment"), nn.Sequential(*copies)
        for _ in range(3):
            self.same_gradients(run, other, x)
        for b, c in zip(blocks, copies):
            self.assertTrue(torch.equal(b.hidden[0].running_mean, c.hidden[0].running_mean))

    def test_module_that_is_registered_nowhere_and_runs_later(self):
        """In a block that was looked at without it."""
        blocks, copies, x = self.hiding()
        run, other = ckpt.torch.Budgeted(nn.Sequential(*blocks), strategy="every_segment"), nn.Sequential(*copies)
        for k in range(4):
            for b in blocks + copies:
                b.uses = k > 0
            self.same_gradients(run, other, x)
            for b, c in zip(blocks, copies):
                self.assertTrue(torch.equal(b.hidden[0].running_mean, c.hidden[0].running_mean))

    def test_what_a_block_saves_is_not_what_the_look_saw(self):
        """Hints about tensors are about memory alone: outputs and inputs that are saved now and were not then, a parameter for a tensor."""
        free = nn.Parameter(torch.ones(8))

        class Route(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.route = nn.Linear(8, 8), 0

            def forward(self, v):
                if self.route == 0:
                    return (self.inner(v) + 1) * 2
                if self.route == 1:
                    return torch.tanh(v * v)
                if self.route == 2:
                    return torch.sigmoid(self.inner(v)).exp().sin()
                return (v + 1) * free if self.route == 3 else v + 1

        torch.manual_seed(0)
        blocks = [Route() for _ in range(5)]
        copies, x = copy.deepcopy(blocks), torch.randn(4, 8, requires_grad=True)
        ways = [(0, 0, 0, 0, 0), (2, 2, 2, 2, 2), (0, 1, 2, 0, 1), (1, 2, 0, 3, 2), (4, 4, 0, 4, 0)]
        for seen in ways:
            for b, route in zip(blocks, seen):
                b.route = route
            for point in ckpt.torch.Budgeted(nn.Sequential(*blocks)).plan_for(x).chain.curve():
                if point.budget_bytes == 0:
                    continue
                run = ckpt.torch.Budgeted(nn.Sequential(*blocks), point.budget_bytes)
                for taken in (seen, *ways):
                    for b, c, route in zip(blocks, copies, taken):
                        b.route = c.route = route
                    self.same_gradients(run, nn.Sequential(*copies), x)
                for b, route in zip(blocks, seen):
                    b.route = route
        for b in blocks:
            b.route = 0
        run = ckpt.torch.Budgeted(nn.Sequential(*blocks), strategy="every_segment")
        run(x).sum().backward()
        for b in blocks:
            b.route = 3
        y = run(x)
        with torch.no_grad():
            free.mul_(3)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_output_that_is_changed_behind_its_block(self):
        """A block saves its output, a view of which the same block changes: as plain autograd, and held by nobody afterwards."""
        class Ends(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(8)

            def forward(self, v):
                return torch.relu_(self.norm(v).reshape(2, 24))

        torch.manual_seed(0)
        model, x = nn.Sequential(Ends(), nn.Linear(24, 8), nn.Sigmoid()), torch.randn(6, 8, requires_grad=True)
        other = copy.deepcopy(model)
        for point in ckpt.torch.Budgeted(model).plan_for(x).chain.curve():
            self.same_gradients(ckpt.torch.Budgeted(model, point.budget_bytes), other, x)

    def test_callables_with_attributes_of_our_names(self):
        class Function:
            parts = 4

            def __call__(self, v):
                return v.sin().exp()

        x = torch.randn(3, requires_grad=True)
        self.same_gradients(ckpt.torch.Budgeted([Function(), torch.sin]), lambda v: torch.sin(Function()(v)), x)
        self.same_gradients(lambda v: ckpt.torch.checkpoint(Function(), v), Function(), x)

    def test_a_block_on_a_copy_of_its_input_is_in_the_plans_key(self):
        class InPlace(nn.Module):
            def __init__(self):
                super().__init__()
                self.r, self.l, self.k = nn.ReLU(inplace=True), nn.Linear(8, 8), nn.Linear(8, 64)

            def forward(self, v):
                return torch.tanh(self.k(torch.tanh(self.l(self.r(v)))))

        model, x = nn.Sequential(nn.Identity(), InPlace(), nn.Linear(64, 8)), torch.randn(4, 8)
        run = ckpt.torch.Budgeted(model, measure=True)
        model[1].requires_grad_(False)
        run(x).sum().backward()
        frozen = run.latest
        model.requires_grad_(True)
        run(x).sum().backward()
        self.assertIsNot(run.latest, frozen)
        self.assertEqual(run.latest.measured_peak_bytes, run.latest.predicted_peak_bytes)

    def test_norm_that_reads_its_running_mean(self):
        class Reads(nn.BatchNorm1d):
            def forward(self, v):
                return super().forward(v) + self.running_mean.clone()

        torch.manual_seed(0)
        model, x = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), Reads(4), nn.Tanh()) for _ in range(3)]), torch.randn(8, 4, requires_grad=True)
        run, other = ckpt.torch.Budgeted(model, strategy="every_segment"), copy.deepcopy(model)
        for _ in range(3):
            self.same_gradients(run, other, x)

    def test_kept_tensor_that_is_changed(self):
        """A block's own tensors, kept from first run to backward: changing one is found, and named."""
        class Exposes(nn.Module):
            def forward(self, v):
                self.seen = torch.tanh(v * v)
                return self.seen.sin().cos()

        blocks = nn.Sequential(*[Exposes() for _ in range(6)])
        x = torch.randn(64, 16, requires_grad=True)
        found = False
        for point in ckpt.torch.Budgeted(blocks).plan_for(x).chain.curve():
            run = ckpt.torch.Budgeted(blocks, point.budget_bytes)
            y = run(x)
            program = run.latest.program
            for i in (i for i in range(6) if program.stays[i] and not program.plain[i]):
                found = True
                with torch.no_grad():
                    blocks[i].seen.zero_()
                with self.assertRaisesRegex(RuntimeError, rf"modified by an inplace operation: inside block {i} \(Exposes\)"):
                    y.sum().backward()
                break
        self.assertTrue(found)

    def test_looking_leaves_no_trace(self):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        blocks = [model[0], lambda v: model[1](v), model[2]]
        before, state = clone(model.buffers()), torch.get_rng_state()
        ckpt.torch.Budgeted(blocks, None).plan_for(torch.randn(8, 4))
        torch.set_rng_state(state)
        ckpt.torch.Budgeted(blocks, None).plan_for(torch.zeros(8, 4))
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        self.assert_same(list(model.buffers()), before)
        self.assertTrue(all(p.grad is None for p in model.parameters()))

    def test_checkpoint_sequential_does_not_keep_models(self):
        model = models.gpt(3, 16, 2)
        ckpt.torch.checkpoint_sequential(model, self.x, budget="100MiB").sum().backward()
        ref = weakref.ref(model[0])
        del model
        gc.collect()
        self.assertIsNone(ref())

    @unittest.skipUnless(torch.distributed.is_available() and torch.distributed.is_gloo_available() if hasattr(torch.distributed, "is_gloo_available")
                         else False, "gloo")
    def test_distributed_data_parallel(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            try:
                plain = clone(step(self.model, self.model, self.x))
                for budget in (self.least, None):
                    wrapped = nn.parallel.DistributedDataParallel(ckpt.torch.Budgeted(self.model, budget))
                    self.assert_same(step(wrapped, self.model, self.x), plain)
            finally:
                torch.distributed.destroy_process_group()


if __name__ == "__main__":
    unittest.main()
