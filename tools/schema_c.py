#!/usr/bin/env python3
"""Turns tables of types into C: schema_c.py OUT.c OUT.h FILE.types... FILE.fills...

The format is told in src/kube/tables/README.md. Types refer to each other freely, over all files given.
"""
import json
import re
import sys

SCALARS = {"string": "STRING", "int32": "INT32", "int64": "INT64", "bool": "BOOL", "double": "DOUBLE", "bytes": "BYTES",
           "time": "TIME", "microtime": "MICROTIME", "duration": "DURATION", "quantity": "QUANTITY",
           "intstr": "INT_OR_STRING", "raw": "RAW", "strings": "STRINGS"}
# How OpenAPI calls the packages.
OPENAPI = {"meta": "io.k8s.apimachinery.pkg.apis.meta.", "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
           "gateway": "io.k8s.networking.gateway.", "agents": "io.x-k8s.agents.", "extensions": "io.x-k8s.agents.extensions."}
NUMBERS = {"min": ("min", "INT64_MIN"), "max": ("max", "INT64_MAX"), "minlen": ("min_len", "INT64_MIN"),
           "maxlen": ("max_len", "INT64_MAX"), "minitems": ("min_items", "INT64_MIN"), "maxitems": ("max_items", "INT64_MAX"),
           "maxprops": ("max_props", "INT64_MAX")}


class Bad(Exception):
    pass


class Type:
    def __init__(self, words):
        self.full = words[0]
        self.package, self.name = words[0].rsplit(".", 1)
        self.marks = set(words[1:])
        if self.marks - {"atomic", "custom"}:
            raise Bad(f"unknown marks {sorted(self.marks)}")
        self.fields, self.inlines, self.has_type_meta = [], [], False
        self.c = "schema_" + re.sub(r"\W", "_", self.full)

    def openapi(self):
        group, version = self.package.split("/")
        return OPENAPI.get(group, f"io.k8s.api.{group}.") + f"{version}.{self.name}"


def words_of(line):
    """Words between blanks; a quoted word may hold blanks."""
    return re.findall(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+', line)


def add_row(t, words):
    if words[0] == "@type":
        t.has_type_meta = True
    elif words[0] == "@inline":
        t.inlines.append((len(t.fields), words[1], words[2]))
    else:
        attributes = dict((w.split("=", 1) + [""])[:2] for w in words[3:])
        t.fields.append((words[0], words[1], words[2], attributes))


def read(paths):
    types = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                line = line.rstrip("\n")
                if not line.strip() or line.startswith("#"):
                    continue
                try:
                    if line.startswith("\t"):
                        add_row(t, words_of(line))
                    else:
                        t = Type(words_of(line))
                        if t.full in types:
                            raise Bad(f"{t.full} is there already")
                        types[t.full] = t
                except (Bad, IndexError) as e:
                    sys.exit(f"{path}:{number}: {e}")
    return types


def add_fills(types, path):
    """Lines "PACKAGE.Type" and, below, "<tab>field JSON"; each becomes an attribute of its field."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            words = line.split(None, 1)
            if not words or line.startswith("#"):
                continue
            if not line.startswith("\t"):
                t = types.get(words[0])
                fields = t and {field[0]: field[3] for field in t.fields}
            elif words[0] in (fields or {}):
                fields[words[0]]["fill"] = words[1].strip()
            else:
                # A field of an inlined type is written at that type.
                if not t or not any(words[0] in [x[0] for x in find(types, t, ref).fields] for _, _, ref in t.inlines):
                    sys.exit(f"{path}:{number}: no such field")


def find(types, t, name):
    full = name if "/" in name else f"{t.package}.{name}"
    if full not in types:
        sys.exit(f"{t.full}: no type '{full}'")
    return types[full]


def flat(types, t):
    """Fields as JSON sees them: those of inlined messages stand where they are inlined, without a number."""
    out = [[f, t, f[1]] for f in t.fields]
    for at, _, name in reversed(t.inlines):
        out[at:at] = [[f, owner, "-"] for f, owner, _ in flat(types, find(types, t, name))]
    return out


def cstr(text):
    return "NULL" if text is None else json.dumps(text)


class Out:
    def __init__(self):
        self.lists, self.rules, self.lines = {}, {}, []

    def list_of(self, items):
        """A NULL-ended list of strings, written once."""
        if not items:
            return "NULL"
        key = tuple(items)
        if key not in self.lists:
            self.lists[key] = f"list_{len(self.lists)}"
            self.lines.append(f"static const char *const {self.lists[key]}[] = {{ {', '.join(map(cstr, key))}, NULL }};")
        return self.lists[key]

    def rules_of(self, a):
        if not set(a) & {"enum", "values", "pattern", *NUMBERS}:
            return "NULL"
        values = a.get("enum") or a.get("values")
        parts = [f".values = {self.list_of(values.split('|') if values else None)}", f".is_enum = {str('enum' in a).lower()}"]
        parts += [f".{field} = {a.get(word, none)}" for word, (field, none) in NUMBERS.items()]
        pattern = a.get("pattern")
        if pattern and pattern.startswith('"'):
            pattern = json.loads(pattern)
        parts.append(f".pattern = {cstr(pattern)}")
        text = ", ".join(parts)
        if text not in self.rules:
            self.rules[text] = f"rules_{len(self.rules)}"
            self.lines.append(f"static const struct schema_rules {self.rules[text]} = {{ {text} }};")
        return "&" + self.rules[text]


ATTRIBUTES = {"doc", "fill", "required", "always", "map", "set", "atomic", "patch", "key", "default", "go", "enum", "values", "pattern", *NUMBERS}


def row(out, types, owner, field, number):
    name, _, kind, a = field
    if set(a) - ATTRIBUTES:
        sys.exit(f"{owner.full}.{name}: unknown attributes {sorted(set(a) - ATTRIBUTES)}")
    flags = [flag for word, flag in (("required", "REQUIRED"), ("always", "ALWAYS")) if word in a]
    if kind.startswith("*"):
        kind, flags = kind[1:], flags + ["POINTER"]
    shape = "SINGLE"
    if kind.startswith("[]"):
        kind, shape = kind[2:], "LIST"
    elif kind.startswith("map:"):
        kind, shape = kind[4:], "MAP"
    ref = None if kind in SCALARS else find(types, owner, kind)
    listing = "UNSAID"
    if shape == "LIST":
        listing = "MAP" if "map" in a else "SET" if "set" in a else "ATOMIC" if "atomic" in a else "UNSAID"
    elif "atomic" in a or (ref and "atomic" in ref.marks):
        flags.append("ATOMIC")
    patch = a.get("patch", "").split(",")
    flags += [flag for word, flag in (("merge", "PATCH_MERGE"), ("retainKeys", "RETAIN_KEYS"), ("replace", "PATCH_REPLACE")) if word in patch]
    return (f"{{ {cstr(name)}, {len(name)}, SCHEMA_{SCALARS.get(kind, 'OBJECT')}, SCHEMA_{shape}, SCHEMA_LIST_{listing}, "
            f"{' | '.join('SCHEMA_' + f for f in flags) or '0'}, {0 if number == '-' else number}, {'&' + ref.c if ref else 'NULL'}, "
            f"{out.list_of(a['map'].split(',') if 'map' in a else None)}, {cstr(a.get('key'))}, {cstr(a.get('default'))}, {cstr(a.get('fill'))}, "
            f"{cstr(a.get('go'))}, {out.rules_of(a)}, {a.get('doc', 'NULL')} }},")


def write_c(types, path, header):
    out = Out()
    body = []
    for t in types.values():
        fields = flat(types, t)
        seen = [f[0] for f, _, _ in fields]
        if len(set(seen)) != len(seen):
            sys.exit(f"{t.full}: a field is there twice")
        if fields:
            body.append(f"static const struct schema_field fields_{t.c}[] = {{")
            body += ["    " + row(out, types, owner, field, number) for field, owner, number in fields]
            body.append("};")
        inlines = [(n, find(types, t, ref)) for _, n, ref in t.inlines if n != "-"]
        if inlines:
            body.append(f"static const struct schema_inline inlines_{t.c}[] = {{")
            body += [f"    {{ {n}, &{ref.c} }}," for n, ref in inlines]
            body.append("};")
        body.append(
            f"const struct schema_type {t.c} = {{ {cstr(t.name)}, {cstr(t.package)}, {cstr(t.openapi())}, "
            f"{'fields_' + t.c if fields else 'NULL'}, {len(fields)}, {'inlines_' + t.c if inlines else 'NULL'}, {len(inlines)}, "
            f"{str(t.has_type_meta).lower()}, {str('atomic' in t.marks).lower()}, {str('custom' in t.marks).lower()} }};")
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* Made by tools/schema_c.py from src/kube/tables. */\n")
        f.write(f'#include "{header}"\n\n')
        f.write("\n".join(out.lines + body) + "\n\n")
        f.write("const struct schema_type *const schema_all[] = {\n" + "".join(f"    &{t.c},\n" for t in types.values()) + "};\n")
        f.write("const size_t schema_all_count = sizeof schema_all / sizeof schema_all[0];\n")


def write_h(types, path):
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* Made by tools/schema_c.py from src/kube/tables: every type by its name. */\n")
        f.write("#ifndef SILICA_KUBE_SCHEMA_TABLES_H\n#define SILICA_KUBE_SCHEMA_TABLES_H\n\n#include \"kube/schema.h\"\n\n")
        f.write("".join(f"extern const struct schema_type {t.c};\n" for t in types.values()))
        f.write("\nextern const struct schema_type *const schema_all[];\nextern const size_t schema_all_count;\n\n#endif\n")


def main():
    c_path, h_path, *paths = sys.argv[1:]
    types = read([path for path in paths if path.endswith(".types")])
    for path in paths:
        if path.endswith(".fills"):
            add_fills(types, path)
    write_c(types, c_path, "kube/schema_tables.h")
    write_h(types, h_path)


if __name__ == "__main__":
    main()
