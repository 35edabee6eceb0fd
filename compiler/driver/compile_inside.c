/* compile_inside: the NKI kernels that HLO calls, as torch-xla and JAX write such calls.
 *
 * A custom call to AwsNeuronCustomNativeKernel has the kernel's name, its launch, and the path of the code that the vendor's compiler
 * made of it; not the kernel.  If one of the job's files defines a function of that name, the kernel is recorded for the call's
 * operands, and the call is bound to the record, as that of a NumPy kernel is (native.h): the module is compiled as a whole, and the
 * kernel's own stages follow as a further kernel of the result.  A call without a source stays a call of something unknown.
 */
#include "driver/compile_internal.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/array.h"
#include "driver/gather.h"

#define NATIVE_TARGET "AwsNeuronCustomNativeKernel"

/* ---- what a call says -------------------------------------------------------------------------------------------- */

/* JSON, or JSON in base64; NULL if it is neither. */
static json_t *read_config(struct arena *a, const char *text) {
  json_t *v = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  const size_t n = strlen(text);
  if (v || n % 4 || !n)
    return v;
  unsigned char *bytes = arena_alloc(a, n / 4 * 3 + 1);
  const int len = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)n);
  const int padding = (text[n - 1] == '=') + (n > 1 && text[n - 2] == '=');
  return len > padding ? json_loadb((const char *)bytes, (size_t)(len - padding), JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(const char *s) {
  if (!s || !is_letter(*s))
    return false;
  for (; *s; s++)
    if (!is_letter(*s) && (*s < '0' || *s > '9'))
      return false;
  return true;
}

/* "[2]" or "[2, 3]"; "" for one core, or if there is none. */
static const char *read_grid(struct arena *a, const json_t *v) {
  const json_t *x;
  size_t i;
  const char *text = NULL;
  if (json_is_integer(v))
    return json_integer_value(v) > 1 ? arena_printf(a, "[%lld]", (long long)json_integer_value(v)) : "";
  if (!json_array_size(v) || (json_array_size(v) == 1 && json_integer_value(json_array_get(v, 0)) <= 1))
    return "";
  json_array_foreach((json_t *)v, i, x) text =
      arena_printf(a, "%s%lld", text ? arena_printf(a, "%s, ", text) : "[", (long long)json_integer_value(x));
  return arena_printf(a, "%s]", text);
}

struct inside {
  const struct hlo_instr *call;
  const char *name, *grid, *path; /* path: of the code; "" if the call does not say */
  const struct job_file *file;    /* NULL: no file defines the kernel */
  const char *bound;              /* the record's name; NULL: there is none */
};

struct insides {
  struct inside *v;
  int n, cap;
};

static struct inside read_call(struct run *r, const struct hlo_instr *i) {
  struct arena *a = r->arena;
  struct inside x = {.call = i, .grid = "", .path = ""};
  json_t *config = read_config(a, i->attrs->backend_config ? i->attrs->backend_config : "");
  const char *name = json_string_value(json_object_get(config, "func_name"));
  const char *path = json_string_value(json_object_get(json_object_get(config, "klir_binary"), "binary"));
  x.name = name ? arena_strdup(a, name) : "";
  x.path = path ? arena_strdup(a, path) : "";
  x.grid = read_grid(a, json_object_get(config, "grid"));
  json_decref(config);
  for (int k = 0; is_name(x.name) && k < r->job->n_files && !x.file; k++) {
    const struct job_file *f = &r->job->files[k];
    if (trace_defines(a, &(struct trace_file){f->name, f->source, f->source_len}, x.name))
      x.file = f;
  }
  return x;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static const struct trace_input_spec *operands_of(struct arena *a, const struct hlo_instr *i, bool has_names) {
  struct trace_input_spec *v = arena_new_array(a, struct trace_input_spec, (size_t)i->n_operands);
  for (int k = 0; k < i->n_operands; k++)
    v[k] = (struct trace_input_spec){has_names ? arena_printf(a, "a%d", k) : NULL, i->operands[k]->shape};
  return v;
}

/* The program of the kernel's file, after which a text of ours stands, beside the job's other files. */
static struct trace_request request_of(struct run *r, const struct inside *x, const char *more, const char *kernel,
                                       bool has_names) {
  struct trace_file *files = arena_new_array(r->arena, struct trace_file, (size_t)r->job->n_files);
  const char *source = arena_printf(r->arena, "%s%s", x->file->source, more);
  int n = 0;
  for (int k = 0; k < r->job->n_files; k++)
    if (&r->job->files[k] != x->file)
      files[n++] = (struct trace_file){r->job->files[k].name, r->job->files[k].source, r->job->files[k].source_len};
  return (struct trace_request){.source = source,
                                .source_len = strlen(source),
                                .filename = x->file->name,
                                .target = r->job->target,
                                .n_files = n,
                                .files = files,
                                .kernel = kernel,
                                .n_inputs = x->call->n_operands,
                                .inputs = operands_of(r->arena, x->call, has_names)};
}

/* A NumPy kernel that only calls the kernel: its module has the call as it must be. */
static const char *caller_of(struct run *r, const struct inside *x, const char *name) {
  const char *args = "";
  for (int k = 0; k < x->call->n_operands; k++)
    args = arena_printf(r->arena, k ? "%s, a%d" : "%sa%d", args, k);
  return arena_printf(r->arena, "\n\n\ndef %s(%s):\n    return %s%s(%s)\n", name, args, x->name, x->grid, args);
}

static bool same_shapes(const struct hlo_instr *x, const struct hlo_instr *y) {
  bool same = x->n_operands == y->n_operands && hlo_shape_equal(&x->shape, &y->shape);
  for (int k = 0; same && k < x->n_operands; k++)
    same = hlo_shape_equal(&x->operands[k]->shape, &y->operands[k]->shape);
  return same;
}

/* The outputs that are operands written in place, in any order. */
static bool same_aliases(const struct hlo_instr *x, const struct hlo_instr *y) {
  const int n = x->attrs->operand_aliases.n;
  bool same = n == y->attrs->operand_aliases.n;
  for (int k = 0; same && k < n; k++) {
    const struct hlo_operand_alias *a = &x->attrs->operand_aliases.v[k];
    bool found = false;
    for (int j = 0; j < n; j++) {
      const struct hlo_operand_alias *b = &y->attrs->operand_aliases.v[j];
      found |= a->operand == b->operand && a->output_index.n == b->output_index.n &&
               (!a->output_index.n || a->output_index.v[0] == b->output_index.v[0]);
    }
    same = found;
  }
  return same;
}

static const struct hlo_instr *find_call(const struct hlo_module *m) {
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (i->op == HLO_CUSTOM_CALL)
        return i;
    }
  return NULL;
}

static int lines_of(const char *text) {
  int n = 1;
  for (const char *p = text; (p = strchr(p, '\n')); p++)
    n++;
  return n;
}

/* The place without callers in the text of ours; NULL if it is in that text itself. */
static const struct src_loc *without_ours(struct arena *a, const struct inside *x, const struct src_loc *loc) {
  if (!loc || (loc->range.line > lines_of(x->file->source) && !strcmp(loc->range.file, x->file->name)))
    return NULL;
  struct src_loc *copy = arena_dup(a, loc, sizeof *loc);
  copy->caller = without_ours(a, x, loc->caller);
  return copy;
}

/* Diagnostics from the first one on that are about the text of ours are about the call: users do not see that text. */
static void move_to_call(struct run *r, const struct inside *x, int first) {
  for (int k = first; k < r->diags.n; k++) {
    struct diag *d = &r->diags.v[k];
    const struct src_loc *loc = without_ours(r->arena, x, d->loc);
    d->loc = loc || !x->call->locs.n ? loc : x->call->locs.v[0];
  }
}

/* The record for a call; NULL with a diagnostic if the kernel is refused, or does not give what the call gives. */
static const struct nki_program *record(struct run *r, const struct inside *x) {
  const char *kernel = arena_printf(r->arena, "nkx_call_of_%s", x->name);
  const struct trace_request rq = request_of(r, x, caller_of(r, x, kernel), kernel, true);
  const struct nki_program *found = NULL;
  struct trace_program *program = NULL;
  struct trace_kernel *k = NULL;
  const int first = r->diags.n;
  if (!trace_open(r->arena, &rq, &r->diags, &program) && trace_count(program) == 1 &&
      !trace_kernel(program, 0, &r->diags, &k) && k->n_calls == 1) {
    const struct hlo_instr *made = find_call(k->module);
    found = made && same_shapes(made, x->call) && same_aliases(made, x->call) ? k->calls[0] : NULL;
    if (!found)
      diag_add(
          &r->diags, DS_WARNING, DG_NATIVE_KERNEL, x->call->locs.n ? x->call->locs.v[0] : NULL,
          "%s of %s gives other results, or writes other operands, than the call of it says: the call stays as it is",
          x->name, x->file->name);
  }
  trace_close(program);
  move_to_call(r, x, first);
  return found;
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static void bind(struct hlo_instr *i, const char *name) {
  struct hlo_attrs attrs = *i->attrs;
  attrs.custom_call_target = name;
  hlo_set_attrs(i, &attrs);
}

static void add_record(struct run *r, struct trace_kernel *kernel, const struct nki_program *p) {
  const struct nki_program **v = arena_new_array(r->arena, const struct nki_program *, (size_t)kernel->n_calls + 1);
  for (int k = 0; k < kernel->n_calls; k++)
    v[k] = kernel->calls[k];
  v[kernel->n_calls++] = p;
  kernel->calls = v;
}

/* Equal calls have one record. */
static const struct inside *find_equal(const struct insides *all, const struct inside *x) {
  for (int k = 0; k < all->n; k++) {
    const struct inside *y = &all->v[k];
    if (!strcmp(x->name, y->name) && !strcmp(x->grid, y->grid) && same_shapes(x->call, y->call))
      return y;
  }
  return NULL;
}

static void tell_missing(struct run *r, const struct inside *x) {
  const char *kernel = *x->name ? arena_printf(r->arena, "the NKI kernel %s", x->name) : "an NKI kernel without a name";
  const char *code = *x->path ? arena_printf(r->arena, "the path of its code: %s", x->path) : "that it is called";
  diag_add(&r->diags, DS_NOTE, DG_NATIVE_KERNEL, x->call->locs.n ? x->call->locs.v[0] : NULL,
           "%s calls %s, of which HLO has only %s", x->call->name, kernel, code)
      ->hint = "add the Python file that defines the kernel to the files: then its stages are shown, and the module is "
               "compiled with it";
}

/* Records the kernel of a call that has a source, once for all equal calls. */
static void bind_call(struct run *r, struct trace_kernel *kernel, struct insides *all, const struct hlo_instr *i) {
  struct inside x = read_call(r, i);
  const struct inside *known = find_equal(all, &x);
  if (known) {
    x.bound = known->bound;
  } else if (x.file) {
    const struct nki_program *found = record(r, &x);
    struct nki_program *p = found ? arena_new(r->arena, struct nki_program) : NULL;
    if (p) {
      *p = *found; /* of two kernels of one name, each has its own */
      x.bound = p->name = arena_printf(r->arena, kernel->n_calls ? "%s.%d" : "%s", found->name, kernel->n_calls + 1);
      add_record(r, kernel, p);
    }
  } else {
    tell_missing(r, &x);
  }
  if (!known)
    array_push(r->arena, all, x);
}

static bool is_native(const struct hlo_instr *i) {
  const char *target = i->op == HLO_CUSTOM_CALL ? i->attrs->custom_call_target : NULL;
  return target && !strcmp(target, NATIVE_TARGET);
}

struct insides *compile_bind_native(struct path *p) {
  struct insides *all = arena_new(p->run->arena, struct insides);
  if (!p->kernel->module || p->run->job->language != LANG_HLO)
    return all;
  for (struct hlo_computation *c = p->kernel->module->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (is_native(i))
        bind_call(p->run, p->kernel, all, i);
    }
  return all;
}

void compile_use_native(struct path *p) {
  if (!p->insides || !p->insides->n) /* a program that is no HLO has none */
    return;
  for (struct hlo_computation *c = p->kernel->module->computations; c; c = c->next)
    hlo_for_each(i, c) {
      struct inside x = is_native(i) ? read_call(p->run, i) : (struct inside){.call = NULL};
      const struct inside *known = x.call ? find_equal(p->insides, &x) : NULL;
      if (known && known->bound)
        bind(i, known->bound);
    }
}

bool compile_has_native(const struct insides *all, const char *name) {
  for (int k = 0; k < all->n; k++)
    if (all->v[k].file && !strcmp(all->v[k].name, name))
      return true;
  return false;
}

/* ---- the kernels' own stages ------------------------------------------------------------------------------------- */

enum status compile_native(struct run *r, const struct insides *all, int *n_sent) {
  enum status st = ST_OK;
  for (int k = 0; !st && k < all->n && *n_sent < GATHER_KERNELS_MAX; k++) {
    const struct inside *x = &all->v[k];
    if (!x->file || (r->job->kernel && strcmp(r->job->kernel, x->name) != 0))
      continue;
    const char *launch = *x->grid ? arena_printf(r->arena, "\n\n%s = %s%s\n", x->name, x->name, x->grid) : "";
    const struct trace_request rq = request_of(r, x, launch, x->name, false);
    struct trace_program *program = NULL;
    const int first = r->diags.n;
    if (trace_open(r->arena, &rq, &r->diags, &program))
      r->has_failed = true;
    for (int i = 0; !st && program && i < trace_count(program) && i < 1; i++)
      st = compile_kernel(r, program, i, n_sent);
    trace_close(program);
    move_to_call(r, x, first);
  }
  return st;
}
