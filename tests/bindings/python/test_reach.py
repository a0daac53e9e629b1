"""Every function, struct and constant of the headers is reachable in ckpt.raw; structs know their size and have the layout that C has."""
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import ckpt
from ckpt import plan, raw, tools

SOURCE = pathlib.Path(os.environ.get("CKPT_SOURCE", pathlib.Path(__file__).resolve().parents[3]))


def headers():
    out = ""
    for path in sorted((SOURCE / "include" / "ckpt").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        if "#error" not in text:  # curand.h is for C++ alone
            out += text
    return out


class Reach(unittest.TestCase):
    def test_functions(self):
        functions = re.findall(r"CKPT_API[^;]*?\b(ckpt_\w+)\s*\(", headers())
        self.assertGreater(len(functions), 150)
        self.assertEqual([f for f in functions if not callable(getattr(raw, f, None))], [])

    def test_constants(self):
        names = [n for body in re.findall(r"\benum\s*\w*\s*\{(.*?)\}", headers(), flags=re.S) for n in re.findall(r"\b(CKPT_\w+)\s*=", body)]
        self.assertGreater(len(names), 100)
        self.assertEqual([n for n in names if not isinstance(getattr(raw, n, None), int)], [])

    def test_structs_know_their_size(self):
        for name, body in re.findall(r"typedef struct (ckpt_\w+) \{(.*?)\} \1;", headers(), flags=re.S):
            kind = getattr(raw, name)
            made = kind()
            if re.search(r"\bstruct_size;", body):
                self.assertGreater(made.struct_size, 8, f"{name}: name it with %ckpt_sized in bindings/python/python.i")

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_layouts_of_tables(self):
        """The NumPy records that arrays of structs are read into."""
        tables = {"ckpt_action": plan.ACTION, "ckpt_placement": plan.PLACEMENT, "ckpt_curve_point": plan.CURVE_POINT,
                  "ckpt_explanation": plan.EXPLANATION, "ckpt_pack_buffer": tools.BUFFER}
        lines = [f'printf("\\"{s}\\": [%zu", sizeof({s}));' + "".join(f'printf(", %zu", offsetof({s}, {f}));' for f in d.names) + 'printf("],\\n");'
                 for s, d in tables.items()]
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "layout.c")
            program.write_text("#include <ckpt/ckpt.h>\n#include <stdio.h>\nint main(void) {\nprintf(\"{\");\n" + "\n".join(lines) + "\nprintf(\"\\\"\\\": []}\");\nreturn 0; }\n")
            subprocess.run(["cc", "-I", SOURCE / "include", program, "-o", f"{folder}/layout"], check=True)
            told = json.loads(subprocess.run([f"{folder}/layout"], check=True, stdout=subprocess.PIPE).stdout)
        for name, dtype in tables.items():
            self.assertEqual(told[name], [dtype.itemsize, *(dtype.fields[f][1] for f in dtype.names)], name)

    def test_stubs(self):
        """_raw.pyi names what the compiled module has, beside SWIG's."""
        from ckpt import _raw
        told = {}
        for node in ast.parse(pathlib.Path(ckpt.__file__).with_name("_raw.pyi").read_text()).body:
            if isinstance(node, ast.ClassDef):
                told[node.name] = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
            elif isinstance(node, ast.FunctionDef):
                told[node.name] = None
            elif isinstance(node, ast.AnnAssign):
                told[node.target.id] = None
        self.assertEqual([n for n in told if not hasattr(_raw, n)], [])
        for name, members in told.items():
            if members is not None:
                there = {n for n in vars(getattr(_raw, name)) if not n.startswith("__") or "dlpack" in n or "cuda" in n}
                self.assertEqual(members, there, name)
        own = {n for n in vars(_raw) if not re.match(r"_|ckpt_|CKPT_|delete_|new_|cvar|SWIG|.*_swig", n)}
        self.assertEqual(own, set(told))

    def test_raw_refuses(self):
        philox = raw.ckpt_philox()
        for call, kind, pattern in ((lambda: raw.ckpt_philox_uniform(philox, 0, 4, "text"), TypeError, "argument out_values is str"),
                                    (lambda: raw.ckpt_philox_uniform(philox, 0, 4, bytearray(16)), TypeError, "elements of type 'B'"),
                                    (lambda: raw.ckpt_philox_u32(None, 0, 4, None), ckpt.InvalidArgumentError, "philox"),
                                    (lambda: raw.ckpt_device_open(3.5), TypeError, "argument name is float"),
                                    (lambda: raw.ckpt_strategy_parse("x"), ckpt.NotFoundError, "auto")):
            with self.assertRaisesRegex(kind, pattern):
                call()

    def test_raw_returns(self):
        self.assertEqual(raw.ckpt_strategy_parse("uniform:4"), (raw.CKPT_STRATEGY_UNIFORM, 4))
        self.assertEqual(raw.ckpt_revolve_extra_forwards(10, 3), 15)
        self.assertEqual(raw.ckpt_version_string(), ckpt.__version__)
        try:
            raw.ckpt_strategy_parse("nosuch")
        except ckpt.NotFoundError as error:
            self.assertEqual(raw.ckpt_last_status(), error.status)
            self.assertEqual(raw.ckpt_last_error(), str(error))


if __name__ == "__main__":
    unittest.main()
