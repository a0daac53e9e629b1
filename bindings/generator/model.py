"""The public headers as data: what `swig -xml` says of ckpt.i, without SWIG's addresses and its own files.

A type is a list of words from the outside in: ["pointer", "const", "char"], ["array", 4, "uint32_t"], ["function", "ckpt_segment_fn"].
"""
import dataclasses
import pathlib
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
INTERFACE = ROOT / "bindings" / "ckpt.i"
# Headers of a library of their own; all others are the core's.
LIBRARY_OF_HEADER = {"ops.h": "ckpt_ops"}
UMBRELLA = "ckpt.h"
CXX_ONLY = "curand.h"  # inline C++ between two libraries: nothing to bind


@dataclasses.dataclass
class Parameter:
    name: str
    type: list


@dataclasses.dataclass
class Function:
    name: str
    header: str
    result: list
    parameters: list

    @property
    def library(self):
        return LIBRARY_OF_HEADER.get(self.header, "ckpt")


@dataclasses.dataclass
class Struct:
    name: str
    header: str
    fields: list
    init: list = None  # the initialiser's expressions, in the order of the fields; None: there is none

    @property
    def sized(self):
        return self.fields[0].name == "struct_size"


@dataclasses.dataclass
class Model:
    constants: list = dataclasses.field(default_factory=list)  # (name, value, header)
    opaque: list = dataclasses.field(default_factory=list)     # (name, header)
    scalars: list = dataclasses.field(default_factory=list)    # (name, type, header): typedefs of numbers
    callbacks: list = dataclasses.field(default_factory=list)  # Function
    structs: list = dataclasses.field(default_factory=list)
    functions: list = dataclasses.field(default_factory=list)

    def value_of(self, name):
        return next(value for known, value, _ in self.constants if known == name)


def attributes(node):
    found = node.find("attributelist")
    return {} if found is None else {each.get("name"): each.get("value") for each in found.findall("attribute")}


def parameters_of(node):
    found = node.find("attributelist")
    found = None if found is None else found.find("parmlist")
    return [] if found is None else [attributes(each) for each in found]


class Reader:
    def __init__(self):
        self.model = Model()
        self.handled = {"cdecl": self.declaration, "enumitem": self.item, "constant": self.constant, "class": self.structure}

    def type(self, text):
        """From SWIG's code, `a(4).q(const).uint32_t`."""
        words = []
        while True:
            match = re.match(r"(?:(p)|q\((const)\)|a\((\w+)\))\.", text)
            if match is None:
                break
            text = text[match.end():]
            if match.group(1):
                words.append("pointer")
            elif match.group(2):
                words.append("const")
            else:
                count = match.group(3)
                words += ["array", int(count) if count.isdigit() else self.model.value_of(count)]
        if not re.fullmatch(r"\w+", text):
            raise SystemExit(f"generate.py does not know the type {text!r}")
        name = re.sub(r"^(struct|enum)_", "", text)
        if any(name == callback.name for callback in self.model.callbacks):
            return words + ["function", name]
        return words + [name]

    def function(self, found, node, prefix, header):
        """`decl` is prefix f(...) and what the result adds to `type`: p.q(const). for a pointer to const."""
        match = re.fullmatch(prefix + r"f\((?:[^()]|\([^()]*\))*\)\.(.*)", found["decl"])
        parameters = [each for each in parameters_of(node) if each["type"] != "void"]
        return Function(found["name"], header, self.type(match.group(1) + found["type"]),
                        [Parameter(each["name"], self.type(each["type"])) for each in parameters])

    def declaration(self, node, header):
        found = attributes(node)
        name, kind, decl = found["name"], found["kind"], found["decl"]
        if kind == "function":
            self.model.functions.append(self.function(found, node, "", header))
        elif kind == "typedef" and decl.startswith("p.f("):
            self.model.callbacks.append(self.function(found, node, r"p\.", header))
        elif kind == "typedef" and found["type"] == f"struct {name}" and not decl:
            self.model.opaque.append((name, header))
        elif kind == "typedef" and not decl:
            self.model.scalars.append((name, self.type(found["type"]), header))
        else:
            raise SystemExit(f"{header}: generate.py does not know what {name} is ({kind}, {decl}{found['type']})")

    def item(self, node, header):
        found = attributes(node)
        value = found.get("enumvalue")
        if value is None or not re.fullmatch(r"-?\d+", value):
            raise SystemExit(f"{header}: {found['name']} has no literal value")
        self.model.constants.append((found["name"], int(value), header))

    def constant(self, node, header):
        found = attributes(node)
        if re.fullmatch(r"-?\d+", found["value"]):
            self.model.constants.append((found["name"], int(found["value"]), header))

    def structure(self, node, header):
        fields = []
        for each in node.findall("cdecl"):
            found = attributes(each)
            fields.append(Parameter(found["name"], self.type(found["decl"] + found["type"])))
        self.model.structs.append(Struct(attributes(node)["name"], header, fields))

    def walk(self, node, header):
        if node.tag == "include":
            header = pathlib.Path(attributes(node).get("name", ""))
            header = header.name if header.parent.name == "ckpt" and header.suffix == ".h" else None
        if node.tag in self.handled and header is not None:
            self.handled[node.tag](node, header)
            if node.tag != "enum":
                return
        for each in node:
            self.walk(each, header)


def swig_xml():
    swig = shutil.which("swig")
    if swig is None:
        raise SystemExit("generate.py needs the command swig (Debian: swig)")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "ckpt.xml"
        subprocess.run([swig, "-xml", f"-I{INCLUDE}", "-o", str(out), str(INTERFACE)], check=True)
        return ElementTree.parse(out).getroot()


def read_initialisers(model):
    """CKPT_X_INIT, which SWIG does not read. `{ sizeof(ckpt_x), 0, NULL }`: one expression for each field."""
    text = "\n".join(path.read_text() for path in sorted((INCLUDE / "ckpt").glob("*.h")))
    macros = dict(re.findall(r"^#define CKPT_(\w+)_INIT\s+\{(.*?)\}\s*$", text.replace("\\\n", " "), flags=re.M))
    for struct in model.structs:
        body = macros.pop(struct.name.removeprefix("ckpt_").upper(), None)
        if body is None:
            continue
        struct.init = [each.strip() for each in body.split(",")]
        if len(struct.init) != len(struct.fields):
            raise SystemExit(f"{struct.name}: initialiser with {len(struct.init)} values for {len(struct.fields)} fields")
    if macros:
        raise SystemExit(f"initialisers without a struct: {', '.join(sorted(macros))}")


def check_headers():
    named = set(re.findall(r'%include\s+"ckpt/(\w+\.h)"', INTERFACE.read_text()))
    there = {path.name for path in (INCLUDE / "ckpt").glob("*.h")} - {UMBRELLA, CXX_ONLY}
    if named != there:
        raise SystemExit(f"{INTERFACE.name} and include/ckpt differ: {', '.join(sorted(named ^ there))}")


def read():
    check_headers()
    reader = Reader()
    reader.walk(swig_xml(), None)
    model = reader.model
    defined = {struct.name for struct in model.structs}
    model.opaque = [each for each in model.opaque if each[0] not in defined]
    read_initialisers(model)
    return model
