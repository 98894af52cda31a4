package compiler

import "github.com/yuin/gopher-lua/ast"

// surveyor finds whether the time that a script takes is bounded by its length: it has no loop and
// no function of its own, and runs no other chunk.
type surveyor struct {
	loops   bool
	nesting int
}

// walk visits the nodes of a list, until a loop is found.
func walk[N any](s *surveyor, list []N, visit func(N)) {
	if s.nesting++; s.nesting > 10*maxNested {
		s.loops = true
	}
	for i := 0; i < len(list) && !s.loops; i++ {
		visit(list[i])
	}
	s.nesting--
}

func (s *surveyor) block(list []ast.Stmt)  { walk(s, list, s.stmt) }
func (s *surveyor) exprs(list ...ast.Expr) { walk(s, list, s.expr) }

func (s *surveyor) stmt(st ast.Stmt) {
	switch st := st.(type) {
	case *ast.AssignStmt:
		s.exprs(st.Lhs...)
		s.exprs(st.Rhs...)
	case *ast.LocalAssignStmt:
		s.exprs(st.Exprs...)
	case *ast.FuncCallStmt:
		s.exprs(st.Expr)
	case *ast.DoBlockStmt:
		s.block(st.Stmts)
	case *ast.IfStmt:
		s.exprs(st.Condition)
		s.block(st.Then)
		s.block(st.Else)
	case *ast.ReturnStmt:
		s.exprs(st.Exprs...)
	case *ast.BreakStmt:
	default:
		s.loops = true
	}
}

func (s *surveyor) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		switch e.Value {
		case "load", "loadstring", "coroutine", "_G", "getmetatable", "setmetatable":
			s.loops = true
		}
	case *ast.AttrGetExpr:
		s.exprs(e.Object, e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				s.exprs(f.Key)
			}
			s.exprs(f.Value)
		}
	case *ast.FuncCallExpr:
		if e.Func != nil {
			s.exprs(e.Func)
		} else {
			s.exprs(e.Receiver)
		}
		s.exprs(e.Args...)
	case *ast.LogicalOpExpr:
		s.exprs(e.Lhs, e.Rhs)
	case *ast.RelationalOpExpr:
		s.exprs(e.Lhs, e.Rhs)
	case *ast.StringConcatOpExpr:
		s.exprs(e.Lhs, e.Rhs)
	case *ast.ArithmeticOpExpr:
		s.exprs(e.Lhs, e.Rhs)
	case *ast.UnaryMinusOpExpr:
		s.exprs(e.Expr)
	case *ast.UnaryNotOpExpr:
		s.exprs(e.Expr)
	case *ast.UnaryLenOpExpr:
		s.exprs(e.Expr)
	case *ast.FunctionExpr:
		s.loops = true
	}
}
