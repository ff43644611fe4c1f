// kube_facts: writes the rows of src/kube/tables/*.types from the Go declarations of the public API modules.
//
//	go run tools/kube_facts.go FILE.types TYPE... -- NAME=DIR... [-skip FILE.types...]
//
// NAME=DIR says where a package's sources are (core/v1=.../k8s.io/api@v0.36.3/core/v1); TYPE is a root as NAME.Type,
// with a ! behind it when a CustomResourceDefinition defines the kind.
// Everything the roots reach is written, except what a skipped table has. Only facts are taken: names, numbers, types,
// tags and markers; no description is. The format is told at the top of src/kube/tables/README.md.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

type pkg struct {
	name    string
	types   map[string]*ast.TypeSpec
	docs    map[string]string
	imports map[string]map[string]string // type -> alias -> path
	consts  map[string][]string          // named type -> values
	values  map[string]string            // constant -> its text
}

var packages = map[string]*pkg{}
var byPath = map[string]string{} // tail of an import path -> package name

func load(name, dir string) {
	p := &pkg{name, map[string]*ast.TypeSpec{}, map[string]string{}, map[string]map[string]string{}, map[string][]string{}, map[string]string{}}
	packages[name] = p
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "zz_generated") || strings.HasSuffix(path, "generated.pb.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		aliases := map[string]string{}
		for _, i := range file.Imports {
			target, _ := strconv.Unquote(i.Path.Value)
			alias := filepath.Base(target)
			if i.Name != nil {
				alias = i.Name.Name
			}
			aliases[alias] = target
		}
		for _, d := range file.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gen.Specs {
				switch spec := s.(type) {
				case *ast.TypeSpec:
					p.types[spec.Name.Name] = spec
					p.docs[spec.Name.Name] = markers(gen.Doc) + markers(spec.Doc)
					p.imports[spec.Name.Name] = aliases
				case *ast.ValueSpec:
					if id, ok := spec.Type.(*ast.Ident); ok && gen.Tok == token.CONST {
						for i, v := range spec.Values {
							if lit, ok := v.(*ast.BasicLit); ok {
								text, _ := strconv.Unquote(lit.Value)
								p.consts[id.Name] = append(p.consts[id.Name], text)
								p.values[spec.Names[i].Name] = text
							}
						}
					}
				}
			}
		}
	}
}

// Comments with their markers; Doc.Text() would drop lines such as "//+enum".
func markers(g *ast.CommentGroup) string {
	text := ""
	if g != nil {
		for _, c := range g.List {
			text += strings.TrimSpace(strings.TrimPrefix(c.Text, "//")) + "\n"
		}
	}
	return text
}

func marker(doc, name string) []string {
	var found []string
	for _, line := range strings.Split(doc, "\n") {
		if line == "+"+name {
			found = append(found, "")
		} else if strings.HasPrefix(line, "+"+name+"=") || strings.HasPrefix(line, "+"+name+":") && name == "listType" {
			found = append(found, line[len(name)+2:])
		}
	}
	return found
}

var special = map[string]string{
	"meta/v1.Time": "time", "meta/v1.MicroTime": "microtime", "meta/v1.Duration": "duration", "meta/v1.FieldsV1": "raw",
	"resource.Quantity": "quantity", "intstr.IntOrString": "intstr", "runtime.RawExtension": "raw", "runtime.Object": "raw",
	"apiextensions/v1.JSON": "raw", "apiextensions/v1.JSONSchemaProps": "raw", "types.UID": "string", "types.NodeName": "string",
	"apiextensions/v1.CustomResourceSubresourceStatus": "raw",
}
var importNames = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1": "meta/v1", "k8s.io/apimachinery/pkg/api/resource": "resource",
	"k8s.io/apimachinery/pkg/util/intstr": "intstr", "k8s.io/apimachinery/pkg/runtime": "runtime",
	"k8s.io/apimachinery/pkg/types": "types", "k8s.io/api/core/v1": "core/v1", "k8s.io/api/autoscaling/v1": "autoscaling/v1",
	"k8s.io/api/authentication/v1": "authentication/v1",
}

// Scalars of ours that are structs in Go: omitempty does not leave them out.
var structs = map[string]bool{"time": true, "microtime": true, "duration": true, "quantity": true, "intstr": true, "raw": true}

type use struct {
	prefix string // "[]", "map:", "*"
	base   string // scalar name or package.Type
	named  string // the Go name of a named scalar
	enum   []string
	doc    string // markers of the named type
}

func resolve(p *pkg, owner string, x ast.Expr) use {
	switch t := x.(type) {
	case *ast.StarExpr:
		u := resolve(p, owner, t.X)
		u.prefix = "*" + u.prefix
		return u
	case *ast.ArrayType:
		if id, ok := t.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return use{base: "bytes"}
		}
		u := resolve(p, owner, t.Elt)
		u.prefix = "[]" + strings.TrimPrefix(u.prefix, "*")
		return u
	case *ast.MapType:
		u := resolve(p, owner, t.Value)
		if u.prefix == "[]" {
			return use{prefix: "map:", base: "strings"}
		}
		u.prefix = "map:" + strings.TrimPrefix(u.prefix, "*")
		return u
	case *ast.SelectorExpr:
		path := p.imports[owner][t.X.(*ast.Ident).Name]
		name := importNames[path]
		if name == "" {
			panic("import " + path + " in " + p.name + "." + owner)
		}
		return named(name, t.Sel.Name)
	case *ast.Ident:
		switch t.Name {
		case "string", "int32", "int64", "bool":
			return use{base: t.Name}
		case "int":
			return use{base: "int32"}
		case "uint16":
			return use{base: "int32"}
		case "float64":
			return use{base: "double"}
		}
		return named(p.name, t.Name)
	}
	panic(fmt.Sprintf("type %T in %s.%s", x, p.name, owner))
}

func named(name, typ string) use {
	if s := special[name+"."+typ]; s != "" {
		return use{base: s}
	}
	p := packages[name]
	if p == nil || p.types[typ] == nil {
		panic("unknown " + name + "." + typ)
	}
	if _, ok := p.types[typ].Type.(*ast.StructType); ok {
		if strings.HasPrefix(typ, "JSONSchemaPropsOr") {
			return use{base: "raw"}
		}
		return use{base: name + "." + typ}
	}
	u := resolve(p, typ, p.types[typ].Type)
	if u.prefix == "" {
		u.named = filepath.Base(name) + "." + typ
		if len(marker(p.docs[typ], "enum")) > 0 {
			u.enum = p.consts[typ]
		}
	}
	if typ == "ExtraValue" {
		return use{prefix: "", base: "strings"}
	}
	u.doc += p.docs[typ]
	return u
}

// A marker's literal as JSON: {a: b} is an object, {x, y} a list, a bare word a text. Returns what follows.
func literal(s string) (string, string) {
	s = strings.TrimLeft(s, " ")
	if s[0] == '"' {
		end := 1 + strings.Index(s[1:], "\"")
		return s[:end+1], strings.TrimLeft(s[end+1:], " ")
	}
	if s[0] != '{' {
		end := strings.IndexAny(s, ",}:")
		return strconv.Quote(strings.TrimSpace(s[:end])), s[end:]
	}
	rest := strings.TrimLeft(s[1:], " ")
	isObject := rest[0] != '{'
	var parts []string
	for rest[0] != '}' {
		var item, value string
		item, rest = literal(rest)
		if isObject {
			value, rest = literal(rest[1:])
			item += ":" + value
		}
		parts = append(parts, item)
		rest = strings.TrimLeft(strings.TrimPrefix(rest, ","), " ")
	}
	joined := strings.Join(parts, ",")
	if isObject {
		return "{" + joined + "}", strings.TrimLeft(rest[1:], " ")
	}
	return "[" + joined + "]", strings.TrimLeft(rest[1:], " ")
}

var done = map[string]bool{}

func quoted(s string) string {
	if strings.ContainsAny(s, " \t") || s == "" {
		return strconv.Quote(s)
	}
	return s
}

func visit(full string, out map[string][]string, order *[]string) {
	if done[full] {
		return
	}
	done[full] = true
	dot := strings.LastIndex(full, ".")
	p := packages[full[:dot]]
	typ := full[dot+1:]
	if p == nil {
		panic("no package for " + full)
	}
	spec := p.types[typ].Type.(*ast.StructType)
	*order = append(*order, full)
	var rows []string
	var next []string
	for _, f := range spec.Fields.List {
		tag := reflect.StructTag("")
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value)
			tag = reflect.StructTag(text)
		}
		parts := strings.Split(tag.Get("json"), ",")
		json := parts[0]
		if json == "-" || (f.Tag == nil) {
			continue
		}
		isInline, isOmit, isOmitZero := false, false, false
		for _, o := range parts[1:] {
			isInline = isInline || o == "inline"
			isOmit = isOmit || o == "omitempty"
			isOmitZero = isOmitZero || o == "omitzero"
		}
		if len(f.Names) == 0 && json == "" {
			isInline = true
		}
		pb := "-"
		if t := tag.Get("protobuf"); t != "" {
			pb = strings.Split(t, ",")[1]
		}
		u := resolve(p, typ, f.Type)
		if isInline && u.base == "meta/v1.TypeMeta" {
			rows = append(rows, "\t@type")
			continue
		}
		short := u.base
		if strings.Contains(u.base, ".") {
			next = append(next, u.base)
			if strings.HasPrefix(u.base, p.name+".") {
				short = u.base[len(p.name)+1:]
			}
		}
		if isInline {
			rows = append(rows, fmt.Sprintf("\t@inline %s %s", pb, short))
			continue
		}
		doc := markers(f.Doc)
		row := fmt.Sprintf("\t%s %s %s%s", json, pb, u.prefix, short)
		isOptional := len(marker(doc, "optional")) > 0
		isRequired := len(marker(doc, "required")) > 0 || len(marker(doc, "kubebuilder:validation:Required")) > 0
		if !isOptional && (isRequired || (!isOmit && !isOmitZero)) {
			row += " required"
		}
		// What Go writes even when it is empty.
		isStruct := u.prefix == "" && (strings.Contains(u.base, ".") || structs[u.base])
		if !isOmitZero && (!isOmit || isStruct) {
			row += " always"
		}
		if s := marker(doc, "listType"); len(s) > 0 {
			if s[0] == "map" {
				row += " map=" + strings.Join(marker(doc, "listMapKey"), ",")
			} else {
				row += " " + s[0]
			}
		}
		if s := marker(doc, "mapType"); len(s) > 0 && s[0] == "atomic" {
			row += " atomic"
		}
		if s := marker(doc, "structType"); len(s) > 0 && s[0] == "atomic" || strings.Contains(u.doc, "+structType=atomic") {
			row += " atomic"
		}
		if strings.Contains(u.base, ".") {
			d := u.base
			k := strings.LastIndex(d, ".")
			if strings.Contains(packages[d[:k]].docs[d[k+1:]], "+structType=atomic") && u.prefix != "[]" {
				row += " atomic"
			}
		}
		if s := tag.Get("patchStrategy"); s != "" {
			row += " patch=" + s
		}
		if s := tag.Get("patchMergeKey"); s != "" {
			row += " key=" + s
		}
		for _, m := range []string{"default", "kubebuilder:default"} {
			if s := marker(doc, m); len(s) > 0 {
				v := s[0]
				if strings.HasPrefix(v, "ref(") {
					v = strconv.Quote(p.values[strings.TrimSuffix(v[4:], ")")])
				}
				if m == "kubebuilder:default" && !strings.HasPrefix(v, "{") && !strings.HasPrefix(v, "\"") && (u.base == "string" || u.base == "duration") {
					v = strconv.Quote(v)
				}
				if strings.HasPrefix(v, "{") {
					v, _ = literal(v)
				}
				row += " default=" + v
			}
		}
		if u.named != "" {
			row += " go=" + u.named
		}
		if len(u.enum) > 0 {
			values := append([]string{}, u.enum...)
			sort.Strings(values)
			row += " values=" + strings.Join(values, "|")
		}
		both := doc + u.doc
		for _, m := range [][2]string{{"Enum", "enum"}, {"Minimum", "min"}, {"Maximum", "max"}, {"MinLength", "minlen"}, {"MaxLength", "maxlen"},
			{"MinItems", "minitems"}, {"MaxItems", "maxitems"}, {"MaxProperties", "maxprops"}, {"Pattern", "pattern"}} {
			s := marker(both, "kubebuilder:validation:"+m[0])
			if len(s) == 0 {
				continue
			}
			v := s[0]
			if m[1] == "enum" {
				v = strings.ReplaceAll(strings.ReplaceAll(v, ";", "|"), "\"", "")
			}
			if m[1] == "pattern" {
				v = strings.Trim(v, "`\"")
			}
			// On a list the bounds of its items are the named type's.
			row += " " + m[1] + "=" + quoted(v)
		}
		rows = append(rows, row)
	}
	head := full
	if strings.Contains(p.docs[typ], "+structType=atomic") {
		head += " atomic"
	}
	out[full] = append([]string{head}, rows...)
	for _, n := range next {
		visit(n, out, order)
	}
}

func main() {
	var roots []string
	stage := 0
	for _, a := range os.Args[2:] {
		switch {
		case a == "--":
			stage = 1
		case a == "-skip":
			stage = 2
		case stage == 0:
			roots = append(roots, a)
		case stage == 1:
			eq := strings.Index(a, "=")
			load(a[:eq], a[eq+1:])
		default:
			f, err := os.Open(a)
			if err != nil {
				panic(err)
			}
			for s := bufio.NewScanner(f); s.Scan(); {
				if line := s.Text(); line != "" && line[0] != '\t' && line[0] != '#' {
					done[strings.Fields(line)[0]] = true
				}
			}
		}
	}
	out := map[string][]string{}
	var order []string
	for _, r := range roots {
		root := strings.TrimSuffix(r, "!")
		visit(root, out, &order)
		if root != r {
			out[root][0] += " custom"
		}
	}
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	defer f.Close()
	for _, t := range order {
		fmt.Fprintf(f, "%s\n\n", strings.Join(out[t], "\n"))
	}
}
