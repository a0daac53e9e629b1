"""bindings/rust/ckpt-sys/src/raw.rs."""

SCALARS = {
    "void": "c_void", "char": "c_char", "int": "c_int", "float": "f32", "double": "f64", "size_t": "usize",
    "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64",
    "uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64",
}
KEYWORDS = {"type", "in", "loop", "move", "ref", "box", "match", "use", "where", "fn", "self", "impl", "mod"}

HEAD = """// Written by bindings/generate.py from the public headers; do not edit. What each thing means: include/ckpt/*.h.

use std::os::raw::{c_char, c_int, c_void};
"""


def name_of(name):
    return f"r#{name}" if name in KEYWORDS else name


def type_of(words):
    head, rest = words[0], words[1:]
    if head == "pointer":
        if rest[0] == "const":
            return f"*const {type_of(rest[1:])}"
        return f"*mut {type_of(rest)}"
    if head == "array":
        return f"[{type_of(rest[1:])}; {rest[0]}]"
    if head == "const":
        return type_of(rest)
    if head == "function":
        return f"Option<{rest[0]}>"
    return SCALARS.get(head, head)


def parameter_type(words):
    """An array as a parameter is a pointer."""
    return type_of(["pointer"] + words[2:]) if words[0] == "array" else type_of(words)


def signature(function):
    parameters = ", ".join(f"{name_of(each.name)}: {parameter_type(each.type)}" for each in function.parameters)
    result = "" if function.result == ["void"] else f" -> {type_of(function.result)}"
    return f"({parameters}){result}"


def constant_type(name, value, header):
    if header == "base.h" and not name.startswith("CKPT_VERSION"):
        return "ckpt_status"
    return "i32" if value < 0 else "u32"


def initial(struct, field, expression):
    """The Rust expression of a field's value in Default."""
    if expression.startswith("sizeof("):
        return f"std::mem::size_of::<{expression[7:-1]}>() as u32"
    if expression in ("NULL", "0") and field.type[0] == "pointer":
        return "std::ptr::null()" if field.type[1] == "const" else "std::ptr::null_mut()"
    if field.type[0] == "function":
        return "None"
    if field.type[0] in ("float", "double"):
        return repr(float(expression.rstrip("f")))
    return expression


def struct_text(struct):
    lines = ["#[repr(C)]", "#[derive(Clone, Copy, Debug)]", f"pub struct {struct.name} {{"]
    lines += [f"    pub {name_of(field.name)}: {type_of(field.type)}," for field in struct.fields]
    lines += ["}", "", f"impl Default for {struct.name} {{", "    fn default() -> Self {"]
    if struct.init is not None:
        lines.append("        Self {")
        lines += [f"            {name_of(field.name)}: {initial(struct, field, value)}," for field, value in zip(struct.fields, struct.init)]
        lines.append("        }")
    elif struct.sized:
        lines.append("        // All fields are numbers, arrays of numbers or pointers: zeros are valid.")
        lines.append("        Self { struct_size: std::mem::size_of::<Self>() as u32, ..unsafe { std::mem::zeroed() } }")
    else:
        lines.append("        // All fields are numbers, arrays of numbers or pointers: zeros are valid.")
        lines.append("        unsafe { std::mem::zeroed() }")
    return "\n".join(lines + ["    }", "}", ""])


def layout_text(struct, last):
    """Prints as layouts.c does."""
    lines = [f"    layout!(text, {struct.name}, {'true' if struct.init is not None else 'false'}, {'true' if last else 'false'},"]
    lines.append("        " + ", ".join(name_of(field.name) for field in struct.fields) + ");")
    return "\n".join(lines)


LAYOUT_MACRO = """/// What bindings/layouts/layouts.c prints, as this language sees it: a test compares the two.
pub fn layouts() -> String {
    fn push_bytes(text: &mut String, data: *const u8, count: usize) {
        for k in 0..count {
            text.push_str(&format!("{:02x}", unsafe { *data.add(k) }));
        }
    }
    fn size_of_field<T>(_: *const T) -> usize {
        std::mem::size_of::<T>()
    }
    macro_rules! layout {
        ($text:ident, $struct:ident, $init:expr, $last:expr, $($field:ident),*) => {{
            let value = $struct::default();
            let base = &value as *const $struct as usize;
            $text.push_str(&format!("\\"{}\\": {{\\"size\\": {}, \\"fields\\": {{", stringify!($struct), std::mem::size_of::<$struct>()));
            let mut comma = "";
            $({
                let field = std::ptr::addr_of!(value.$field);
                let name = stringify!($field).trim_start_matches("r#");
                $text.push_str(&format!("{}\\"{}\\": [{}, {}]", comma, name, field as usize - base, size_of_field(field)));
                comma = ", ";
            })*
            let _ = comma;
            $text.push('}');
            if $init {
                $text.push_str(", \\"init\\": \\"");
                push_bytes(&mut $text, base as *const u8, std::mem::size_of::<$struct>());
                $text.push('"');
            }
            $text.push_str(if $last { "}\\n" } else { "},\\n" });
        }};
    }
    let mut text = String::from("{\\"structs\\": {\\n");
"""


def layouts(model):
    parts = [LAYOUT_MACRO.rstrip("\n")]
    parts += [layout_text(struct, struct is model.structs[-1]) for struct in model.structs]
    parts.append('    text.push_str("},\\n\\"constants\\": {\\n");')
    parts.append("    let constants: &[(&str, i64)] = &[")
    parts += [f'        ("{name}", {name} as i64),' for name, _, _ in model.constants]
    parts += ["    ];", "    for (k, (name, value)) in constants.iter().enumerate() {",
              '        text.push_str(&format!("\\"{}\\": {}{}\\n", name, value, if k + 1 == constants.len() { "" } else { "," }));', "    }",
              '    text.push_str("}}\\n");', "    text", "}", ""]
    return "\n".join(parts)


def write(model):
    parts = [HEAD]
    parts += [f"pub type {name} = {type_of(words)};" for name, words, _ in model.scalars]
    parts.append("")
    parts += [f"pub const {name}: {constant_type(name, value, header)} = {value};" for name, value, header in model.constants]
    parts.append("")
    for name, _ in model.opaque:
        parts.append(f"#[repr(C)]\npub struct {name} {{\n    _opaque: [u8; 0],\n    _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,\n}}\n")
    parts += [f'pub type {each.name} = unsafe extern "C" fn{signature(each)};' for each in model.callbacks]
    parts.append("")
    parts += [struct_text(struct) for struct in model.structs]
    for library, gate in (("ckpt", ""), ("ckpt_ops", '#[cfg(feature = "ops")]\n')):
        parts.append(f'{gate}extern "C" {{')
        parts += [f"    pub fn {each.name}{signature(each)};" for each in model.functions if each.library == library]
        parts.append("}\n")
    parts.append("/// Name and address of each function of the public headers.\npub fn functions() -> Vec<(&'static str, *const c_void)> {")
    parts.append("    #[allow(unused_mut)]\n    let mut all = vec![")
    parts += [f'        ("{each.name}", {each.name} as *const c_void),' for each in model.functions if each.library == "ckpt"]
    parts.append('    ];\n    #[cfg(feature = "ops")]\n    all.extend_from_slice(&[')
    parts += [f'        ("{each.name}", {each.name} as *const c_void),' for each in model.functions if each.library == "ckpt_ops"]
    parts.append("    ]);\n    all\n}\n")
    parts.append(layouts(model))
    return "\n".join(parts)
