/* scan: lowers running results (lib/scan.h) to tensor_tensor_scan.
 *
 *     r = a * r + b      tensor_tensor_scan  lhs = a, rhs = b, op0 = multiply, op1 = add
 *     r = r + x                              lhs = 1, rhs = x, op0 = multiply, op1 = add
 *     r = r * x                              lhs = x, rhs = 1, op0 = multiply, op1 = multiply
 *     r = max(r, x)                          lhs = x, rhs = x, op0 = max, op1 = max
 *
 * The 1 is one element of each partition, which the instruction reads again and again; 1 * r and r * 1 are exact.  One
 * instruction does a run of the loop in every partition.  It starts with the result before, and its last result is kept for
 * the next tile, unless nothing reads it.  Loops beside it and the partitions become loops of instructions.
 *
 * The Vector engine computes in f32, so the results of integers above 2^24 would not be exact: they are refused, and
 * recognize-scans makes no such scans.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/buffers.h"
#include "passes/lib/scan.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

struct running {
  struct ln_generic g;
  const struct scan *scan;
  ln_atoms par, along;
  struct ln_view *lhs, *rhs, *dst, *before; /* on chip, with the partitions par */
  struct ln_view *temps[3];                 /* released at the end */
  int n_temps;
  const char *op[2];
  bool is_reversed[2]; /* the result before, or rhs, is on the left */
};

/* The operand of op that is not v. */
static MlirValue other_operand(MlirOperation op, MlirValue v, bool *is_first) {
  *is_first = mlirValueEqual(mlirOperationGetOperand(op, 0), v);
  return mlirOperationGetOperand(op, *is_first ? 1 : 0);
}

static const char *operator_of(MlirOperation op) {
  static const char *const known[] = {"add", "subtract", "multiply", "max", "min"};
  bool is_unsigned = false;
  const char *name = mlirTypeIsAFloat(mlirValueGetType(ir_result(op))) ? ln_operator(op, &is_unsigned) : NULL;

  for (size_t k = 0; name && k < sizeof known / sizeof *known; k++)
    if (!strcmp(name, known[k]))
      return known[k];
  return NULL;
}

static struct ln_view *make_temp(struct running *r, MlirType t, ln_atoms atoms) {
  struct ln_view *v = ln_temp(&r->g.w, t, MEM_SBUF, r->par, r->par | atoms);
  assert(r->n_temps < (int)(sizeof r->temps / sizeof *r->temps));
  return r->temps[r->n_temps++] = v;
}

/* Returns in *out v in SBUF with the partitions of the scan: the engine reads one operand in PSUM, and two may be the same. */
static enum status stage_value(struct running *r, MlirValue v, struct ln_view **out) {
  struct ln_view *x;
  enum status st = ln_materialize(&r->g.body, ln_value_of(&r->g.body, v), &x);

  *out = x;
  if (st || x->space == MEM_SBUF)
    return st;
  *out = make_temp(r, x->element, ln_view_atoms(x));
  return ln_move(&r->g.w, *out, x, false);
}

/* A one in each partition. */
static enum status make_ones(struct running *r, struct ln_view **out) {
  MlirType f32 = mlirF32TypeGet(r->g.ln->b.ctx);
  *out = make_temp(r, f32, 0);
  return ln_set(&r->g.w, *out, ir_float(&r->g.ln->b, f32, 1));
}

/* r = r `op` x */
static enum status read_one_operation(struct running *r, MlirValue before) {
  bool is_first;
  const char *op = r->op[0];
  enum status st = stage_value(r, other_operand(r->scan->last, before, &is_first), &r->rhs);

  if (st)
    return st;
  if (!strcmp(op, "max") || !strcmp(op, "min")) {
    r->lhs = r->rhs;
    return ST_OK;
  }
  if (strcmp(op, "multiply")) { /* 1 * r, then the operation */
    r->op[0] = "multiply";
    r->is_reversed[1] = !is_first;
    return make_ones(r, &r->lhs);
  }
  r->lhs = r->rhs;
  return make_ones(r, &r->rhs);
}

/* r = (r `op0` a) `op1` b */
static enum status read_two_operations(struct running *r, MlirValue before) {
  bool is_first;
  enum status st = stage_value(r, other_operand(r->scan->first, before, &is_first), &r->lhs);

  r->is_reversed[0] = is_first;
  if (!st)
    st = stage_value(r, other_operand(r->scan->last, ir_result(r->scan->first), &is_first), &r->rhs);
  r->is_reversed[1] = !is_first;
  return st;
}

/* Compiles the body up to the first operation on the result before, and sets the operands and operators. */
static enum status read_operands(struct running *r) {
  struct ln *ln = r->g.ln;
  const struct scan *sc = r->scan;
  MlirValue before = mlirBlockGetArgument(r->g.body.block, sc->s.n_inputs + 1);
  const bool is_one = mlirOperationEqual(sc->first, sc->last);

  r->op[0] = operator_of(sc->first);
  r->op[1] = operator_of(sc->last);
  if (!r->op[0] || !r->op[1])
    return ln_fail(ln, "no engine has a scan with these operations");
  MlirOperation next = mlirOperationGetNextInBlock(sc->first);
  if (!is_one && !mlirOperationEqual(next, sc->last))
    return ln_fail(ln, "its body computes with the result before too early for one instruction");
  enum status st = ln_compile_body(&r->g.body, sc->first);
  if (st)
    return st;
  return is_one ? read_one_operation(r, before) : read_two_operations(r, before);
}

/* True if an instruction reads the buffer; operations before the scan are instructions already. */
static bool is_read_by_instruction(MlirValue buffer) {
  struct nisa_instr in;

  for (MlirOpOperand u = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    if (!nisa_read(mlirOpOperandGetOwner(u), &in, NULL))
      return true;
    for (int k = 0; k < in.def->n_operands; k++)
      if (in.def->operand[k].reads && !nisa_is_absent(&in.operand[k]) && mlirValueEqual(in.operand[k].base, buffer))
        return true;
  }
  return false;
}

/* True if something may read the result before after ln->op, which may be the scan itself in the next round of a loop: false
 * only for a buffer that is otherwise filled and freed, of which each round of the loops around the scan has a part of its own. */
static bool is_read_later(struct ln *ln, const struct scan *scan) {
  MlirValue v = mlirOperationGetOperand(ln->op, scan->s.n_inputs + 1), root = buffer_root(v);
  MlirOperation alloc = ir_defining_op(root);

  if (mlirOperationIsNull(alloc) || !ir_is(alloc, "memref.alloc"))
    return true;
  for (MlirOperation op = ln->op; !mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(alloc));) {
    op = mlirOperationGetParentOperation(op);
    if (!ir_is(op, "scf.for") || !buffer_disjoint_across(op, root, v, v))
      return true;
  }
  const struct buffer_uses uses = buffer_find_uses(&ln->scratch, root);
  for (int k = 0; k < uses.n; k++)
    if (!mlirOperationEqual(uses.v[k].op, ln->op) && uses.v[k].access & BUFFER_READS)
      return true;
  MlirValue buffer = ln_buffer(ln, root);
  return !mlirValueEqual(buffer, root) && is_read_by_instruction(buffer);
}

/* The last element along the scan. */
static struct ln_view last_of(const struct running *r, const struct ln_view *v) {
  struct ln_view last = *v;

  for (int d = 0; d < last.rank; d++)
    for (int k = 0; k < last.index[d].n; k++) {
      struct ln_form *f = &last.index[d];
      const int atom = f->term[k].atom;
      if (!(r->along >> atom & 1))
        continue;
      f->constant += f->term[k].coef * (r->g.w.atom[atom].extent - 1);
      f->term[k--] = f->term[--f->n];
    }
  return last;
}

static enum status emit(struct running *r, const struct ln_view v[4]) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  const struct ln_shape all = ln_shape_of(w, r->par, r->par | r->along), column = ln_shape_of(w, r->par, r->par);
  const bool *rev = r->is_reversed;
  struct nisa_access x[4];
  const struct ln_attr attrs[] = {{"op0", ln_text(ln, r->op[0])},
                                  {"op1", ln_text(ln, r->op[1])},
                                  {"reverse_operands", ln_text(ln, rev[0] && rev[1] ? "both"
                                                                   : rev[0]         ? "first"
                                                                   : rev[1]         ? "second"
                                                                                    : "none")},
                                  {NULL, {NULL}}};
  enum status st = ST_OK;

  for (int k = 0; !st && k < 4; k++)
    st = ln_access(w, &v[k], k < 3 ? &all : &column, &x[k]);
  if (!st)
    ln_emit(ln, NISA_TENSOR_TENSOR_SCAN, NISA_ENGINE_VECTOR, x, attrs);
  return st;
}

/* Emits the scan of every row in a partition, and keeps its last result if `keeps`. */
static enum status scan_rows(struct running *r, bool keeps) {
  struct ln_walk *w = &r->g.w;
  struct ln *ln = r->g.ln;
  const struct ir_builder outside = ln->b;
  struct ln_view v[] = {*r->dst, *r->lhs, *r->rhs, *r->before};
  const ln_atoms rows = ln_all_atoms(w) & ~r->par & ~r->along;

  for (int k = 0; k < w->n_atoms; k++) {
    if (!(rows >> w->order[k] & 1))
      continue;
    MlirValue iv = ln_open_loop(ln, w->atom[w->order[k]].extent);
    for (int o = 0; o < 4; o++)
      ln_fix_atom(ln, &v[o], w->order[k], iv);
  }
  enum status st = emit(r, v);
  const struct ln_view last = last_of(r, &v[0]);
  if (!st && keeps)
    st = ln_move(w, &v[3], &last, false);
  ln->b = outside;
  return st;
}

/* Sets the partitions, and buffers on chip for the results and the result before. */
static enum status prepare(struct running *r, struct ln_view *result, struct ln_view *before) {
  struct ln_walk *w = &r->g.w;
  struct ln_view *inputs[STRUCTURED_OPERANDS_MAX];
  int n = 0;

  r->along = ln_loop_atoms(w, r->scan->loop);
  for (int k = 0; k < r->scan->s.n_inputs; k++)
    if (r->g.view[k])
      inputs[n++] = r->g.view[k];
  enum status st = ln_choose_partitions(w, result, n, inputs, &r->par);
  if (st)
    return st;
  if (r->par & r->along)
    return ln_fail(r->g.ln, "it runs along the partitions, which only their own elements reach");
  r->g.body.par = r->par;
  const bool is_direct = ln_has_partitions(w, result, r->par) && mlirTypeEqual(result->element, before->element);
  r->dst = is_direct ? result : make_temp(r, before->element, ln_view_atoms(result));
  return ln_stage(w, before, r->par, &r->before);
}

enum status ln_lower_scan(struct ln *ln, const struct scan *scan) {
  struct running r;

  memset(&r, 0, sizeof r);
  r.scan = scan;
  const bool keeps = is_read_later(ln, scan);
  enum status st = ln_begin(&r.g, ln, &scan->s);
  if (st)
    return st;
  struct ln_view *result = r.g.view[scan->s.n_inputs], *before = r.g.view[scan->s.n_inputs + 1];
  if (!result || !before)
    return ln_fail(ln, "its result is not a memref");
  st = prepare(&r, result, before);
  if (!st)
    st = read_operands(&r);
  if (!st)
    st = scan_rows(&r, keeps);
  if (!st && r.dst != result)
    st = ln_move(&r.g.w, result, r.dst, false);
  if (!st && keeps && r.before != before)
    st = ln_move(&r.g.w, before, r.before, false);
  if (st)
    return st;
  for (int k = 0; k < r.n_temps; k++)
    ln_release(ln, r.temps[k]);
  if (r.before != before)
    ln_release(ln, r.before);
  ln_body_finish(&r.g.body);
  return ST_OK;
}
