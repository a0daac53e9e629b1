"""Include order is the module order: a module of src/ includes only itself, modules below it, public headers and the system's.
Below src/abi nobody knows that C exists: no extern "C", no call or definition of an ABI function (types and constants of the
public headers are the shared vocabulary)."""
import re

import api

ORDER = ["base", "rng", "plan", "device", "arena", "tape", "estimate", "json", "abi"]
# Libraries and programs of their own: what they may see of the core's insides. Everything else goes through the C ABI.
BESIDE = {"ops": ["base", "rng"], "tool": ["base"]}
# Placement is arithmetic on offsets; planners ask it for a program's height. The files themselves see base alone.
EXCEPTIONS = {"plan": ["arena/placer.h", "arena/size_rule.h", "arena/pack.h"]}
# The CUDA plugin is one library of two folders: the device, and the layers' kernels on it.
PLUGIN = {"ops/cuda/": ["device"], "device/cuda/plugin.cpp": ["ops"]}
PURE = {"arena/placer.h": ["base"], "arena/placer.cpp": ["base"], "arena/size_rule.h": ["base"]}
# A plugin's entry point and what looks it up have C linkage by nature.
C_LINKAGE = {"device"}

SRC = api.ROOT / "src"


def allowed_modules(module):
    if module in BESIDE:
        return BESIDE[module] + [module]
    return ORDER[:ORDER.index(module) + 1]


def check_includes(path, name, module):
    problems = []
    for number, line in enumerate(api.without_comments(path.read_text()).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if match is None or match.group(1).startswith("ckpt/"):
            continue
        included = match.group(1)
        if not (SRC / included).is_file() and (path.parent / included).is_file():
            included = (path.parent / included).resolve().relative_to(SRC).as_posix()
        other = included.split("/")[0]
        if name in PURE:
            fine = other in PURE[name] or included in PURE
        else:
            beside = [m for prefix, modules in PLUGIN.items() if name.startswith(prefix) for m in modules]
            fine = other in allowed_modules(module) + beside or included in EXCEPTIONS.get(module, [])
        if not fine:
            problems.append(f"src/{name}:{number}: {module} may not include {included}")
    return problems


def check_c_is_unknown(path, name, module, functions):
    problems = []
    for number, line in enumerate(api.without_comments(path.read_text()).splitlines(), 1):
        if re.search(r'extern\s+"C"', line) and module not in C_LINKAGE:
            problems.append(f'src/{name}:{number}: extern "C" below src/abi')
        for called in re.findall(r"\b(ckpt_\w+)\s*\(", api.without_strings(line)):
            if called in functions:
                problems.append(f"src/{name}:{number}: {called} is a function of the C ABI; src/{module} is below it")
    return problems


def main():
    functions = set(api.functions_of("ckpt"))
    problems, count = [], 0
    for path in sorted(SRC.rglob("*")):
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh", ".inc"):
            continue
        name = path.relative_to(SRC).as_posix()
        module = name.split("/")[0]
        if module not in ORDER and module not in BESIDE:
            problems.append(f"src/{name}: {module} is no module of the order {' < '.join(ORDER)}")
            continue
        count += 1
        problems += check_includes(path, name, module)
        if module in ORDER and module != "abi":
            problems += check_c_is_unknown(path, name, module, functions)
    api.finish(problems, f"{count} files keep the order {' < '.join(ORDER)}")


main()
