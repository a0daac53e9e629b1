"""A plugin exports exactly the symbols that it is said to, and needs no library beyond those allowed.

    plugin.py --shared build/release/src/libckpt_cuda.so --exports ckpt_device_plugin --needs cublasLt stdc++ ...
    plugin.py ... --functions tests/cuda_sim/include/cudasim_control.h     and the functions that a header declares
"""
import argparse
import pathlib
import re
import subprocess

import api


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


parser = argparse.ArgumentParser()
parser.add_argument("--shared", required=True, type=pathlib.Path)
parser.add_argument("--exports", required=True, nargs="+")
parser.add_argument("--functions", type=pathlib.Path)
parser.add_argument("--needs", nargs="*", default=[], help="libraries it may need: soname without lib and .so")
args = parser.parse_args()

wanted = set(args.exports)
if args.functions:
    wanted |= set(re.findall(r"^CUDASIM_API [^(]*?(\w+)\(", args.functions.read_text(), flags=re.M))
exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", str(args.shared)).splitlines()}
problems = [f"{name}: not exported" for name in sorted(wanted - exported)]
problems += [f"{name}: exported, and nothing says so" for name in sorted(exported - wanted)]
# The driver is found at run time: a machine without one must be able to load the plugin.
for line in run("nm", "-D", "--undefined-only", str(args.shared)).splitlines():
    name = line.split()[-1]
    if re.match(r"cu[A-Z]|cuda|ckpt", name):
        problems.append(f"{name}: left to be found at load time")
needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", str(args.shared)))
for name in needed:
    if re.sub(r"^lib|\.so.*$|-linux-.*$", "", name) not in args.needs:
        problems.append(f"needs {name}, allowed: {' '.join(args.needs)}")
api.finish(problems, f"{args.shared}: exports {' '.join(sorted(exported))}; needs {' '.join(needed)}")
