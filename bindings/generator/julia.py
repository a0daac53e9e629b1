"""bindings/julia/src/raw.jl."""

SCALARS = {
    "void": "Cvoid", "char": "UInt8", "int": "Cint", "float": "Float32", "double": "Float64", "size_t": "Csize_t",
    "int8_t": "Int8", "int16_t": "Int16", "int32_t": "Int32", "int64_t": "Int64",
    "uint8_t": "UInt8", "uint16_t": "UInt16", "uint32_t": "UInt32", "uint64_t": "UInt64",
}
KEYWORDS = {"begin", "end", "type", "function", "global", "local", "module", "in"}

HEAD = """# Written by bindings/generate.py from the public headers; do not edit. What each thing means: include/ckpt/*.h.
#
# Each function calls through its entry of ADDRESSES, which `load` in library.jl fills: the library's path is chosen when the package
# is loaded, not when it is compiled.
"""


def name_of(name):
    return f"{name}_" if name in KEYWORDS else name


def type_of(words, opaque):
    head, rest = words[0], words[1:]
    if head == "pointer":
        target = rest[1:] if rest[0] == "const" else rest
        return f"Ptr{{{type_of(target, opaque)}}}"
    if head == "array":
        return f"NTuple{{{rest[0]}, {type_of(rest[1:], opaque)}}}"
    if head == "const":
        return type_of(rest, opaque)
    if head == "function":
        return "Ptr{Cvoid}"
    return SCALARS.get(head, head)


def parameter_type(words, opaque):
    if words[0] == "array":
        return type_of(["pointer"] + words[2:], opaque)
    return type_of(words, opaque)


def initial(field, expression, opaque):
    kind = type_of(field.type, opaque)
    if expression.startswith("sizeof("):
        return f"{kind}(sizeof({expression[7:-1]}))"
    if expression == "NULL":
        return f"{kind}(C_NULL)" if kind.startswith("Ptr") else "C_NULL"
    if kind.startswith("NTuple"):
        return f"zero_of({kind})"
    return f"{kind}({expression.rstrip('f')})"


def struct_text(struct, opaque):
    lines = [f"struct {struct.name}"]
    lines += [f"    {name_of(field.name)}::{type_of(field.type, opaque)}" for field in struct.fields]
    lines += ["end"]
    values = struct.init or (["sizeof(%s)" % struct.name] if struct.sized else [])
    zeros = [f"zero_of({type_of(field.type, opaque)})" for field in struct.fields]
    given = [initial(field, value, opaque) for field, value in zip(struct.fields, values)]
    values = given + zeros[len(given):]
    names = [name_of(field.name) for field in struct.fields]
    lines.append(f"{struct.name}(; " + ", ".join(f"{name} = {value}" for name, value in zip(names, values)) + ") =")
    lines.append(f"    {struct.name}(" + ", ".join(names) + ")")
    return "\n".join(lines) + "\n"


def function_text(function, index, opaque):
    names = ", ".join(name_of(each.name) for each in function.parameters)
    types = ", ".join(parameter_type(each.type, opaque) for each in function.parameters)
    types += "," if len(function.parameters) == 1 else ""
    call = f"ccall(address({index}), {type_of(function.result, opaque)}, ({types})" + (f", {names}" if names else "") + ")"
    return f"{function.name}({names}) = {call}"


def write(model):
    opaque = {name for name, _ in model.opaque}
    parts = [HEAD]
    parts += [f"const {name} = {type_of(words, opaque)}" for name, words, _ in model.scalars]
    parts.append("")
    for name, value, header in model.constants:
        kind = "ckpt_status" if header == "base.h" and not name.startswith("CKPT_VERSION") else "UInt32" if value >= 0 else "Int32"
        parts.append(f"const {name} = {kind}({value})")
    parts.append("")
    parts += [f"mutable struct {name} end  # opaque: only pointers to it exist" for name in sorted(opaque)]
    parts += ["", "zero_of(::Type{T}) where {T<:Number} = zero(T)", "zero_of(::Type{Ptr{T}}) where {T} = Ptr{T}(C_NULL)",
              "zero_of(::Type{NTuple{N, T}}) where {N, T} = ntuple(_ -> zero(T), N)", ""]
    parts += [struct_text(struct, opaque) for struct in model.structs]
    parts.append("# Names of all functions; those of the layers' own library come last.\nconst FUNCTIONS = [")
    core = [each for each in model.functions if each.library == "ckpt"]
    ops = [each for each in model.functions if each.library == "ckpt_ops"]
    parts += [f"    :{each.name}," for each in core + ops]
    parts.append(f"]\nconst CORE_COUNT = {len(core)}")
    parts.append(f"const ADDRESSES = fill(Ptr{{Cvoid}}(C_NULL), {len(core) + len(ops)})\n")
    parts += [function_text(each, index, opaque) for index, each in enumerate(core + ops, 1)]
    parts.append("\n# Structs in the order of the headers, and whether there is an initialiser in C.\nconst STRUCTS = [")
    parts += [f"    ({struct.name}, {'true' if struct.init is not None else 'false'})," for struct in model.structs]
    parts.append("]\nconst CONSTANTS = [")
    parts += [f"    (:{name}, Int64({name}))," for name, _, _ in model.constants]
    parts.append("]")
    return "\n".join(parts) + "\n"
