// Package compiler compiles scripts for the interpreter, whose language differs from Redis' in some
// ways that the compiler makes equal.
package compiler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	numbers "rlserver/resp/lua/number"
)

// Script is a compiled script. It is immutable, and shared by all states.
type Script struct {
	Name    string // as its error names it: see ShortName
	Proto   *glua.FunctionProto
	Params  []int // what main is called with: indexes of Given
	Watched bool  // instructions are counted: it has loops or functions, or is long
}

// Reserved are the names of the functions and constants of libraries, which cannot be set.
var Reserved = make(map[string]bool)

// The names of helpers that the compiler inserts. No script can write them, or see them.
const (
	Concat     = " concat"
	SetElement = " set"
	Bound      = " bound"
	Extend     = " extend"
	Guard      = " guard"
	Key        = " key"
	Charge     = " charge"
	Globals    = " globals"
)

// Given are the values that main functions can take as parameters, which is faster than looking
// globals up.
var Given = []string{
	"KEYS", "ARGV", Concat, SetElement, Guard, Key, Charge, Globals, Bound, Extend,
	"redis", "tonumber", "tostring", "math", "string", "table", "unpack", "ipairs", "pairs", "type", "cjson",
	"struct", "cmsgpack", "bit", "server",
}

// maxGlobals is how many globals a main function takes as parameters, besides KEYS, ARGV and the
// helpers: they use up registers, of which a function has 200.
const maxGlobals = 6

// unwatchedSize is the longest script in bytes that may run without counted instructions.
const unwatchedSize = 16 << 10

// MainName is the name of scripts.
const MainName = "@user_script"

// Compile compiles a script.
func Compile(source string) (s *Script, err error) {
	return compile(source, MainName, func(main *ast.FunctionExpr) {})
}

// CompileChunk compiles a chunk for loadstring. Its main function returns that of the chunk.
func CompileChunk(source, name string) (s *Script, err error) {
	return compile(source, name, func(main *ast.FunctionExpr) {
		chunk := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: main.ParList.HasVargs}, Stmts: main.Stmts}
		chunk.SetLine(1)
		chunk.SetLastLine(main.LastLine())
		ret := &ast.ReturnStmt{Exprs: []ast.Expr{chunk}}
		ret.SetLine(1)
		main.ParList.HasVargs, main.Stmts = false, []ast.Stmt{ret}
	})
}

// compile compiles a script, whose main function change may change last.
func compile(source, name string, change func(main *ast.FunctionExpr)) (s *Script, err error) {
	whole := name
	name = ShortName(whole, maxNameInFault)
	defer func() {
		if fault := recover(); fault != nil { // the compiler's way to report errors
			s, err = nil, errors.New(compileFault(name, fault))
		}
	}()
	if len(source) > 0 && source[0] == 0x1b {
		return nil, errors.New(name + ": bytecode is not supported")
	}
	c := compiler{watched: len(source) > unwatchedSize}
	chunk, err := c.rewrite(source, name)
	if c.unbounded && !c.watched { // tables before the first loop are counted too
		c = compiler{watched: true}
		chunk, err = c.rewrite(source, name)
	}
	if err != nil {
		return nil, err
	}
	main := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: c.varargs}, Stmts: chunk}
	main.SetLine(1)
	main.SetLastLine(strings.Count(source, "\n") + 1)
	s = &Script{Name: whole, Watched: c.watched}
	globals := 0
	for i, name := range Given {
		if !c.used[name] {
			continue
		}
		if name != "KEYS" && name != "ARGV" && name[0] != ' ' {
			if globals == maxGlobals {
				continue
			}
			globals++
		}
		s.Params = append(s.Params, i)
		main.ParList.Names = append(main.ParList.Names, name)
	}
	change(main)
	ret := &ast.ReturnStmt{Exprs: []ast.Expr{main}}
	ret.SetLine(1)
	proto, err := glua.Compile([]ast.Stmt{ret}, ShortName(whole, maxName))
	if err != nil {
		return nil, errors.New(compileFault(name, err))
	}
	s.Proto = proto.FunctionPrototypes[0]
	trim(s.Proto)
	return s, nil
}

// The size of a name in messages, in bytes, with the zero behind it in Lua.
const (
	maxName        = 60
	maxNameInFault = 80 // in syntax errors
)

// ShortName returns a chunk's name as messages begin with it: as Lua shortens it to a size.
func ShortName(name string, size int) string {
	switch {
	case strings.HasPrefix(name, "="):
		return name[1:min(len(name), size)]
	case strings.HasPrefix(name, "@"):
		if size -= len(" '...' ") + 1; len(name)-1 > size {
			return "..." + name[len(name)-size:]
		}
		return name[1:]
	}
	size -= len(` [string "..."] `) + 1
	line := name
	if at := strings.IndexAny(name, "\r\n"); at >= 0 {
		line = name[:at]
	}
	if line = line[:min(len(line), size)]; len(line) < len(name) {
		line += "..."
	}
	return `[string "` + line + `"]`
}

// Has reports whether a function belongs to a script.
func (s *Script) Has(fn *glua.FunctionProto) bool { return has(s.Proto, fn) }

func has(p, fn *glua.FunctionProto) bool {
	within := func(inner *glua.FunctionProto) bool { return has(inner, fn) }
	return p == fn || slices.ContainsFunc(p.FunctionPrototypes, within)
}

func compileFault(name string, fault any) string {
	if e, ok := fault.(*glua.CompileError); ok {
		return fmt.Sprintf("%s:%d: %s", name, e.Line, e.Message)
	}
	if err, ok := fault.(error); ok {
		if e := (*glua.CompileError)(nil); errors.As(err, &e) {
			return fmt.Sprintf("%s:%d: %s", name, e.Line, e.Message)
		}
	}
	return name + ": " + fmt.Sprint(fault)
}

// parseFault words a syntax error as Lua does.
func parseFault(name, source string, err error) string {
	e, ok := err.(*parse.Error)
	if !ok {
		return name + ": " + err.Error()
	}
	line, token := e.Pos.Line, e.Token
	if line == parse.EOF || token == "" && e.Message == "syntax error" {
		line, token = strings.Count(strings.TrimSuffix(source, "\n"), "\n")+1, "<eof>"
	}
	message := e.Message
	switch message {
	case "syntax error":
		message = "unexpected symbol"
	case "parse error":
		message = "'=' expected"
	}
	return fmt.Sprintf("%s:%d: %s near '%s'", name, line, message, token)
}

// stripShebang blanks the first line if it is a shebang: lines keep their numbers.
func stripShebang(source string) string {
	if !strings.HasPrefix(source, "#!") {
		return source
	}
	if _, rest, found := strings.Cut(source, "\n"); found {
		return "\n" + rest
	}
	return ""
}

// compiler rewrites the syntax tree of a script: `..` and assignments to computed keys become calls
// of helpers, which count memory and format numbers as Redis does, and globals are read-only.
type compiler struct {
	// for each `local` of the source: `function` follows, see namedFunctions
	named []bool

	scopes  [][]string     // local names, innermost last
	locals  map[string]int // in how many scopes a name is declared
	used    map[string]bool
	watched bool
	// the time that the script takes is not bounded by its length: it has a loop or a function, or
	// may run another chunk
	unbounded bool
	varargs   bool // main uses ...
	depth     int  // of functions
	nesting   int

	constants map[any]bool // of the function
}

// rewrite parses a script, and rewrites it.
func (c *compiler) rewrite(source, name string) ([]ast.Stmt, error) {
	text := stripShebang(source)
	chunk, err := parse.Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, errors.New(parseFault(name, source, err))
	}
	c.used, c.locals = make(map[string]bool), make(map[string]int)
	c.named = namedFunctions(text)
	c.within(chunk)
	return chunk, nil
}

// namedFunctions reports for each `local` of a source whether `function` follows. The parser makes
// the same of `local function f` and of `local f = function`, in whose body f is another variable.
func namedFunctions(source string) (named []bool) {
	if !strings.Contains(source, "function") {
		return nil
	}
	scanner, lexer := parse.NewScanner(strings.NewReader(source), ""), new(parse.Lexer)
	for {
		lexer.PrevTokenType = lexer.Token.Type
		next, err := scanner.Scan(lexer)
		if lexer.Token.Type == parse.TLocal {
			named = append(named, next.Type == parse.TFunction)
		}
		if lexer.Token = next; err != nil || next.Type < 0 {
			return named
		}
	}
}

// runsChunks are the globals with which a script without loops and functions may run others.
var runsChunks = []string{"load", "loadstring", "coroutine", "_G", "getmetatable", "setmetatable"}

// local reports whether a name is a local variable here.
func (c *compiler) local(name string) bool { return c.locals[name] > 0 }

func (c *compiler) declare(names ...string) {
	last := len(c.scopes) - 1
	c.scopes[last] = append(c.scopes[last], names...)
	for _, name := range names {
		c.locals[name]++
	}
}

func (c *compiler) open() { c.scopes = append(c.scopes, nil) }

func (c *compiler) close() {
	last := len(c.scopes) - 1
	for _, name := range c.scopes[last] {
		c.locals[name]--
	}
	c.scopes = c.scopes[:last]
}

// within rewrites a block in a scope of its own, after other declarations of it.
func (c *compiler) within(list []ast.Stmt, names ...string) {
	c.open()
	c.declare(names...)
	c.block(list)
	c.close()
}

func (c *compiler) block(list []ast.Stmt) {
	for i := range list {
		list[i] = c.stmt(list[i])
	}
}

// maxNested bounds the depth of a syntax tree: walking it is recursive. Lua has 200.
const maxNested = 200

func (c *compiler) enter(at ast.PositionHolder) {
	if c.nesting++; c.nesting > 4*maxNested {
		panic(&glua.CompileError{Line: at.Line(), Message: "chunk has too many syntax levels"})
	}
}

func (c *compiler) stmt(st ast.Stmt) ast.Stmt {
	c.enter(st)
	defer func() { c.nesting-- }()
	switch st.(type) {
	case *ast.WhileStmt, *ast.RepeatStmt, *ast.NumberForStmt, *ast.GenericForStmt:
		c.unbounded = true
	}
	switch st := st.(type) {
	case *ast.AssignStmt:
		return c.assign(st)
	case *ast.LocalAssignStmt:
		named := false
		if len(c.named) > 0 && st.Names[0][0] != ' ' {
			named, c.named = c.named[0], c.named[1:]
		}
		if named {
			c.declare(st.Names...)
			c.function(st.Exprs[0].(*ast.FunctionExpr))
			return st
		}
		c.exprs(st.Exprs)
		if len(st.Exprs) == 1 {
			if fn, ok := st.Exprs[0].(*ast.FunctionExpr); ok {
				st.Exprs[0] = c.helper(fn, Charge, fn) // or it passes for `local function`
			}
		}
		c.declare(st.Names...)
	case *ast.FuncCallStmt:
		st.Expr = c.call(st.Expr.(*ast.FuncCallExpr))
	case *ast.DoBlockStmt:
		c.within(st.Stmts)
	case *ast.WhileStmt:
		st.Condition = c.expr(st.Condition)
		c.within(st.Stmts)
	case *ast.RepeatStmt:
		c.open()
		c.block(st.Stmts)
		st.Condition = c.expr(st.Condition)
		c.close()
	case *ast.IfStmt:
		st.Condition = c.expr(st.Condition)
		c.within(st.Then)
		c.within(st.Else)
	case *ast.NumberForStmt:
		st.Init, st.Limit = c.bound(st.Init), c.bound(st.Limit)
		if st.Step != nil {
			st.Step = c.bound(st.Step)
		}
		c.within(st.Stmts, st.Name)
	case *ast.GenericForStmt:
		c.exprs(st.Exprs)
		c.within(st.Stmts, st.Names...)
	case *ast.FuncDefStmt:
		return c.define(st)
	case *ast.ReturnStmt:
		c.exprs(st.Exprs)
	case *ast.GotoStmt:
		panic(&glua.CompileError{Line: st.Line(), Message: "'=' expected near '" + st.Label + "'"})
	case *ast.LabelStmt:
		panic(&glua.CompileError{Line: st.Line(), Message: "unexpected symbol near ':'"})
	}
	return st
}

// bound rewrites a bound of a loop: a text may be one, if it is a number.
func (c *compiler) bound(e ast.Expr) ast.Expr {
	e = c.expr(e)
	if isNumber(e) {
		return e
	}
	return c.helper(e, Bound, single(e))
}

// define rewrites `function name() … end`, whose name may be global: then it is an error.
func (c *compiler) define(st *ast.FuncDefStmt) ast.Stmt {
	if st.Name.Func == nil { // function object:method()
		method := &ast.StringExpr{Value: st.Name.Method}
		method.SetLine(st.Line())
		at := &ast.AttrGetExpr{Object: st.Name.Receiver, Key: method}
		at.SetLine(st.Line())
		st.Name.Receiver = c.guarded(at).(*ast.AttrGetExpr).Object
		c.function(st.Func, "self")
		return st
	}
	c.function(st.Func)
	if id, ok := st.Name.Func.(*ast.IdentExpr); ok {
		st.Name.Func = c.target(id)
	} else {
		st.Name.Func = c.guarded(st.Name.Func.(*ast.AttrGetExpr))
	}
	return st
}

// assign rewrites an assignment. One to a computed key becomes a call that counts what the table
// grows by.
func (c *compiler) assign(st *ast.AssignStmt) ast.Stmt {
	_, toName := st.Lhs[0].(*ast.IdentExpr)
	_, logical := st.Rhs[0].(*ast.LogicalOpExpr)
	if len(st.Lhs) > 1 || len(st.Rhs) > 1 || toName && logical {
		// `v = f() and 1` would leave a local v as it is where f() is false
		return c.assignMany(st)
	}
	if at, ok := st.Lhs[0].(*ast.AttrGetExpr); ok {
		simple := harmless(at)
		at.Object, at.Key = c.expr(at.Object), c.expr(at.Key)
		if c.exprs(st.Rhs); simple {
			return st
		}
		call := c.helper(st, SetElement, single(at.Object), single(at.Key), single(st.Rhs[0]))
		stmt := &ast.FuncCallStmt{Expr: call}
		stmt.SetLine(st.Line())
		stmt.SetLastLine(st.LastLine())
		return stmt
	}
	c.exprs(st.Rhs)
	// The interpreter evaluates a call with one value in the registers from the target on, if that
	// is the last parameter: they are those of the variables behind it. It has another way for
	// calls with any number of values.
	if call, ok := st.Rhs[0].(*ast.FuncCallExpr); ok {
		call.AdjustRet = false
	}
	st.Lhs[0] = c.target(st.Lhs[0].(*ast.IdentExpr))
	return st
}

// assignMany rewrites an assignment to several variables: the interpreter assigns to local ones
// before it has evaluated all values. As in Lua the tables and keys of targets are evaluated first,
// then the values, and the last target is assigned first.
func (c *compiler) assignMany(st *ast.AssignStmt) ast.Stmt {
	at := func(n ast.PositionHolder) { n.SetLine(st.Line()); n.SetLastLine(st.LastLine()) }
	hidden := func(list *ast.LocalAssignStmt, kind string) ast.Expr {
		id := &ast.IdentExpr{Value: fmt.Sprint(" ", kind, len(list.Names))}
		at(id)
		list.Names = append(list.Names, id.Value)
		return id
	}
	targets, values := &ast.LocalAssignStmt{}, &ast.LocalAssignStmt{Exprs: st.Rhs}
	at(targets)
	at(values)
	var assigns []ast.Stmt
	for _, lhs := range st.Lhs {
		if field, ok := lhs.(*ast.AttrGetExpr); ok {
			targets.Exprs = append(targets.Exprs, single(field.Object))
			field.Object = hidden(targets, "target")
			if !isString(field.Key) {
				targets.Exprs = append(targets.Exprs, single(field.Key))
				field.Key = hidden(targets, "target")
			}
		}
		one := &ast.AssignStmt{Lhs: []ast.Expr{lhs}, Rhs: []ast.Expr{hidden(values, "value")}}
		at(one)
		assigns = append(assigns, one)
	}
	slices.Reverse(assigns)
	block := &ast.DoBlockStmt{Stmts: append([]ast.Stmt{values}, assigns...)}
	if len(targets.Names) > 0 {
		block.Stmts = append([]ast.Stmt{targets}, block.Stmts...)
	}
	at(block)
	return c.stmt(block)
}

// target returns what an assignment to a name is to: to a global it is an error, as it is in Redis.
func (c *compiler) target(id *ast.IdentExpr) ast.Expr {
	if c.local(id.Value) {
		return id
	}
	c.constant(id, id.Value)
	key := &ast.StringExpr{Value: id.Value}
	at := &ast.AttrGetExpr{Object: c.name(id, Globals), Key: key}
	key.SetLine(id.Line())
	at.SetLine(id.Line())
	return at
}

// guarded rewrites the field that a function is defined as: its table is checked before.
func (c *compiler) guarded(at *ast.AttrGetExpr) ast.Expr {
	safe := harmless(at)
	if at.Object, at.Key = c.expr(at.Object), c.expr(at.Key); !safe {
		at.Object = c.helper(at, Guard, single(at.Object), at.Key)
	}
	return at
}

// harmless reports whether an assignment to t[k] can neither change a library nor make a table grow
// by more than an element.
func harmless(at *ast.AttrGetExpr) bool {
	switch k := at.Key.(type) {
	case *ast.StringExpr:
		return !Reserved[k.Value]
	case *ast.NumberExpr:
		n, err := strconv.Atoi(k.Value)
		return err == nil && n <= 64
	case *ast.ArithmeticOpExpr: // t[#t+1]
		length, ok := k.Lhs.(*ast.UnaryLenOpExpr)
		one, isNumber := k.Rhs.(*ast.NumberExpr)
		if !ok || !isNumber || k.Operator != "+" || one.Value != "1" {
			return false
		}
		a, ok := length.Expr.(*ast.IdentExpr)
		b, isName := at.Object.(*ast.IdentExpr)
		return ok && isName && a.Value == b.Value
	}
	return false
}

// name returns a reference to a helper.
func (c *compiler) name(at ast.PositionHolder, name string) *ast.IdentExpr {
	c.used[name] = true
	id := &ast.IdentExpr{Value: name}
	id.SetLine(at.Line())
	id.SetLastLine(at.Line())
	return id
}

func (c *compiler) helper(at ast.PositionHolder, name string, args ...ast.Expr) *ast.FuncCallExpr {
	call := &ast.FuncCallExpr{Func: c.name(at, name), Args: args, AdjustRet: true}
	call.SetLine(at.Line())
	call.SetLastLine(at.Line())
	return call
}

func (c *compiler) exprs(list []ast.Expr) {
	for i := range list {
		list[i] = c.expr(list[i])
	}
}

func (c *compiler) expr(e ast.Expr) ast.Expr {
	c.enter(e)
	defer func() { c.nesting-- }()
	switch e := e.(type) {
	case *ast.StringExpr:
		c.constant(e, e.Value)
	case *ast.NumberExpr:
		e.Value = literal(e)
		c.constant(e, number(e.Value))
	case *ast.IdentExpr:
		c.constant(e, e.Value)
		c.unbounded = c.unbounded || slices.Contains(runsChunks, e.Value)
		if slices.Contains(Given, e.Value) && !c.local(e.Value) {
			c.used[e.Value] = true
		}
	case *ast.Comma3Expr:
		c.varargs = c.varargs || c.depth == 0
	case *ast.AttrGetExpr:
		e.Object, e.Key = c.expr(e.Object), c.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				at := &ast.AttrGetExpr{Key: f.Key}
				if f.Key = c.expr(f.Key); !harmless(at) && !isString(f.Key) {
					f.Key = c.helper(e, Key, single(f.Key))
				}
			}
			if f.Value = c.expr(f.Value); f.Key != nil {
				f.Value = single(f.Value) // the interpreter takes more if the field is the last one
			}
		}
		return c.table(e)
	case *ast.FuncCallExpr:
		return c.call(e)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = c.expr(e.Lhs), c.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = c.expr(e.Lhs), c.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return c.concat(e)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = c.expr(e.Lhs), c.expr(e.Rhs)
		if e.Operator == "%" && isNumber(e.Lhs) && isNumber(e.Rhs) {
			return plusZero(e)
		}
	case *ast.UnaryMinusOpExpr:
		e.Expr = c.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = c.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = c.expr(e.Expr)
	case *ast.FunctionExpr:
		c.function(e)
		if c.watched {
			return c.helper(e, Charge, e)
		}
	}
	return e
}

// The interpreter sets the elements of a table blockSize at a time, and loses those behind the last
// block.
const (
	blockSize   = 50
	maxElements = 511 * blockSize
)

// table returns a rewritten table. If full blocks stand before a call with any number of values,
// the interpreter sets these over the last block: a helper appends them.
func (c *compiler) table(e *ast.TableExpr) (made ast.Expr) {
	elements := 0
	for _, f := range e.Fields {
		if f.Key == nil {
			elements++
		}
	}
	if elements > maxElements {
		message := fmt.Sprintf("a table has more than %d elements", maxElements)
		panic(&glua.CompileError{Line: e.Line(), Message: message})
	}
	var last ast.Expr
	if before := elements - 1; before > 0 && before%blockSize == 0 {
		if f := e.Fields[len(e.Fields)-1]; f.Key == nil && many(f.Value) {
			last, e.Fields = f.Value, e.Fields[:len(e.Fields)-1]
		}
	}
	made = e
	if c.watched {
		made = c.helper(e, Charge, e)
	}
	if last != nil {
		n := &ast.NumberExpr{Value: strconv.Itoa(elements - 1)}
		n.SetLine(e.Line())
		made = c.helper(e, Extend, made, n, last)
	}
	return made
}

// many reports whether an expression may have any number of values.
func many(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// literal returns a number in words that the interpreter reads as Lua reads the number.
func literal(e *ast.NumberExpr) string {
	f, ok := numbers.Parse(e.Value)
	if !ok {
		text := strings.TrimSuffix(e.Value, "\xff") // where the source ends
		panic(&glua.CompileError{Line: e.Line(), Message: "malformed number near '" + text + "'"})
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// isNumber reports whether the interpreter's compiler makes a number of an expression.
func isNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.NumberExpr:
		return true
	case *ast.UnaryMinusOpExpr:
		return isNumber(e.Expr)
	case *ast.ArithmeticOpExpr:
		return isNumber(e.Lhs) && isNumber(e.Rhs)
	}
	return false
}

// plusZero makes -0 of an expression 0: that is what the interpreter's compiler makes of `-3 % 3`.
func plusZero(e ast.Expr) ast.Expr {
	zero := &ast.NumberExpr{Value: "0"}
	zero.SetLine(e.Line())
	sum := &ast.ArithmeticOpExpr{Operator: "+", Lhs: e, Rhs: zero}
	sum.SetLine(e.Line())
	return sum
}

// maxConstants is how many different constants a function has at most: the interpreter's compiler
// compares each with all others.
const maxConstants = 10_000

type number string

func (c *compiler) constant(at ast.PositionHolder, value any) {
	if c.constants[value] {
		return
	}
	if len(c.constants) == maxConstants {
		message := fmt.Sprintf("a function has more than %d constants", maxConstants)
		panic(&glua.CompileError{Line: at.Line(), Message: message})
	}
	if c.constants == nil {
		c.constants = make(map[any]bool)
	}
	c.constants[value] = true
}

func isString(e ast.Expr) bool {
	_, ok := e.(*ast.StringExpr)
	return ok
}

// function rewrites the body of a function that is not main.
func (c *compiler) function(fn *ast.FunctionExpr, extra ...string) {
	outer := c.constants
	c.constants, c.unbounded = nil, true
	c.depth++
	c.within(fn.Stmts, append(extra, fn.ParList.Names...)...)
	c.depth--
	c.constants = outer
}

func (c *compiler) call(e *ast.FuncCallExpr) ast.Expr {
	if e.Func != nil {
		e.Func = c.expr(e.Func)
	} else {
		e.Receiver = c.chosen(e.Receiver)
		c.constant(e, e.Method)
	}
	c.exprs(e.Args)
	return e
}

// chosen rewrites the object of a method that is called. The interpreter takes the wrong value of
// `(a == b and c or d):m()` where it wants several results, as in `for … in`: such a value becomes
// one that a helper returns.
func (c *compiler) chosen(e ast.Expr) ast.Expr {
	_, logical := e.(*ast.LogicalOpExpr)
	if e = c.expr(e); logical {
		return c.helper(e, Key, single(e))
	}
	return e
}

// maxJoined is how many parts one call of concat takes: they are registers.
const maxJoined = 50

// concat makes a chain of `..` one call. As in Lua, the last two parts are joined first, but only
// metamethods of tables can tell.
func (c *compiler) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var parts []ast.Expr
	var rest ast.Expr = e
	for {
		next, ok := rest.(*ast.StringConcatOpExpr)
		if !ok || len(parts) == maxJoined {
			break
		}
		parts = append(parts, single(c.expr(next.Lhs)))
		rest = next.Rhs
	}
	parts = append(parts, single(c.expr(rest)))
	return c.helper(e, Concat, parts...)
}

// single makes a call or ... give one value.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

// trim frees what the interpreter's compiler allocated ahead, over 15 KB per function: compiled
// scripts are kept for long.
func trim(p *glua.FunctionProto) {
	p.Code = exactly(p.Code)
	p.Constants = exactly(p.Constants)
	p.FunctionPrototypes = exactly(p.FunctionPrototypes)
	p.DbgSourcePositions = exactly(p.DbgSourcePositions)
	p.DbgLocals = exactly(p.DbgLocals)
	p.DbgCalls = exactly(p.DbgCalls)
	p.DbgUpvalues = exactly(p.DbgUpvalues)
	for _, inner := range p.FunctionPrototypes {
		trim(inner)
	}
}

// exactly returns a slice whose array has no room for more.
func exactly[E any](list []E) []E { return append(make([]E, 0, len(list)), list...) }
