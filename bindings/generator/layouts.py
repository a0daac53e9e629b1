"""A C program that prints what a C compiler makes of each public struct and constant: the layouts that each language checks
its own against."""

HEAD = """/* Written by bindings/generate.py; do not edit. Prints the size and field offsets of each public struct, the bytes of its
 * initialiser, and the value of each constant, as JSON, one to a line. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/ops.h"

static void bytes(const void *data, size_t count) {
  const unsigned char *each = data;
  for (size_t k = 0; k < count; ++k) printf("%02x", each[k]);
}

#define BEGIN(type) printf("\\"" #type "\\": {\\"size\\": %zu, \\"fields\\": {", sizeof(type))
#define FIELD(type, name, comma) printf("\\"" #name "\\": [%zu, %zu]" comma, offsetof(type, name), sizeof(((type *)0)->name))
#define INIT(type, value)               \\
  do {                                  \\
    const type init = value;            \\
    printf("}, \\"init\\": \\"");           \\
    bytes(&init, sizeof init);          \\
    printf("\\"");                       \\
  } while (0)
#define NO_INIT() printf("}")
#define END(last) printf("}%s\\n", last ? "" : ",")
#define VALUE(name, last) printf("\\"" #name "\\": %lld%s\\n", (long long)(name), last ? "" : ",")
"""


def quoted(comma):
    return '", "' if comma else '""'


def function(struct, last):
    lines = [f"static void print_{struct.name}(void) {{", f"  BEGIN({struct.name});"]
    lines += [f"  FIELD({struct.name}, {field.name}, {quoted(field is not struct.fields[-1])});" for field in struct.fields]
    if struct.init is None:
        lines.append("  NO_INIT();")
    else:
        lines.append(f"  INIT({struct.name}, CKPT_{struct.name.removeprefix('ckpt_').upper()}_INIT);")
    return "\n".join(lines + [f"  END({int(last)});", "}", ""])


def write(model):
    parts = [HEAD]
    parts += [function(struct, struct is model.structs[-1]) for struct in model.structs]
    parts.append('int main(void) {\n  printf("{\\"structs\\": {\\n");')
    parts += [f"  print_{struct.name}();" for struct in model.structs]
    parts.append('  printf("},\\n\\"constants\\": {\\n");')
    parts += [f"  VALUE({name}, {int(name == model.constants[-1][0])});" for name, _, _ in model.constants]
    parts.append('  printf("}}\\n");\n  return 0;\n}')
    return "\n".join(parts) + "\n"
