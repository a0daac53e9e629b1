"""vectors/vectors.txt: known answers that all four languages check. Philox: those of tests/vectors/philox.txt. Revolve: by dynamic
programming over the recursion, not by the closed form that the library uses. Plans: fixed strategies, whose programs are defined, not
found, and the smallest budget of a chain whose optimum is known by enumeration."""
import functools

from generator.model import ROOT

HEAD = """# Known answers for all languages. Written by bindings/generate.py; frozen.
#
# revolve  steps snapshots extra_forwards           (decimal)
# chain    name json
# plan     chain strategy budget_bytes arena_bytes peak_bytes hash     (decimal, hash hexadecimal)
# toosmall chain strategy budget_bytes minimum_budget_bytes            (BUDGET; the text has the minimum)
#
"""

CHAIN = ('{"input":{"bytes":4096},"segments":['
         '{"name":"a","forward_seconds":1,"backward_seconds":2,"output_bytes":4096,"slots":['
         '{"name":"qkv","bytes":12288,"cost_seconds":0.3},{"name":"act","bytes":16384,"cost_seconds":0.1,"reads":["qkv"]}],"output_reads":["act"]},'
         '{"name":"b","forward_seconds":1,"backward_seconds":2,"output_bytes":4096,"saved_bytes":8192},'
         '{"name":"c","forward_seconds":2,"backward_seconds":4,"output_bytes":4096,"saved_bytes":8192},'
         '{"name":"d","forward_seconds":1,"backward_seconds":1,"output_bytes":4,"saved_bytes":1024}]}')

PLANS = [
    "plan four store_all 0 66560 66560 3dfc72b4b155f4f4",
    "plan four every_segment 0 36864 36864 98342e765f612ba8",
    "plan four sqrt 0 53248 53248 2c0e1c527c4f0188",
    "plan four uniform:3 0 65536 65536 ceca0ec42fefece9",
    "plan four full 0 40960 40960 6be148d28bab5d04",
    "plan four auto 0 66560 66560 3dfc72b4b155f4f4",
    "toosmall four auto 36863 36864",
    "toosmall four store_all 66559 66560",
]


@functools.lru_cache(maxsize=None)
def extra_forwards(steps, snapshots):
    """The fewest advances that reverse `steps` steps from a stored input with `snapshots` snapshots, that one included."""
    if steps <= 1:
        return 0
    if snapshots == 1:
        return steps * (steps - 1) // 2
    return min(first + extra_forwards(steps - first, snapshots - 1) + extra_forwards(first, snapshots) for first in range(1, steps))


def write(_):
    lines = [f"revolve {steps} {snapshots} {extra_forwards(steps, snapshots)}"
             for steps, snapshots in ((1, 1), (2, 1), (4, 4), (10, 3), (100, 3), (100, 5), (225, 15))]
    # Published: Griewank and Walther's tables.
    lines += ["revolve 500 4 3213", "revolve 1000 10 3636", "revolve 10000 20 37976"]
    lines += [f"chain four {CHAIN}"] + PLANS
    return HEAD + "\n".join(lines) + "\n#\n" + (ROOT / "tests" / "vectors" / "philox.txt").read_text()
