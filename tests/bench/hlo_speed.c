/* hlo_speed N…: reads HLO text of about N instructions and runs every HLO pass on it, in the order of the pipeline.  One
 * line of JSON per N: {"ops":N,"read":ns per op,"dce":ns per op,…}, the best of ROUNDS.  The text has something for each
 * pass in every few instructions, so that none has nothing to do. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "hlo/passes.h"
#include "hlo/read.h"

enum { ROUNDS = 60, TEXT_MAX = 256 << 20, BLOCK_OPS = 28, LOOP_OPS = 13, PASSES_MAX = 32, SIZES_MAX = 8 };

struct figures {
  int n_ops;
  double ns[PASSES_MAX]; /* per instruction: reading, then each pass */
};

/* The machine may have other work. */
static int64_t cpu_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Instructions that make v<k> from v<k-1>, both f32[8,16]. */
static void put_block(struct buf *b, int k) {
  buf_printf(b,
             "a%d = f32[8,16] sine(v%d)\n"
             "b%d = f32[8,16] sine(v%d)\n"
             "dead%d = f32[8,16] cosine(v%d)\n"
             "two%d = f32[] constant(2)\n"
             "half%d = f32[] constant(0.5)\n"
             "one%d = f32[] multiply(two%d, half%d)\n"
             "ones%d = f32[8,16] broadcast(one%d), dimensions={}\n"
             "m%d = f32[8,16] multiply(a%d, ones%d)\n",
             k, k - 1, k, k - 1, k, k - 1, k, k, k, k, k, k, k, k, k, k);
  buf_printf(b,
             "p%d = f32[128] reshape(m%d)\n"
             "q%d = f32[128] reshape(b%d)\n"
             "s%d = f32[128] add(p%d, q%d)\n"
             "r%d = f32[2,4,16] reshape(s%d)\n"
             "i%d = s64[16,16] iota(), iota_dimension=1\n"
             "f%d = f32[16,16] convert(i%d)\n"
             "h%d = f32[16,16] transpose(f%d), dimensions={1,0}\n"
             "d%d = f32[2,4,16] dot(r%d, h%d), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
             "e%d = f32[8,16] reshape(d%d)\n"
             "t%d = f32[16,8] broadcast(e%d), dimensions={1,0}\n",
             k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k);
  buf_printf(b,
             "u%d = f32[8,16] transpose(t%d), dimensions={1,0}\n"
             "c%d = f32[8,16] call(u%d), to_apply=f\n"
             "yes%d = pred[] constant(true)\n"
             "g%d = f32[8,16] conditional(yes%d, c%d, c%d), true_computation=f, false_computation=f\n"
             "zero%d = s32[] constant(0)\n"
             "state%d = (s32[], f32[8,16], f32[8,16]) tuple(zero%d, g%d, u%d)\n"
             "w%d = (s32[], f32[8,16], f32[8,16]) while(state%d), condition=condition%d, body=body%d\n"
             "none%d = f32[0,16] slice(e%d), slice={[0:0], [0:16]}\n"
             "sin%d = f32[0,16] sine(none%d)\n"
             "x%d = f32[8,16] get-tuple-element(w%d), index=1\n"
             "v%d = f32[8,16] concatenate(x%d, sin%d), dimensions={0}\n",
             k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k);
}

static void put_loop(struct buf *b, int k) {
  static const char state[] = "p = (s32[], f32[8,16], f32[8,16]) parameter(0)\n"
                              "i = s32[] get-tuple-element(p), index=0\n";
  buf_printf(b,
             "body%d {\n%s"
             "x = f32[8,16] get-tuple-element(p), index=1\n"
             "y = f32[8,16] get-tuple-element(p), index=2\n"
             "one = s32[] constant(1)\n"
             "next = s32[] add(i, one)\n"
             "twice = f32[8,16] add(x, x)\n"
             "sum = f32[8,16] add(x, y)\n"
             "ROOT t = (s32[], f32[8,16], f32[8,16]) tuple(next, twice, sum)\n}\n"
             "condition%d {\n%s"
             "n = s32[] constant(%d)\n"
             "ROOT c = pred[] compare(i, n), direction=LT\n}\n",
             k, state, k, state, k % 3);
}

static void put_module(struct buf *b, int n_blocks) {
  buf_puts(b, "HloModule speed\nf {\np = f32[8,16] parameter(0)\nROOT s = f32[8,16] negate(p)\n}\n");
  for (int k = 1; k <= n_blocks; k++)
    put_loop(b, k);
  buf_puts(b, "ENTRY main {\nv0 = f32[8,16] parameter(0)\n");
  for (int k = 1; k <= n_blocks; k++)
    put_block(b, k);
  buf_printf(b, "ROOT out = f32[8,16] copy(v%d)\n}\n", n_blocks);
}

static bool measure(const struct buf *text, double *ns, int *n_ops) {
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  int64_t began = cpu_us();
  struct hlo_module *m = hlo_read_text(&a, buf_text(text), text->len, "speed.hlo", &ds);
  if (!m) {
    fprintf(stderr, "%s\n", ds.v[0].message);
    return false;
  }
  *n_ops = 0;
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    *n_ops += c->n_instrs;
  ns[0] = (double)(cpu_us() - began) * 1e3 / *n_ops;
  bool ok = true;
  for (int k = 0; k < hlo_n_passes; k++) {
    struct hlo_pass_result r = {.ds = &ds};
    hlo_stage_mark(m);
    began = cpu_us();
    hlo_passes[k].fn(m, &r);
    ns[1 + k] = (double)(cpu_us() - began) * 1e3 / *n_ops;
    ok &= r.changed && hlo_verify(m, &ds) == ST_OK;
    if (!ok)
      fprintf(stderr, "%s %s\n", hlo_passes[k].name, r.changed ? ds.v[ds.n - 1].message : "had nothing to do");
  }
  arena_clear(&a);
  return ok;
}

/* In a process of its own, as each compile is: memory is new, and nothing is left of an earlier one. */
static bool measure_apart(const struct buf *text, struct figures *shared) {
  int status = 1;
  pid_t pid = fork();
  if (!pid)
    _exit(!measure(text, shared->ns, &shared->n_ops));
  return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* Each size in each round, so that a slower moment of the machine is one of all. */
int main(int argc, char **argv) {
  struct size {
    struct buf text;
    struct figures best;
  } sizes[SIZES_MAX] = {0};
  const int n_sizes = argc - 1 < SIZES_MAX ? argc - 1 : SIZES_MAX;
  struct figures *one = mmap(NULL, sizeof *one, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  for (int k = 0; k < n_sizes; k++) {
    buf_init(&sizes[k].text, TEXT_MAX);
    put_module(&sizes[k].text, atoi(argv[1 + k]) / (BLOCK_OPS + LOOP_OPS) + 1);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (struct size *s = sizes; s < sizes + n_sizes; s++) {
      if (one == MAP_FAILED || buf_status(&s->text) || !measure_apart(&s->text, one))
        return 1;
      s->best.n_ops = one->n_ops;
      for (int k = 0; k <= hlo_n_passes; k++)
        s->best.ns[k] = !round || one->ns[k] < s->best.ns[k] ? one->ns[k] : s->best.ns[k];
    }
  }
  for (struct size *s = sizes; s < sizes + n_sizes; s++) {
    printf("{\"ops\":%d,\"read\":%.1f", s->best.n_ops, s->best.ns[0]);
    for (int k = 0; k < hlo_n_passes; k++)
      printf(",\"%s\":%.1f", hlo_passes[k].name, s->best.ns[1 + k]);
    puts("}");
    buf_clear(&s->text);
  }
  return 0;
}
