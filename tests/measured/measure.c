/* Times the first function of each NISA text and prints a line of JSON for it.
 *
 *     measure TARGET [--text | --json | --trace | --row] FILE…
 *
 * With an option it prints the report for a terminal, the profile, the trace, or a row of tests/bench/roofline.py instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mlir-c/BuiltinAttributes.h"

#include "ir/ir.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "sim/decode.h"
#include "sim/report.h"
#include "sim/timeline.h"

static char *read_file(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) {
    perror(path);
    exit(2);
  }
  fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  char *text = calloc(*size + 1, 1);
  if (!text || fread(text, 1, *size, f) != *size)
    exit(2);
  fclose(f);
  return text;
}

/* The name of the module's first function. */
static const char *first_function(MlirModule m, char *name, size_t size) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(m));
  while (!mlirOperationIsNull(op) && !ir_is(op, "func.func"))
    op = mlirOperationGetNextInBlock(op);
  if (mlirOperationIsNull(op))
    return "";
  MlirStringRef s = mlirStringAttrGetValue(mlirOperationGetAttributeByName(op, ir_str("sym_name")));
  snprintf(name, size, "%.*s", (int)s.length, s.data);
  return name;
}

/* Processor time: other processes do not count. */
static int64_t processor_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void print(const char *path, const struct sim_timeline *t, int64_t us) {
  printf("{\"file\": \"%s\", \"total_ns\": %lld, \"executions\": %d, \"took_us\": %lld", path,
         (long long)t->total_ps / SIM_PS_PER_NS, t->n, (long long)us);
  for (int k = 0; k < t->n_lanes; k++) {
    int64_t busy = 0;
    for (int e = 0; e < t->n; e++)
      busy += t->execs[e].lane == k ? t->execs[e].free - t->execs[e].start : 0;
    printf(", \"%s\": %lld", t->lanes[k].name, (long long)busy / SIM_PS_PER_NS);
  }
  printf("}\n");
}

/* True if the instruction works on several elements, all of them in one partition. */
static bool is_on_one_partition(const struct sim_program *p, const struct sim_instr *i) {
  int64_t partitions = 0, elements = 0;
  for (int k = 0; k < i->def->n_operands; k++) {
    const struct sim_operand *o = &i->operand[k];
    if (o->kind != SIM_ACCESS || o->buffer < 0 || !mem_is_on_chip(p->buffers[o->buffer].space))
      continue;
    partitions = o->partitions > partitions ? o->partitions : partitions;
    elements = o->elements > elements ? o->elements : elements;
  }
  return partitions == 1 && elements > 1;
}

/* The rate of HBM and of products are those of one core. */
static void print_row(const struct sim_timeline *t, struct arena *a) {
  struct sim_profile p;
  int64_t instructions = 0, transfers = 0, narrow = 0; /* narrow: of both */
  sim_profile_make(t, a, &p);
  for (int e = 0; e < t->n; e++) {
    const struct sim_exec *x = &t->execs[e];
    if (x->kind != SIM_EXEC_INSTR && x->kind != SIM_EXEC_TRANSFER)
      continue;
    instructions += x->kind == SIM_EXEC_INSTR;
    transfers += x->kind == SIM_EXEC_TRANSFER;
    narrow += is_on_one_partition(t->program, &t->program->instrs[x->instr]);
  }
  printf("{\"us\": %.3f, \"instructions\": %lld, \"transfers\": %lld, \"narrow\": %lld, \"hbm_bytes\": %lld, "
         "\"sbuf_peak\": %lld, \"bound\": \"%s\", \"gb_s\": %lld, \"tflops\": {\"bf16\": %lld, \"f32\": %lld}}\n",
         (double)t->total_ps / 1e6, (long long)instructions, (long long)transfers, (long long)narrow,
         (long long)(p.hbm_read + p.hbm_written), (long long)p.sbuf[0].peak_bytes, p.bound, (long long)sim_peak_gb_s(t),
         (long long)sim_constant(SIM_PEAK_BF16, t->target), (long long)sim_constant(SIM_PEAK_F32, t->target));
}

static const size_t REPORT_MAX = (size_t)1 << 30;

static void report(const char *form, const struct sim_timeline *t, struct arena *a) {
  struct sim_profile p;
  struct buf out;
  sim_profile_make(t, a, &p);
  buf_init(&out, REPORT_MAX);
  const enum status st = !strcmp(form, "--json")    ? sim_report_json(&p, NULL, &out)
                         : !strcmp(form, "--trace") ? sim_report_trace(&p, &out)
                                                    : sim_report_text(&p, &out);
  if (st)
    exit(2);
  puts(buf_text(&out));
  buf_clear(&out);
}

int main(int argc, char **argv) {
  enum target target;
  int status = 0;
  if (argc < 3 || !target_from_name(argv[1], &target))
    return 2;
  struct ir ir;
  struct error err;
  if (ir_init(&ir, &err))
    return 2;
  const char *form = strncmp(argv[2], "--", 2) ? NULL : argv[2];
  for (int k = form ? 3 : 2; k < argc; k++) {
    struct arena a;
    struct diags ds;
    struct sim_program p;
    struct sim_timeline t;
    struct sim_fault fault;
    MlirModule m = {NULL};
    size_t size;
    char name[200];
    char *text = read_file(argv[k], &size);
    arena_init(&a);
    diags_init(&ds, &a);
    if (nisa_parse(&ir, text, size, argv[k], &a, &ds, &m) || nisa_verify(mlirModuleGetOperation(m), target, &a, &ds) ||
        sim_decode(mlirModuleGetOperation(m), first_function(m, name, sizeof name), &a, &ds, &p)) {
      fprintf(stderr, "%s: %s\n", argv[k], ds.n ? ds.v[0].message : "no message");
      status = 1;
    } else {
      const int64_t start = processor_us();
      if (sim_time(&p, &(struct sim_time_options){.target = target}, &a, &t, &fault)) {
        fprintf(stderr, "%s: %s\n", argv[k], fault.text);
        status = 1;
      } else {
        const int64_t took = processor_us() - start;
        if (form && !strcmp(form, "--row"))
          print_row(&t, &a);
        else if (form)
          report(form, &t, &a);
        else
          print(argv[k], &t, took);
      }
    }
    if (m.ptr)
      mlirModuleDestroy(m);
    arena_clear(&a);
    free(text);
  }
  ir_clear(&ir);
  return status;
}
