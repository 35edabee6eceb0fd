/* engine_programs: from one sequence of instructions to one program for each engine and DMA queue.
 *
 *     scf.for %i = %c0 to %c8 step %c1 {              nisa.program vector { scf.for %i = … {
 *       %a = nisa.alloc … copies=3                      nisa.wait qSyncIn >= %i + 1
 *       nisa.dma_copy(dst=%a, src=%x[%i])               nisa.wait qGpsimdOut >= %i - 1
 *       %b = nisa.alloc … copies=2                      nisa.reciprocal(dst=%b[…], src=%a[…]) signal
 *       nisa.reciprocal(dst=%b, src=%a)               } }
 *       nisa.release %a                       ==>     nisa.program gpsimd { scf.for %i = … {
 *       nisa.dma_copy(dst=%y[%i], src=%b)               nisa.wait vector >= %i + 1
 *       nisa.release %b                                 nisa.dma_trigger qGpsimdOut
 *     }                                               } }
 *                                                     nisa.program sync { scf.for %i = … {
 *                                                       nisa.wait vector >= %i - 2
 *                                                       nisa.dma_trigger qSyncIn
 *                                                     } }
 *                                                     nisa.queue qSyncIn on sync { … nisa.dma_copy … signal }
 *                                                     nisa.queue qGpsimdOut on gpsimd { … nisa.dma_copy … signal }
 *
 * nisa/streams.h says how the programs run.  The steps:
 *
 *   split.c    divides a loop of loads that two queues should share
 *   streams.c  gives every DMA operation a queue; the other instructions name their engine
 *   read.c     reads the function into arrays of instructions, loops, buffers and accesses
 *   depend.c   finds the pairs that must be ordered: the same buffer, or overlapping places
 *   solve.c    finds which execution of the first one an execution of the second one waits for
 *   reduce.c   drops the waits that others imply
 *   count.c    says as which number in its stream that execution raises the semaphore
 *   ahead.c    lets the first rounds of loops of transfers run ahead
 *   emit.c     writes the programs
 *
 * Every wait is for something that comes earlier in the sequence, so the programs cannot wait for each other in a circle.
 * Control flow on data has barriers around it; nothing in two parts that a barrier separates is ever compared.
 * The time is linear in the instructions if each buffer has few uses; it is quadratic in the uses of one buffer.
 */
#include "passes/engine_programs/engine_programs.h"

#include "nisa/cores.h"
#include "passes/lib/price.h"

static void remark_streams(struct ep *ep) {
  struct pass_run *run = ep->run;
  const char *text = "";
  int kept = 0;
  for (int s = 0; s < ep->n_streams; s++)
    if (ep->streams[s].n)
      text = arena_printf(run->arena, "%s%s %d %s", text, *text ? "," : "", ep->streams[s].n, ep->streams[s].name);
  const char *label = nisa_root_label(run->arena, ep->function);
  pass_remark(run, ep->function, RULE_PROGRAMS, "%sinstructions, loops counted once:%s", label, text);
  for (int k = 0; k < ep->waits.n; k++)
    kept += ep->waits.v[k].is_kept;
  struct remark *r = pass_remark(run, ep->function, RULE_DROP_WAITS,
                                 "%s%d wait%s; %d dropped, because program order or other waits imply them", label,
                                 kept, kept == 1 ? "" : "s", ep->waits.n - kept);
  remark_cost(r, "%s", price_count(run->arena, kept, "wait"));
  remark_reject_for(r, "a wait for each dependence", NULL, price_count(run->arena, ep->waits.n, "wait"),
                    ep->waits.n > kept ? "program order or other waits imply the rest" : "they are as many here");
  if (ep->n_segments > 1)
    pass_remark(run, ep->function, RULE_BARRIERS,
                ep->is_core ? "%scontrol flow depends on data, or the cores meet: all streams have barriers there"
                            : "%scontrol flow depends on data: all streams meet at barriers around it",
                label);
}

static void remark_queue(struct ep *ep, int q) {
  const struct ep_stream *s = &ep->streams[q];
  struct remark *r =
      pass_remark(ep->run, ep->function, RULE_QUEUE, "%s%s: %s, started by %s",
                  nisa_root_label(ep->run->arena, ep->function), s->name, s->why, ep->streams[s->on].name);
  const double scalar = ep->streams[EP_SCALAR].busy + s->hardware, gpsimd = ep->streams[EP_GPSIMD].busy + s->built;
  if (ep->after > 0) { /* prices of the program */
    price_chosen(r, ep->after);
    price_instead(r, "the engines of a longer program", ep->before, "they would start transfers later");
  } else if (s->on == EP_SYNC) { /* prices of what the engine has to do */
    price_chosen(r, s->hardware);
    price_instead(r, "scalar", scalar, "its instructions would wait for the start of each load");
  } else {
    price_chosen(r, s->on == EP_SCALAR ? scalar : gpsimd);
    price_instead(r, s->on == EP_SCALAR ? "gpsimd" : "scalar", s->on == EP_SCALAR ? gpsimd : scalar,
                  s->on == EP_GPSIMD && gpsimd > scalar
                      ? "a transfer that gpsimd starts begins in about half of the time, and gpsimd builds descriptors "
                        "while it waits for the data"
                  : s->on == EP_SCALAR && scalar > gpsimd ? "its transfers would wait for what scalar computes"
                                                          : s->why);
  }
}

static void remark_queues(struct ep *ep) {
  for (int q = EP_ENGINES; q < ep->n_streams; q++)
    remark_queue(ep, q);
}

static void make_programs(struct pass_run *run, MlirOperation root) {
  struct arena *a = run->arena;
  struct ep ep = {.run = run,
                  .function = root,
                  .is_core = nisa_is_core(root),
                  .queue_of = {.arena = a},
                  .half = {.arena = a},
                  .loop_of = {.arena = a},
                  .instr_of = {.arena = a},
                  .buffer_of = {.arena = a},
                  .needed = {.arena = a},
                  .controls = {.arena = a}};
  ep_assign_queues(&ep);
  ep_read(&ep);
  ep_find_waits(&ep);
  ep_reduce(&ep);
  ep_emit(&ep);
  remark_streams(&ep);
  remark_queues(&ep);
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  enum status st = pass_target(run, &run->target);
  for (int k = 0; !st && k < functions.n; k++) {
    if (mlirBlockIsNull(ir_body(functions.v[k])))
      continue;
    const struct ir_ops roots = nisa_roots(run->arena, functions.v[k]);
    for (int r = 0; r < roots.n; r++)
      make_programs(run, roots.v[r]);
  }
  return st;
}

const struct pass_def engine_programs = {
    .name = "engine-programs",
    .run = run_pass,
};
