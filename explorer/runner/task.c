/* task: compiles a run's HLO with the vendor's compiler, and executes what that has made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "driver/device_run.h"
#include "neff/tensors.h"
#include "runner/host.h"

enum { RESULT_MAX = 1 << 20, HINT_MAX = 4000, OUTPUTS_MAX = HOST_FILE_MAX };
enum {
  FIELD_NAME = 1 << 3 | 2, /* of HloInstructionProto: field 1, a text */
  INSTRUCTION_MAX = 127,   /* longer names have a length of two bytes; there are none */
};

struct task {
  const struct host_config *cfg;
  const struct host_run *run;
  struct arena *arena;
  struct diags diags;
  struct error err; /* of what is no diagnostic */
  struct buf proto, inputs, result;
  struct vendor_result neff;
  const char *instruction; /* that the compiler's error names; NULL: none */
};

static void show_log(void *user, const char *line) {
  (void)user;
  printf("neuronx-cc: %s\n", line);
  fflush(stdout);
}

static void say(const char *text) {
  printf("%s\n", text);
  fflush(stdout);
}

/* The options of the run beside those of this host. */
static void add_options(struct task *t, struct vendor_options *o) {
  const json_t *compiler = json_object_get(t->run->about, "compiler"), *list = json_object_get(compiler, "options");
  const json_int_t lnc = json_integer_value(json_object_get(compiler, "lnc"));
  const size_t n = json_array_size(list);
  const char **extra = arena_new_array(t->arena, const char *, (size_t)o->n_extra + n + 1);
  for (int i = 0; i < o->n_extra; i++)
    extra[i] = o->extra[i];
  for (size_t i = 0; i < n; i++) {
    const char *text = json_string_value(json_array_get(list, i));
    extra[o->n_extra + (int)i] = arena_strdup(t->arena, text ? text : "");
  }
  o->extra = extra;
  o->n_extra += (int)n;
  if (lnc == 1 || lnc == 2)
    o->lnc = (int)lnc;
}

/* An HLO instruction of this name is in the module, where names are texts that follow their length; the server knows its place. */
static const struct src_loc *find_instruction(void *user, const char *name) {
  static const struct src_loc here = {.range = {.file = "hlo.pb"}};
  struct task *t = user;
  const size_t n = strlen(name);
  char field[INSTRUCTION_MAX + 2] = {FIELD_NAME, (char)n};
  if (!n || n > INSTRUCTION_MAX || t->instruction)
    return NULL;
  memcpy(field + 2, name, n);
  if (!memmem(buf_text(&t->proto), t->proto.len, field, n + 2))
    return NULL;
  t->instruction = name;
  return &here;
}

static enum status compile(struct task *t) {
  struct vendor_options options = t->cfg->vendor;
  const bool is_nki = t->run->wants_nki;
  enum target target;
  enum status st = host_read_file(t->run->dir, "hlo.pb", &t->proto, &t->err);
  if (st)
    return st;
  if (!target_from_name(t->run->target, &target))
    return fail(&t->err, ST_INPUT, "the run is for a machine that this release does not know");
  say("compiling");
  add_options(t, &options);
  const struct vendor_request rq = {.options = &options,
                                    .product = is_nki ? VENDOR_NKI : VENDOR_NEFF,
                                    .target = target,
                                    .proto = buf_text(&t->proto),
                                    .proto_size = t->proto.len,
                                    .place = find_instruction,
                                    .log = show_log,
                                    .user = t};
  st = vendor_compile(t->arena, &rq, &t->diags, &t->neff);
  if (st)
    return st;
  printf("compiled%s: %s of %zu bytes\n", t->neff.is_cached ? " before, and kept" : "",
         is_nki ? "the kernel as NKI," : "a NEFF", t->neff.size);
  fflush(stdout);
  return host_write_file(t->run->dir, is_nki ? "kernel.nki.py" : "kernel.neff", t->neff.data, t->neff.size, &t->err);
}

/* ---- executing ----------------------------------------------------------------------------------------------------- */

static struct trace_tensor as_trace(struct arena *a, const char *name, enum dtype dtype, int rank,
                                    const int64_t *dims) {
  return (struct trace_tensor){name, hlo_shape_array(a, dtype, rank, dims), -1, false};
}

/* One of the descriptions that the server gives of the outputs. */
static enum status read_output(struct task *t, const json_t *o, struct trace_tensor *out) {
  const char *name = json_string_value(json_object_get(o, "name"));
  const char *dtype = json_string_value(json_object_get(o, "dtype"));
  const json_t *shape = json_object_get(o, "shape"), *d;
  int64_t dims[HLO_RANK_MAX];
  int rank = 0;
  size_t i;
  if (!name || !dtype || dtype_from_name(dtype) == DT_NONE || json_array_size(shape) > HLO_RANK_MAX)
    return fail(&t->err, ST_INPUT, "the server describes an output that there cannot be");
  json_array_foreach(shape, i, d) dims[rank++] = json_integer_value(d);
  *out = as_trace(t->arena, name, dtype_from_name(dtype), rank, dims);
  return ST_OK;
}

static enum status write_outputs(struct task *t, int n, const struct trace_tensor *outputs,
                                 const struct trace_array *out) {
  struct tensors file = {.n = n, .v = arena_new_array(t->arena, struct tensor, (size_t)n + 1)};
  struct buf b;
  for (int k = 0; k < n; k++) {
    struct tensor *x = &file.v[k];
    *x = (struct tensor){
        .name = outputs[k].name, .dtype = outputs[k].shape.dtype, .rank = outputs[k].shape.rank, .data = out[k].data};
    for (int d = 0; d < x->rank; d++)
      x->dims[d] = outputs[k].shape.dims[d];
    x->size = (size_t)hlo_shape_elements(&outputs[k].shape) * dtype_size(x->dtype);
  }
  buf_init(&b, OUTPUTS_MAX);
  enum status st = tensors_write(&b, &file, &t->err);
  if (!st)
    st = host_write_file(t->run->dir, "outputs.safetensors", buf_text(&b), b.len, &t->err);
  buf_clear(&b);
  return st;
}

static enum status execute_on(struct task *t, struct device_run *d, const struct tensors *in, int n_out,
                              const struct trace_tensor *outputs) {
  struct trace_tensor *inputs = arena_new_array(t->arena, struct trace_tensor, (size_t)in->n + 1);
  struct trace_array *arrays = arena_new_array(t->arena, struct trace_array, (size_t)in->n + 1);
  struct trace_array *out = arena_new_array(t->arena, struct trace_array, (size_t)n_out + 1);
  struct device_times times;
  for (int k = 0; k < in->n; k++) {
    inputs[k] = as_trace(t->arena, in->v[k].name, in->v[k].dtype, in->v[k].rank, in->v[k].dims);
    arrays[k] = (struct trace_array){.shape = inputs[k].shape, .data = (void *)(uintptr_t)in->v[k].data};
  }
  enum status st = device_run_execute(d, in->n, inputs, arrays, n_out, outputs, out, &t->diags, &times);
  if (st)
    return st;
  json_put_key(&t->result, "device");
  buf_putc(&t->result, '{');
  device_run_put_about(&t->result, d);
  buf_putc(&t->result, '}');
  device_run_put_times(&t->result, d, &times);
  return write_outputs(t, n_out, outputs, out);
}

static enum status execute(struct task *t) {
  const json_t *list = json_object_get(t->run->about, "outputs");
  const int n = (int)json_array_size(list);
  struct trace_tensor *outputs = arena_new_array(t->arena, struct trace_tensor, (size_t)n + 1);
  const struct job_device job = {.library = t->cfg->library,
                                 .cores = t->cfg->cores,
                                 .neff = t->neff.data,
                                 .neff_size = t->neff.size,
                                 .repeats = t->cfg->repeats,
                                 .profile_path =
                                     t->run->profiles ? arena_printf(t->arena, "%s/profile.ntff", t->run->dir) : NULL};
  struct device_run d = {.device = NULL};
  struct tensors in;
  enum status st = host_read_file(t->run->dir, "inputs.safetensors", &t->inputs, &t->err);
  if (!st)
    st = tensors_read(t->arena, buf_text(&t->inputs), t->inputs.len, &in, &t->err);
  for (int k = 0; k < n && !st; k++)
    st = read_output(t, json_array_get(list, (size_t)k), &outputs[k]);
  if (st)
    return st;
  say("executing");
  st = device_run_open(&job, t->arena, &t->diags, &d);
  if (!st)
    st = execute_on(t, &d, &in, n, outputs);
  const enum status closed = device_run_close(&d, &t->diags);
  return st ? st : closed;
}

/* ---- the result ---------------------------------------------------------------------------------------------------- */

/* The end of a long text, which has the reason. */
static const char *tail_of(struct arena *a, const char *text) {
  const size_t n = strlen(text);
  return n <= HINT_MAX ? text : arena_printf(a, "…%s", text + n - HINT_MAX);
}

static void put_failure(struct task *t, struct buf *b) {
  const struct diag *d = NULL;
  for (int i = 0; i < t->diags.n && !d; i++)
    if (t->diags.v[i].severity == DS_ERROR)
      d = &t->diags.v[i];
  buf_puts(b, "{\"status\":\"error\"");
  json_put_field_str(b, "code", d ? diag_code_name(d->code) : "runner");
  json_put_field_str(b, "message", d ? tail_of(t->arena, d->message) : t->err.text);
  if (d && d->hint)
    json_put_field_str(b, "hint", tail_of(t->arena, d->hint));
  if (t->instruction)
    json_put_field_str(b, "instruction", t->instruction);
  buf_putc(b, '}');
  printf("failed: %s\n", d ? d->message : t->err.text);
}

static int write_result(struct task *t, enum status st) {
  struct buf b;
  buf_init(&b, RESULT_MAX);
  if (st) {
    put_failure(t, &b);
  } else {
    buf_puts(&b, "{\"status\":\"ok\"");
    if (t->result.len) {
      buf_putc(&b, ',');
      buf_append(&b, buf_text(&t->result) + 1, t->result.len - 1); /* after its brace */
    }
    buf_putc(&b, '}');
    say("done");
  }
  struct error err;
  const bool ok = !buf_status(&b) && !host_write_file(t->run->dir, "result.json", buf_text(&b), b.len, &err);
  buf_clear(&b);
  return ok ? 0 : 1;
}

int host_do_task(const struct host_config *cfg, const struct host_run *run) {
  struct arena a;
  struct task t = {.cfg = cfg, .run = run, .arena = &a};
  arena_init(&a);
  diags_init(&t.diags, &a);
  buf_init(&t.proto, HOST_FILE_MAX);
  buf_init(&t.inputs, HOST_FILE_MAX);
  buf_init(&t.result, RESULT_MAX);
  if (run->executes)
    buf_putc(&t.result, '{');
  enum status st = compile(&t);
  if (!st && run->executes)
    st = execute(&t);
  const int status = write_result(&t, st);
  buf_clear(&t.result);
  buf_clear(&t.inputs);
  buf_clear(&t.proto);
  arena_clear(&a);
  return status;
}
