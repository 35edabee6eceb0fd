/* columns: t.indirect(index), the columns of a tile that numbers select, as operands of calls.
 *
 * The reference (the NKI reference's gather and scatter views of the fourth generation, on dst and the first source of six calls)
 * has the method and the operands that take it, but no numbers of what it costs, and the architecture guide says that no call has
 * it yet.  Decided here:
 *
 *   what it names   column i of the view is element index[16 g + i % 16, i / 16] of the free elements of each partition of group
 *                   g, of 16 partitions, as nisa.local_gather counts them
 *   reading         nisa.local_gather copies the columns to a tile, which takes the operand's place: the values are those of
 *                   the method, the time is that of two instructions
 *   nc_matmul       refused: the Tensor engine counts indices by groups of 32 partitions; dma_copy, too: it is not among the calls
 *   writing         the call writes a tile, and nkx/nki_columns.py writes its columns to those of the operand, by way of HBM: the
 *                   values are those of the method, the time is that of the transfers.  Of a number that occurs twice the later
 *                   column counts, as of rows (dma_scatter)
 */
#include <string.h>

#include "trace/nki/nki.h"
#include "trace/refuse.h"

enum { GROUP = 16 }; /* partitions that share their indices */

/* The operands that can be such columns. */
static const struct columns_operand {
  enum nki_call_kind kind;
  const char *param;
} operands[] = {
    {NKI_TENSOR_COPY, "src"},     {NKI_TENSOR_COPY_PREDICATED, "predicate"},
    {NKI_TENSOR_TENSOR, "data1"}, {NKI_TENSOR_SCALAR, "data"},
    {NKI_TENSOR_REDUCE, "data"},  {NKI_ACTIVATION, "data"},
    {NKI_TENSOR_COPY, "dst"},     {NKI_TENSOR_COPY_PREDICATED, "dst"},
    {NKI_TENSOR_TENSOR, "dst"},   {NKI_TENSOR_SCALAR, "dst"},
    {NKI_TENSOR_REDUCE, "dst"},   {NKI_ACTIVATION, "dst"},
};

PyObject *nki_tensor_columns(struct nki_recorder *r, const struct nki_view *v, const struct nki_view *index, int64_t n,
                             const char *written) {
  const int64_t room = GROUP * nki_free_elements(index);
  if (r->program->target != TARGET_TRN3)
    return trace_refuse(DG_NKI_UNSUPPORTED, "choose trn3, or gather with nisa.local_gather",
                        "%s does not have .indirect: it is of trn3", target_name(r->program->target));
  if (v->tensor->space != MEM_SBUF || index->tensor->space != MEM_SBUF)
    return trace_refuse(DG_NKI_VIEW, "copy it to SBUF first; rows of HBM are selected with .vector_select",
                        "%s of .indirect is in %s, not in SBUF", v->tensor->space != MEM_SBUF ? "the tensor" : "index",
                        nisa_space_name(v->tensor->space != MEM_SBUF ? v->tensor->space : index->tensor->space));
  if (index->tensor->dtype != DT_U16)
    return trace_refuse(DG_NKI_DTYPE, "use uint16", "index of .indirect has the type %s",
                        dtype_numpy_name(index->tensor->dtype));
  if (index->dim[0].size != v->dim[0].size || index->partition != v->partition || index->partition % 32)
    return trace_refuse(DG_NKI_VIEW, "let both begin at the same partition, a multiple of 32",
                        "index of .indirect has the partitions %lld to %lld, the tensor %lld to %lld",
                        (long long)index->partition, (long long)(index->partition + index->dim[0].size - 1),
                        (long long)v->partition, (long long)(v->partition + v->dim[0].size - 1));
  if (n < 0)
    n = room;
  if (n < 1 || n > room)
    return trace_refuse(DG_NKI_BOUNDS, NULL, "num_elem of .indirect is %lld, but there are %lld indices", (long long)n,
                        (long long)room);
  struct nki_view out = *v;
  out.rank = 2;
  out.dim[1] = (struct nki_dim){n, 0};
  out.written = written;
  out.columns = arena_new(r->program->arena, struct nki_columns);
  *out.columns = (struct nki_columns){*v, *index};
  return nki_wrap(r, &out);
}

static bool can_be_columns(const struct nki_call_def *def, const char *param) {
  for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
    if (&nki_calls[operands[i].kind] == def && !strcmp(operands[i].param, param))
      return true;
  return false;
}

static void *refuse_operand(const struct nki_call_def *def, const struct nki_param_def *param) {
  return trace_refuse(DG_NKI_OPERAND,
                      param->kind == NKI_PARAM_DST ? "write a tile, and copy it to the columns with nisa.tensor_copy"
                                                   : "copy the columns to a tile with nisa.tensor_copy first",
                      "%s of nisa.%s cannot be columns that numbers select", param->name, def->name);
}

/* *to becomes a new tile with the shape of the columns.  False with an exception. */
static bool make_tile(struct nki_recorder *r, const struct nki_call *for_call, const struct nki_view *v,
                      struct nki_view *to) {
  struct nki_error err = {.arena = r->program->arena};
  struct nki_tensor *t = nki_tensor_make(r->program, "columns", v->tensor->dtype, MEM_SBUF, 2,
                                         (int64_t[]){v->dim[0].size, v->dim[1].size}, for_call->locs, &err);
  if (!t)
    return nki_raise(&err);
  t->packed = v->tensor->packed;
  *to = nki_whole(t);
  return true;
}

/* Records the copy of the columns; *v becomes the copy. */
static bool gather(struct nki_recorder *r, struct nki_call *for_call, struct nki_view *v) {
  struct nki_error err = {.arena = r->program->arena};
  struct nki_columns *from = v->columns;
  struct nki_view to;
  if (!make_tile(r, for_call, v, &to))
    return false;
  int64_t *n = arena_new(r->program->arena, int64_t);
  *n = v->dim[1].size;
  struct nki_call c = {.kind = NKI_LOCAL_GATHER, .engine = NISA_ENGINE_GPSIMD, .locs = for_call->locs};
  for (int k = 0; k < nki_n_params(nki_def(&c)); k++) {
    const char *name = nki_def(&c)->param[k].name;
    struct nki_view *view = !strcmp(name, "dst")          ? &to
                            : !strcmp(name, "src_buffer") ? &from->of
                            : !strcmp(name, "index")      ? &from->index
                                                          : NULL;
    if (view)
      c.value[k] = (struct nki_value){.kind = NKI_VIEW, .view = arena_dup(r->program->arena, view, sizeof *view)};
    else if (!strcmp(name, "num_valid_indices"))
      c.value[k] = (struct nki_value){.kind = NKI_LIST, .n = 1, .ints = n};
  }
  *v = to;
  return nki_call_add(r->program, &c, &err) || nki_raise(&err);
}

/* The call writes a new tile, which becomes *v; *later is what follows.  A predicated copy leaves some columns as they are. */
static bool write_later(struct nki_recorder *r, struct nki_call *c, struct nki_view *v, struct nki_scatter *later) {
  struct nki_view to;
  later->to = *v->columns;
  if (v->dim[0].size % GROUP)
    return trace_refuse(DG_NKI_OPERAND, "use a multiple of 16 partitions",
                        "columns of %lld partitions are written, which are no groups of 16", (long long)v->dim[0].size);
  if (c->kind == NKI_TENSOR_COPY_PREDICATED ? !gather(r, c, v) : !make_tile(r, c, v, &to))
    return false;
  if (c->kind != NKI_TENSOR_COPY_PREDICATED)
    *v = to;
  later->values = *v;
  later->is_due = true;
  return true;
}

bool nki_scatter_columns(struct nki_recorder *r, const struct nki_scatter *s) {
  PyObject *module = PyImport_ImportModule("nkx.nki_columns"), *result = NULL;
  PyObject *of = nki_wrap(r, &s->to.of), *index = nki_wrap(r, &s->to.index), *values = nki_wrap(r, &s->values);
  if (module && of && index && values)
    result = PyObject_CallMethod(module, "scatter", "OOO", of, index, values);
  Py_XDECREF(of);
  Py_XDECREF(index);
  Py_XDECREF(values);
  Py_XDECREF(module);
  Py_XDECREF(result);
  return result;
}

bool nki_gather_columns(struct nki_recorder *r, struct nki_call *c, bool *begun, struct nki_scatter *later) {
  const struct nki_call_def *def = nki_def(c);
  *begun = later->is_due = false;
  for (int k = 0; k < nki_n_params(def); k++) {
    if (c->value[k].kind != NKI_VIEW || !c->value[k].view->columns)
      continue;
    if (!can_be_columns(def, def->param[k].name)) {
      r->wrong = def->param[k].name;
      return refuse_operand(def, &def->param[k]);
    }
    if (!*begun && nki_shows_views(r))
      *begun = nki_written_begin(r->program, arena_printf(r->program->arena, "nisa.%s", def->name), c->locs);
    if (def->param[k].kind == NKI_PARAM_DST ? !write_later(r, c, c->value[k].view, later)
                                            : !gather(r, c, c->value[k].view))
      return false;
  }
  return true;
}
