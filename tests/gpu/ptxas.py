"""What ptxas makes of each kernel of the CUDA plugin: registers, spills, local memory, shared memory; and whether kernels that go over
arrays use 16-byte accesses: LDG.E.128 and STG.E.128 in the machine code where cuobjdump (and its nvdisasm) is found, else what ptxas makes
them of in the PTX. Needs nvcc, no GPU.

    ptxas.py                           prints a table, fails on a spill and on a missing 16-byte access
    ptxas.py --arch 90 --arch 80       for these (the default), or others
    ptxas.py --write ptxas.txt         the table to a file
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src/device/cuda", "src/ops/cuda")

# Kernels that must load, or store, 16 bytes at a time: (file, name).
VECTOR_LOADS = {("elements", "chain"), ("elements", "mask_gradient"), ("elements", "add_arrays"), ("elements", "convert"),
                ("gelu", "forward"), ("gelu", "backward"), ("gelu", "backward_flat"), ("adamw", "adamw_step"), ("adamw", "squares"),
                ("rows", "forward_held"), ("rows", "backward_held"), ("rows", "forward_long"), ("rows", "backward_long"),
                ("rows", "sum_columns"), ("loss", "log_sums"), ("loss", "gradients"), ("embedding", "forward"),
                ("embedding", "sum_segments"), ("hash", "hash_chunks<true>")}
VECTOR_STORES = {("elements", "chain"), ("elements", "mask_gradient"), ("elements", "add_arrays"), ("elements", "convert"),
                 ("gelu", "forward"), ("gelu", "backward"), ("gelu", "backward_flat"), ("adamw", "adamw_step"), ("rows", "forward_held"),
                 ("rows", "backward_held"), ("rows", "forward_long"), ("rows", "backward_long"), ("loss", "gradients"),
                 ("embedding", "forward"), ("philox", "fill")}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def demangled(names):
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, text.splitlines()))


def short(name):
    """ckpt::ops::cuda::(anonymous namespace)::chain<float, true>(...) -> chain<float, true>"""
    name = re.sub(r"\(anonymous namespace\)|_GLOBAL__N__\w+", "", name).replace("ckpt::ops::cuda::", "").replace("ckpt::cuda::", "")
    name = re.sub(r"(?<![\w>])::", "", name.removeprefix("void "))
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and at > 0:
            name = name[:at]
            break
    return name.strip(": ").replace("__nv_bfloat16", "bf16").replace("__half", "half")


def accesses_in_ptx(text):
    """{kernel: (16-byte loads, stores)}: accesses of four words, or two long ones."""
    found = {}
    for m in re.finditer(r"\.entry (\w+)\((.*?)^\}", text, flags=re.S | re.M):
        loads = len(re.findall(r"\bld\.(?:global\.)?(?:nc\.)?(?:L\w+::\w+\.)?(?:v4\.[bfu]32|v2\.[bfu]64)|\bcp\.async", m.group(2)))
        found[m.group(1)] = (loads, len(re.findall(r"\bst\.(?:global\.)?(?:v4\.[bfu]32|v2\.[bfu]64)", m.group(2))))
    return found


def accesses_in_code(text):
    found = {}
    for part in re.split(r"^\s*Function : ", text, flags=re.M)[1:]:
        found[part.split()[0]] = tuple(len(re.findall(rf"\b{name}\.E\.(?:[\w.]+\.)?128", part)) for name in ("LDG", "STG"))
    return found


def kernels_of(source, arch, nvcc, ptxas, cuobjdump, folder):
    """[(file, kernel, registers, spill bytes, stack bytes, shared bytes, 16-byte loads, 16-byte stores)]"""
    ptx = folder / f"{source.stem}.{arch}.ptx"
    run([nvcc, "-std=c++20", "-O3", "--expt-relaxed-constexpr", f"-arch=compute_{arch}", "-ptx", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}",
         str(source), "-o", str(ptx)])
    cubin = ptx.with_suffix(".cubin")
    report = run([ptxas, "-v", f"-arch=sm_{arch}", str(ptx), "-o", str(cubin)])
    accesses = accesses_in_code(run([cuobjdump, "-sass", str(cubin)])) if cuobjdump else accesses_in_ptx(ptx.read_text())
    found = []
    for m in re.finditer(r"Compiling entry function '(\w+)'.*?\n.*?\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                         r".*?Used (\d+) registers(.*)", report):
        shared = re.search(r"(\d+) bytes smem", m.group(6))
        found.append([source.stem, m.group(1), int(m.group(5)), int(m.group(3)) + int(m.group(4)), int(m.group(2)),
                      int(shared.group(1)) if shared else 0, *accesses[m.group(1)]])
    names = demangled([row[1] for row in found])
    for row in found:
        row[1] = short(names[row[1]])
    return sorted(found)


def problems_of(arch, rows):
    problems = [f"sm_{arch} {file}: {kernel} spills {spill} bytes" for file, kernel, _, spill, *_ in rows if spill > 0]
    seen = set()
    for file, kernel, _, _, _, _, loads, stores in rows:
        for wanted, count, what in ((VECTOR_LOADS, loads, "load"), (VECTOR_STORES, stores, "store")):
            for name in (kernel, kernel.split("<")[0]):
                if (file, name) in wanted:
                    seen.add((file, name, what))
                    if count == 0:
                        problems.append(f"sm_{arch} {file}: {kernel} has no 16-byte {what}")
    for wanted, what in ((VECTOR_LOADS, "load"), (VECTOR_STORES, "store")):
        problems += [f"sm_{arch} {file}: there is no kernel {name}" for file, name in sorted(wanted) if (file, name, what) not in seen]
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--arch", action="append")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write")
    args = parser.parse_args()
    if not pathlib.Path(args.nvcc).exists():
        print("left out: there is no nvcc")
        sys.exit(77)
    ptxas = pathlib.Path(os.path.realpath(args.nvcc)).with_name("ptxas")
    cuobjdump = shutil.which("cuobjdump") if shutil.which("nvdisasm") else None
    sources = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.cu"))
    lines, problems = [], []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for arch in args.arch or ["80", "90"]:
            parts = pool.map(lambda source: kernels_of(source, arch, args.nvcc, str(ptxas), cuobjdump, pathlib.Path(folder)), sources)
            rows = [row for part in parts for row in part]
            problems += problems_of(arch, rows)
            lines += [f"sm_{arch}: {len(rows)} kernels", "registers  spill  stack  shared  16-byte loads, stores  kernel"]
            lines += [f"{registers:9} {spill:6} {stack:6} {shared:7} {loads:14} {stores:7}  {file}: {kernel}"
                      for file, kernel, registers, spill, stack, shared, loads, stores in rows]
    text = "\n".join(lines) + "\n"
    if args.write:
        version = re.search(r"release [\d.]+, V([\d.]+)", run([args.nvcc, "--version"])).group(1)
        pathlib.Path(args.write).write_text(f"Written by tests/gpu/ptxas.py, nvcc {version}. 16-byte accesses are counted in the {'machine code' if cuobjdump else 'PTX'}.\n{text}")
    else:
        print(text, end="")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


main()
