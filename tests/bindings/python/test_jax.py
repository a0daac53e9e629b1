"""ckpt.jax: gradients as without checkpointing, programs and residuals as planned."""
import copy
import os
import pickle
import sys
import unittest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax
except ImportError as error:
    print(f"skipped: JAX cannot be imported ({error})")
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

import ckpt
import ckpt.jax

print(f"JAX {jax.__version__}")
WIDTH, ROWS, LAYERS = 32, 64, 8


def block(p, x):
    return x + jnp.tanh(jax.nn.gelu(x @ p["w1"]) @ p["w2"])


def halved(v):
    return v / 2


def params():
    random = np.random.default_rng(0)
    return [{"w1": jnp.asarray(random.normal(size=(WIDTH, 4 * WIDTH)) * 0.1, jnp.float32),
             "w2": jnp.asarray(random.normal(size=(4 * WIDTH, WIDTH)) * 0.1, jnp.float32)} for _ in range(LAYERS)]


def x():
    return jnp.asarray(np.random.default_rng(1).normal(size=(ROWS, WIDTH)), jnp.float32)


def plain(v, ps):
    for p in ps:
        v = block(p, v)
    return v


def loss(f):
    return lambda v, ps: jnp.sum(f(v, ps) ** 2)


def same(test, a, b, exact=True):
    for one, two in zip(jax.tree_util.tree_leaves(a), jax.tree_util.tree_leaves(b)):
        test.assertTrue(np.array_equal(one, two) if exact else np.allclose(one, two, rtol=2e-5, atol=1e-5))


class Chains(unittest.TestCase):
    def budgets(self):
        probe = ckpt.jax.checkpoint_chain([block] * LAYERS)
        jax.eval_shape(probe, x(), params())
        least, most = probe.latest.chain.minimum_budget(), probe.latest.plan.arena_bytes
        self.assertLess(2 * least, most)
        return least, (least + most) // 2, most

    def test_gradients(self):
        expected = jax.value_and_grad(loss(plain), (0, 1))(x(), params())
        compiled = jax.jit(jax.value_and_grad(loss(plain), (0, 1)))(x(), params())
        for budget in self.budgets():
            f = ckpt.jax.checkpoint_chain([block] * LAYERS, budget)
            same(self, jax.value_and_grad(loss(f), (0, 1))(x(), params()), expected)
            same(self, jax.jit(jax.value_and_grad(loss(f), (0, 1)))(x(), params()), compiled, exact=False)
            self.assertLessEqual(f.latest.plan.arena_bytes, budget)

    def test_work_is_what_the_plan_says(self):
        """The gradient's trace has one tanh for each forward of a block."""
        for budget in self.budgets():
            f = ckpt.jax.checkpoint_chain([block] * LAYERS, budget)
            text = str(jax.make_jaxpr(jax.grad(loss(f)))(x(), params()))
            forwards = sum(a.kind == "forward" for a in f.latest.actions)
            self.assertEqual(text.count("= tanh "), 2 * forwards)  # gelu has one too

    def test_residuals_are_what_the_plan_holds(self):
        """Between forward and backward. (What a compiled step takes is XLA's: on the CPU its scheduler makes as much of it as without.)"""
        held = []
        for budget in self.budgets():
            f = ckpt.jax.checkpoint_chain([block] * LAYERS, budget)
            trace = jax.make_jaxpr(lambda v, p: jax.vjp(f, v, p))(x(), params()).jaxpr
            given = {id(v) for v in trace.invars} | {id(trace.outvars[0])}
            own = {id(v): v.aval.size * v.aval.dtype.itemsize for v in trace.outvars if id(v) not in given}
            held.append(sum(own.values()))
            self.assertLessEqual(abs(held[-1] - f.latest.plan.held_bytes), 2048)
        self.assertLess(held[0], held[1])
        self.assertLess(held[1], held[2])

    def test_closures_containers_and_integers(self):
        w = params()[0]["w1"]

        def run(f):
            def total(w, v):
                return jnp.sum(f(w, v))
            return jax.value_and_grad(total, (0, 1))(w, x())

        def blocks(w):
            return [lambda v: {"x": v @ w, "n": jnp.arange(3)}, lambda d: (jnp.sin(d["x"]), d["n"]), lambda t: jnp.cos(t[0]) * t[1].sum(),
                    lambda v: v @ w.T]

        def by_hand(w, v):
            for b in blocks(w):
                v = b(v)
            return v
        same(self, run(lambda w, v: ckpt.jax.checkpoint_chain(blocks(w))(v)), run(by_hand))
        probes = []

        def probe(w, v):
            probes.append(ckpt.jax.checkpoint_chain(blocks(w)))
            return probes[-1](v)
        run(probe)
        least = probes[0].latest.chain.minimum_budget()
        same(self, run(lambda w, v: ckpt.jax.checkpoint_chain(blocks(w), least)(v)), run(by_hand))

    def test_random_keys(self):
        keys = jax.random.split(jax.random.PRNGKey(3), LAYERS)

        def drop(p, v):
            return block(p[0], v) * jax.random.bernoulli(p[1], 0.8, v.shape)

        both = list(zip(params(), keys))

        def by_hand(v):
            for p in both:
                v = drop(p, v)
            return jnp.sum(v ** 2)
        f = ckpt.jax.checkpoint_chain([drop] * LAYERS, self.budgets()[1])
        same(self, jax.grad(lambda v: jnp.sum(f(v, both) ** 2))(x()), jax.grad(by_hand)(x()))

    def test_refusals(self):
        for call, pattern in ((lambda: ckpt.jax.checkpoint_chain([]), "empty"), (lambda: ckpt.jax.checkpoint_chain([3]), r"blocks\[0\] is int"),
                              (lambda: ckpt.jax.checkpoint_chain([block], "much"), "budget is 'much'"),
                              (lambda: ckpt.jax.checkpoint_chain([block])(x(), params()), "expected 1"),
                              (lambda: ckpt.jax.checkpoint_chain([block] * LAYERS, 1000)(x(), params()), "budget|smallest")):
            with self.assertRaisesRegex(ckpt.Error, pattern):
                call()


    def test_copies_and_many_shapes(self):
        chain = ckpt.jax.checkpoint_chain([halved])
        for n in range(1, 19):
            jax.eval_shape(chain, jax.ShapeDtypeStruct((n,), jnp.float32))
        self.assertLessEqual(len(chain._planned), 16)
        for other in (copy.copy(chain), copy.deepcopy(chain), pickle.loads(pickle.dumps(chain))):
            self.assertIsNone(other.latest)
            self.assertTrue(np.array_equal(other(x()), chain(x())))


class Policies(unittest.TestCase):
    def test_named_residuals(self):
        segments = [{"name": f"block{k}", "forward_seconds": 1.0, "backward_seconds": 2.0, "output_bytes": 1024,
                     "slots": [{"name": "a", "bytes": 4096, "cost_seconds": 0.6}, {"name": "b", "bytes": 2048, "cost_seconds": 0.1, "reads": ["a"]}]}
                    for k in range(4)]
        chain = ckpt.chain(segments)

        def model(v, ps):
            for p in ps[:4]:
                a = checkpoint_name(jnp.sin(v @ p["w1"]), "a")
                b = checkpoint_name(jnp.exp(-a * a), "b")
                v = b @ p["w2"]
            return jnp.sum(v)

        def count(plan):
            f = jax.checkpoint(model, policy=ckpt.jax.policy(chain, plan))
            same(self, jax.grad(f)(x(), params()), jax.grad(model)(x(), params()), exact=False)
            return str(jax.make_jaxpr(jax.grad(f))(x(), params())).count("= sin ")
        everything = count(chain.plan(strategy="selective", keep=["a", "b"]))
        nothing = count(chain.plan(strategy="selective", recompute=["a", "b"]))
        self.assertLess(everything, nothing)
        ckpt.jax.policy(chain, chain.plan(strategy="selective", keep=["a", "b"]), offload=["a"])
        with self.assertRaisesRegex(ckpt.NotFoundError, "'c'"):
            ckpt.jax.policy(chain, chain.plan(), offload=["c"])


if __name__ == "__main__":
    unittest.main()
