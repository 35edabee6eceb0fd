/* streams: which DMA queue executes a transfer.
 *
 *     qSyncIn      loads: from HBM that the kernel does not write, to the chip.  Triggered by sync, which has nothing
 *                  else to do, so that loads run ahead as far as there is memory.
 *     qScalarIn    if scalar and gpsimd compute nothing, half of the loads: those of one buffer stay in one
 *                  queue, and each buffer goes to the queue with fewer bytes.  So one operand is loaded while the queue of
 *                  the other one waits.
 *     qGpsimdOut   everything that depends on computed data: stores, copies on chip, loads from HBM that the kernel has
 *     qScalarOut   written.  They never block a load.  A load from scratch memory is in the queue of the store that
 *                  wrote it, so that the order of the queue replaces a semaphore.
 *     qSyncBack    but not if it is in a loop that stores, too, and an earlier loop wrote it: in one program the load of the
 *                  next round would wait for the store of this one, and the rounds would not overlap.
 *     qSyncOut     in short programs only: stores and loads that other engines start elsewhere.
 *     qGpsimdIn
 *     qGpsimdCc    collectives.
 *     qGpsimdPeer  exchanges with the other core, of a program of two.
 *
 * A trigger that waits also delays the instructions of its engine.  So transfers out are triggered by gpsimd, or by
 * scalar, if one of them computes nothing; by scalar, if gpsimd computes for a long time and scalar has less to do; otherwise
 * by the one that produced the data, whose trigger needs no wait; and otherwise by the one with less work.  But GpSimd builds
 * each descriptor, while hardware makes those of scalar's triggers.  So scalar starts all transfers out if they have many short
 * descriptors, and if that and what it computes take it clearly less time than GpSimd would take; and else a transfer that has
 * several descriptors for each partition, if GpSimd has more to do, and the transfers of a loop in which GpSimd would take more
 * than twice as long as scalar, for building descriptors and computing.
 *
 * All of this is for programs with loops, whose rounds overlap.  A short program without loops is played (lib/straight.h), and each of
 * its transfers is started by the engine with which the program ends first.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/engine_programs/engine_programs.h"
#include "passes/lib/buffers.h"
#include "passes/lib/busy.h"
#include "passes/lib/descriptors.h"
#include "passes/lib/straight.h"

/* The time in nanoseconds that scalar and gpsimd would spend on a top-level operation, usually a loop, if each of them started
 * all its transfers to HBM, and the loads of what these write. */
struct nest {
  double scalar, gpsimd;
  double build; /* what gpsimd would take for the transfers alone */
  bool stores;  /* it is a loop with transfers to HBM */
};

struct work {
  struct ep *ep;
  struct ir_ops ops;
  int64_t executed[NISA_ENGINE_COUNT]; /* instructions that each engine executes */
  double busy[NISA_ENGINE_COUNT];      /* how long they keep it, in nanoseconds */
  struct table writer;                 /* root -> the last operation that wrote it, in program order */
  struct table is_written;             /* root in HBM that the kernel writes -> itself */
  struct table loaded_by;              /* root on chip -> one more than the queue of its loads */
  int64_t loaded[2];                   /* bytes, of qSyncIn and qScalarIn */
  bool is_out_by_scalar;               /* because of the descriptors */
  double build;                        /* how long gpsimd would build descriptors, in nanoseconds */
  bool has_scalar_less;                /* to do than gpsimd, with the transfers out */
  struct table nests;                  /* top-level operation -> its struct nest */
  struct table backs;                  /* transfer of qSyncBack -> itself */
};

static bool is_instruction(MlirOperation op, void *user) {
  (void)user;
  const struct nisa_op_def *def = nisa_op_of(op);
  return def && def->kind != NISA_ALLOC && def->kind != NISA_RELEASE && def->kind != NISA_REGISTER_LOAD;
}

static bool is_collective(enum nisa_kind k) {
  return k == NISA_ALL_GATHER || k == NISA_ALL_REDUCE || k == NISA_REDUCE_SCATTER || k == NISA_ALL_TO_ALL ||
         k == NISA_COLLECTIVE_PERMUTE;
}

/* How often op is executed, as far as it is known; at most a million. */
static int64_t executions(struct ep *ep, MlirOperation op) {
  enum { MANY = 1000000 };
  int64_t n = 1, bound[3];
  for (op = mlirOperationGetParentOperation(op); !mlirOperationEqual(op, ep->function) && n < MANY;
       op = mlirOperationGetParentOperation(op)) {
    bool is_known = ir_is(op, "scf.for");
    for (int k = 0; is_known && k < 3; k++)
      is_known = ir_int_constant(mlirOperationGetOperand(op, k), &bound[k]);
    if (is_known && bound[2] > 0 && bound[1] > bound[0])
      n *= (bound[1] - bound[0] + bound[2] - 1) / bound[2];
  }
  return n < MANY ? n : MANY;
}

static enum nisa_engine engine_of(MlirOperation op) {
  return nisa_engine_from_name(ir_str(nisa_text_attr(op, "engine")));
}

static const void *root_key(MlirValue v) {
  return buffer_root(v).ptr;
}

/* The roots that instructions write.  dst comes first among the operands. */
static void survey(struct work *w) {
  for (int k = 0; k < w->ops.n; k++) {
    MlirOperation op = w->ops.v[k];
    MlirValue dst = mlirOperationGetOperand(op, 0);
    const int64_t n = executions(w->ep, op);
    struct nisa_instr in;
    w->executed[engine_of(op)] += n;
    if (nisa_read(op, &in, NULL) && in.engine != NISA_ENGINE_DMA)
      w->busy[in.engine] += busy_ns(&in, in.engine, w->ep->run->target) * (double)n;
    if (!mem_is_on_chip(nisa_type_space(mlirValueGetType(dst))))
      table_put(&w->is_written, root_key(dst), op.ptr);
  }
}

/* Of the transfers that are not loads. */
struct outs {
  int64_t transfers, descriptors;
};

/* A transfer from HBM that the kernel does not write. */
static bool is_load(struct work *w, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = nisa_operand(in, "src");
  return mem_is_on_chip(nisa_access_space(dst)) && !mem_is_on_chip(nisa_access_space(src)) &&
         !table_get(&w->is_written, root_key(src->base));
}

static struct outs count_outs(struct work *w) {
  struct outs all = {0};

  for (int k = 0; k < w->ops.n; k++) {
    struct nisa_instr in;
    if (engine_of(w->ops.v[k]) != NISA_ENGINE_DMA || !nisa_read(w->ops.v[k], &in, NULL) ||
        in.def->kind != NISA_DMA_COPY)
      continue;
    const struct nisa_access *dst = &in.operand[0], *src = nisa_operand(&in, "src");
    const int64_t n = executions(w->ep, in.op);
    if (is_load(w, &in) || table_get(&w->backs, in.op.ptr))
      continue;
    all.transfers += n;
    all.descriptors += n * descriptors_of(dst, src);
  }
  return all;
}

/* True if scalar should start the transfers out because of their descriptors: if they have several for each partition.  With
 * one for each, it would take half of the time, which its waiting for data costs again.  On trn1 all descriptors are
 * prepared. */
static bool prefers_hardware(struct work *w, const struct outs *all) {
  enum {
    BUILD_NS = 9,   /* GpSimd builds a descriptor */
    START_NS = 500, /* a trigger with hardware descriptors holds its engine, and so does a short instruction, about */
    EACH_NS = 1,    /* and for each descriptor */
    CLEARLY = 3
  };
  const int64_t software = all->descriptors * BUILD_NS + w->executed[NISA_ENGINE_GPSIMD] * START_NS;
  const int64_t hardware = all->descriptors * EACH_NS + (all->transfers + w->executed[NISA_ENGINE_SCALAR]) * START_NS;

  return w->ep->run->target != TARGET_TRN1 && CLEARLY * hardware < software;
}

/* True if scalar executes fewer than half as many instructions as gpsimd (a transfer that GpSimd triggers starts in about
 * half of the time); or if gpsimd computes for longer than it takes to build descriptors, and scalar would have less to do
 * with the transfers out than gpsimd has. */
static bool scalar_has_less(const struct work *w, const struct outs *all) {
  const enum target t = w->ep->run->target;
  const double each = all->transfers ? (double)all->descriptors / (double)all->transfers : 0,
               n = (double)all->transfers;
  const double scalar = w->busy[NISA_ENGINE_SCALAR] + n * busy_trigger_ns(NISA_ENGINE_SCALAR, (int64_t)each, t);
  const double build = n * busy_trigger_ns(NISA_ENGINE_GPSIMD, (int64_t)each, t), gpsimd = w->busy[NISA_ENGINE_GPSIMD];

  if (!w->executed[NISA_ENGINE_GPSIMD] || !w->executed[NISA_ENGINE_SCALAR])
    return w->executed[NISA_ENGINE_GPSIMD];
  return 2 * w->executed[NISA_ENGINE_SCALAR] < w->executed[NISA_ENGINE_GPSIMD] ||
         (gpsimd > build && scalar < gpsimd + build);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static struct nest *nest_of(struct work *w, MlirOperation op) {
  for (MlirOperation p = mlirOperationGetParentOperation(op); !mlirOperationEqual(p, w->ep->function);
       p = mlirOperationGetParentOperation(op))
    op = p;
  struct nest *known = table_get(&w->nests, op.ptr);
  if (!known) {
    known = arena_new(w->ep->run->arena, struct nest);
    table_put(&w->nests, op.ptr, known);
  }
  return known;
}

static bool is_plain_transfer(const struct nisa_instr *in) {
  return in->def->kind == NISA_DMA_COPY || in->def->kind == NISA_DMA_TRANSPOSE;
}

static void survey_stores(struct work *w) {
  for (int k = 0; k < w->ops.n; k++) {
    struct nisa_instr in;
    if (nisa_read(w->ops.v[k], &in, NULL) && in.engine == NISA_ENGINE_DMA &&
        !mem_is_on_chip(nisa_access_space(&in.operand[0])) && executions(w->ep, in.op) > 1)
      nest_of(w, in.op)->stores = true;
  }
}

/* Loads of what another loop wrote, in loops that store.  Sync starts a transfer about a microsecond later than GpSimd, which the
 * overlap of two or three rounds does not give back. */
static void survey_backs(struct work *w) {
  enum { ROUNDS = 4 };
  struct nest other = {0};                            /* stands for what is written by no plain transfer */
  struct table stores = {.arena = w->ep->run->arena}; /* root in HBM -> the nest of the transfer that wrote it last */
  for (int k = 0; k < w->ops.n; k++) {
    MlirOperation op = w->ops.v[k];
    struct nisa_instr in;
    if (!nisa_read(op, &in, NULL) || in.engine != NISA_ENGINE_DMA)
      continue;
    const struct nisa_access *dst = &in.operand[0], *src = nisa_operand(&in, "src");
    if (!mem_is_on_chip(nisa_access_space(dst))) {
      table_put(&stores, root_key(dst->base), is_plain_transfer(&in) ? nest_of(w, op) : &other);
      continue;
    }
    const struct nest *writer = is_plain_transfer(&in) ? table_get(&stores, root_key(src->base)) : NULL;
    const struct nest *here = nest_of(w, op);
    if (writer && writer != &other && writer != here && here->stores && executions(w->ep, op) >= ROUNDS)
      table_put(&w->backs, op.ptr, op.ptr);
  }
}

/* A transfer counts for the loop that starts it; one that loads what an earlier one wrote, for the loop of that one, whose
 * queue it will be in. */
static void survey_nests(struct work *w) {
  const enum target t = w->ep->run->target;
  struct table stores = {.arena = w->ep->run->arena}; /* root in HBM -> the nest of the transfer that wrote it last */

  for (int k = 0; k < w->ops.n; k++) {
    MlirOperation op = w->ops.v[k];
    const double n = (double)executions(w->ep, op);
    struct nest *nest = nest_of(w, op);
    struct nisa_instr in;
    if (!nisa_read(op, &in, NULL))
      continue;
    if (in.engine == NISA_ENGINE_SCALAR)
      nest->scalar += n * busy_ns(&in, in.engine, t);
    else if (in.engine == NISA_ENGINE_GPSIMD)
      nest->gpsimd += n * busy_ns(&in, in.engine, t);
    if ((in.def->kind != NISA_DMA_COPY && in.def->kind != NISA_DMA_TRANSPOSE) || is_load(w, &in) ||
        table_get(&w->backs, op.ptr))
      continue;
    const struct nisa_access *dst = &in.operand[0], *src = nisa_operand(&in, "src");
    if (mem_is_on_chip(nisa_access_space(dst)) && table_get(&stores, root_key(src->base)))
      nest = table_get(&stores, root_key(src->base));
    if (!mem_is_on_chip(nisa_access_space(dst)))
      table_put(&stores, root_key(dst->base), nest);
    const double build = n * busy_trigger_ns(NISA_ENGINE_GPSIMD, descriptors_of(dst, src), t);
    nest->build += build;
    nest->gpsimd += build;
    nest->scalar += n * busy_trigger_ns(NISA_ENGINE_SCALAR, descriptors_of(dst, src), t);
  }
}

/* True if a loop builds so many descriptors that its transfers should be started by scalar, which has less to do there. */
static bool is_for_scalar(struct work *w, MlirOperation op) {
  enum { BUILD_NS = 20000 };
  const struct nest *n = nest_of(w, op);
  return w->ep->run->target != TARGET_TRN1 && w->executed[NISA_ENGINE_SCALAR] && n->build > BUILD_NS &&
         2 * n->scalar < n->gpsimd;
}

static int find_stream(struct ep *ep, const char *name, int on, const char *why) {
  for (int k = 0; k < ep->n_streams; k++)
    if (!strcmp(ep->streams[k].name, name))
      return k;
  assert(ep->n_streams < EP_STREAMS_MAX);
  ep->streams[ep->n_streams] = (struct ep_stream){.name = name, .why = why, .on = on};
  return ep->n_streams++;
}

/* True if scalar is the one to start a transfer because GpSimd would build several descriptors for each partition: it takes
 * four times as long at least.  Not if there are few in all: their start, which takes GpSimd half as long, counts more. */
static bool has_many_descriptors(const struct work *w, const struct nisa_instr *in) {
  enum { MANY = 256, BUILD_NS = 20000 };
  const struct nisa_access *dst = &in->operand[0], *src = nisa_operand(in, "src");
  return w->ep->run->target != TARGET_TRN1 && in->def->kind == NISA_DMA_COPY && descriptors_of(dst, src) >= MANY &&
         w->build > BUILD_NS && w->busy[NISA_ENGINE_SCALAR] < w->busy[NISA_ENGINE_GPSIMD] + w->build;
}

static int queue_out(struct work *w, const struct nisa_instr *in, MlirValue src) {
  const int64_t gpsimd = w->executed[NISA_ENGINE_GPSIMD], scalar = w->executed[NISA_ENGINE_SCALAR];
  MlirOperation writer = {table_get(&w->writer, root_key(src))};
  const enum nisa_engine from = mlirOperationIsNull(writer) ? NISA_ENGINE_NONE : engine_of(writer);
  const char *why = gpsimd && scalar ? "what engines computed; it has less to do"
                                     : "what engines computed; it computes nothing itself";
  bool by_scalar = w->has_scalar_less;
  if (w->is_out_by_scalar || has_many_descriptors(w, in)) {
    by_scalar = true;
    why = "what engines computed, in short descriptors, which GpSimd would build one by one";
  } else if (is_for_scalar(w, in->op)) {
    by_scalar = true;
    why = "what engines computed; it has less to do there than GpSimd, which would build the descriptors";
  } else if (gpsimd && scalar && !by_scalar && (from == NISA_ENGINE_GPSIMD || from == NISA_ENGINE_SCALAR)) {
    by_scalar = from == NISA_ENGINE_SCALAR;
    why = "what it computed itself";
  }
  return by_scalar ? find_stream(w->ep, "qScalarOut", EP_SCALAR, why)
                   : find_stream(w->ep, "qGpsimdOut", EP_GPSIMD, why);
}

static int64_t bytes_of(struct ep *ep, MlirOperation op, const struct nisa_access *x) {
  return nisa_partitions(x) * nisa_free_elements(x) *
         nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(x->base))) * executions(ep, op);
}

static int queue_in(struct work *w, MlirOperation op, const struct nisa_access *dst) {
  const void *root = root_key(dst->base);
  const bool is_shared = !w->executed[NISA_ENGINE_SCALAR] && !w->executed[NISA_ENGINE_GPSIMD];
  const int known = (int)(intptr_t)table_get(&w->loaded_by, root) - 1;
  const int half = (int)(intptr_t)table_get(&w->ep->half, op.ptr) - 1;
  const bool by_scalar = half >= 0 ? half : known >= 0 ? known : is_shared && w->loaded[1] < w->loaded[0];
  table_put(&w->loaded_by, root, (void *)(intptr_t)(by_scalar + 1));
  w->loaded[by_scalar] += bytes_of(w->ep, op, dst);
  return by_scalar
             ? find_stream(w->ep, "qScalarIn", EP_SCALAR, "loads, which never wait for a store; it computes nothing")
             : find_stream(w->ep, "qSyncIn", EP_SYNC, "loads, which never wait for a store");
}

static int queue_for(struct work *w, MlirOperation op) {
  MlirValue dst = mlirOperationGetOperand(op, 0);
  struct nisa_instr in;
  const bool is_read = nisa_read(op, &in, NULL);
  assert(is_read);
  (void)is_read;
  if (is_collective(in.def->kind))
    return find_stream(w->ep, "qGpsimdCc", EP_GPSIMD, "collectives");
  if (in.def->kind == NISA_SENDRECV)
    return find_stream(w->ep, "qGpsimdPeer", EP_GPSIMD, "exchanges with the other core, which may come later");
  MlirValue src = nisa_operand(&in, "src")->base;
  const bool from_hbm = !mem_is_on_chip(nisa_type_space(mlirValueGetType(src)));
  const bool to_chip = mem_is_on_chip(nisa_type_space(mlirValueGetType(dst)));
  if (from_hbm && to_chip && in.def->kind == NISA_DMA_COPY_INDIRECT)
    return queue_out(w, &in, in.operand[2].base);
  if (from_hbm && to_chip && !table_get(&w->is_written, root_key(src)))
    return queue_in(w, op, nisa_operand(&in, "dst"));
  if (table_get(&w->backs, op.ptr)) {
    const int back = find_stream(w->ep, "qSyncBack", EP_SYNC,
                                 "loads of what an earlier loop stored, which never wait for a store of theirs");
    w->ep->streams[back].is_back = true;
    return back;
  }
  MlirOperation writer = {table_get(&w->writer, root_key(src))};
  if (from_hbm && !mlirOperationIsNull(writer) && table_get(&w->ep->queue_of, writer.ptr) &&
      !is_collective(nisa_op_of(writer)->kind))
    return ep_stream_of(w->ep, writer);
  return queue_out(w, &in, src);
}

int ep_stream_of(struct ep *ep, MlirOperation op) {
  switch (engine_of(op)) {
  case NISA_ENGINE_TENSOR:
    return EP_TENSOR;
  case NISA_ENGINE_VECTOR:
    return EP_VECTOR;
  case NISA_ENGINE_SCALAR:
    return EP_SCALAR;
  case NISA_ENGINE_GPSIMD:
    return EP_GPSIMD;
  case NISA_ENGINE_SYNC:
    return EP_SYNC;
  default:
    return (int)(intptr_t)table_get(&ep->queue_of, op.ptr) - 1;
  }
}

/* Divides the loads of a loop among the two queues of loads, if scalar may start some. */
static bool split_loads(struct work *w) {
  struct ir_ops loads = {.v = arena_new_array(w->ep->run->arena, MlirOperation, (size_t)w->ops.n + 1)};
  double *start = arena_new_array(w->ep->run->arena, double, (size_t)w->ops.n + 1);
  if (w->executed[NISA_ENGINE_SCALAR] || w->executed[NISA_ENGINE_GPSIMD])
    return false;
  for (int k = 0; k < w->ops.n; k++) {
    struct nisa_instr in;
    if (engine_of(w->ops.v[k]) != NISA_ENGINE_DMA || !nisa_read(w->ops.v[k], &in, NULL) || !is_plain_transfer(&in) ||
        !is_load(w, &in))
      continue;
    const int64_t n = descriptors_of(&in.operand[0], nisa_operand(&in, "src"));
    start[loads.n] = (double)executions(w->ep, in.op) * busy_trigger_ns(NISA_ENGINE_SCALAR, n, w->ep->run->target);
    loads.v[loads.n++] = in.op;
  }
  return ep_split_loads(w->ep, &loads, start);
}

/* ---- short programs ---------------------------------------------------------------------------------------------- */

/* Adds up what starting a transfer takes. */
static void add_start(struct work *w, MlirOperation op) {
  struct ep_stream *s = &w->ep->streams[ep_stream_of(w->ep, op)];
  const double n = (double)executions(w->ep, op);
  struct nisa_instr in;
  int64_t each = NISA_PARTITIONS;
  if (nisa_read(op, &in, NULL) && in.def->kind == NISA_DMA_COPY)
    each = descriptors_of(&in.operand[0], nisa_operand(&in, "src"));
  s->hardware += n * busy_trigger_ns(NISA_ENGINE_SCALAR, each, w->ep->run->target);
  s->built += n * busy_trigger_ns(NISA_ENGINE_GPSIMD, each, w->ep->run->target);
}

static int stream_of(struct ep *ep, const struct straight_step *s) {
  static const char *const why = "it is complete sooner than if another engine started it";
  switch (s->engine) {
  case NISA_ENGINE_SYNC:
    return s->is_load ? find_stream(ep, "qSyncIn", EP_SYNC, "loads, which never wait for a store")
                      : find_stream(ep, "qSyncOut", EP_SYNC, why);
  case NISA_ENGINE_SCALAR:
    return find_stream(ep, s->is_load ? "qScalarIn" : "qScalarOut", EP_SCALAR, why);
  default:
    return find_stream(ep, s->is_load ? "qGpsimdIn" : "qGpsimdOut", EP_GPSIMD, why);
  }
}

/* A short program without loops is played (straight.h): each transfer is started by the engine with which the program ends
 * first, if that is clearly before it ends otherwise. */
static void choose_starters(struct ep *ep) {
  static const enum nisa_engine engines[EP_ENGINES] = {NISA_ENGINE_TENSOR, NISA_ENGINE_VECTOR, NISA_ENGINE_SCALAR,
                                                       NISA_ENGINE_GPSIMD, NISA_ENGINE_SYNC};
  enum { SAVING_MIN = 2 }; /* percent */
  struct straight s;

  if (ep->is_core || !straight_read(ep->run->arena, ir_body(ep->function), ep->run->target, &s) || !s.n_transfers)
    return;
  for (int k = 0; k < s.n; k++)
    if (s.steps[k].is_transfer)
      s.steps[k].engine = engines[ep->streams[ep_stream_of(ep, s.steps[k].op)].on];
  const double before = straight_play(&s), after = straight_choose_starters(&s);
  if (after * 100 > before * (100 - SAVING_MIN))
    return;
  ep->n_streams = EP_ENGINES;
  ep->before = before;
  ep->after = after;
  for (int k = 0; k < s.n; k++)
    if (s.steps[k].is_transfer)
      table_put(&ep->queue_of, s.steps[k].op.ptr, (void *)(intptr_t)(stream_of(ep, &s.steps[k]) + 1));
}

void ep_assign_queues(struct ep *ep) {
  struct arena *a = ep->run->arena;
  static const char *const engines[EP_ENGINES] = {"tensor", "vector", "scalar", "gpsimd", "sync"};
  struct work w = {.ep = ep,
                   .ops = ir_collect(a, ep->function, is_instruction, NULL),
                   .writer = {.arena = a},
                   .is_written = {.arena = a},
                   .loaded_by = {.arena = a},
                   .nests = {.arena = a},
                   .backs = {.arena = a}};
  for (int e = 0; e < EP_ENGINES; e++)
    ep->streams[e] = (struct ep_stream){.name = engines[e], .on = e};
  ep->n_streams = EP_ENGINES;
  survey(&w);
  if (split_loads(&w))
    w.ops = ir_collect(a, ep->function, is_instruction, NULL); /* with the loads of the new loop */
  survey_stores(&w);
  survey_backs(&w);
  survey_nests(&w);
  const struct outs all = count_outs(&w);
  w.is_out_by_scalar = prefers_hardware(&w, &all);
  w.build = busy_trigger_ns(NISA_ENGINE_GPSIMD, all.descriptors, ep->run->target);
  w.has_scalar_less = scalar_has_less(&w, &all);
  for (int k = 0; k < w.ops.n; k++) {
    MlirOperation op = w.ops.v[k];
    if (engine_of(op) == NISA_ENGINE_DMA)
      table_put(&ep->queue_of, op.ptr, (void *)(intptr_t)(queue_for(&w, op) + 1));
    table_put(&w.writer, root_key(mlirOperationGetOperand(op, 0)), op.ptr);
  }
  choose_starters(ep);
  ep->streams[EP_SCALAR].busy = w.busy[NISA_ENGINE_SCALAR];
  ep->streams[EP_GPSIMD].busy = w.busy[NISA_ENGINE_GPSIMD];
  for (int k = 0; k < w.ops.n; k++)
    if (engine_of(w.ops.v[k]) == NISA_ENGINE_DMA)
      add_start(&w, w.ops.v[k]);
}
