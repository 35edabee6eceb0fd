/* allocate_memory: gives every allocation its place in SBUF, PSUM or HBM.
 *
 *     scf.for %i = … {                                scf.for %i = … {
 *       %a = nisa.alloc : memref<…, sbuf>               %a = nisa.alloc at=[0, 4096] copies=3 stride=2048 : …
 *       nisa.dma_copy(dst=%a, …)              ==>       …
 *       nisa.activation(…, src=%a, …)
 *       nisa.release %a                                 nisa.release %a
 *     }                                               }
 *
 * nisa.h ("Places") says what the attributes mean.  An allocation in a loop gets several copies if that lets engines work
 * side by side and if there is room (copies.c).  Lifetimes are those of program order (nisa/lifetime.h); place.c finds the
 * addresses.  A buffer occupies its bytes in all 128 partitions, even if it uses fewer.  In PSUM it occupies whole banks,
 * because an accumulation group is a bank.
 *
 * An allocation that asks for an address gets it, in one copy; the others are placed around it.
 *
 * HBM is large and never released: each allocation gets bytes of its own.  Memory that leaves the kernel or its loop (a
 * result, what a loop carries) has no place: the caller passes it, or its lifetime is not known.
 *
 * If SBUF or PSUM is too small, the error names what is alive at that point.  Time: the square of the allocations.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/cores.h"
#include "passes/allocate_memory/allocate_memory.h"
#include "passes/allocate_memory/place.h"
#include "passes/lib/buffers.h"
#include "passes/lib/price.h"

enum { HBM_ALIGNMENT = 64, CHIP_ALIGNMENT = 4, ALIGNMENT_MAX = 1 << 20 };
static const int64_t BYTES_MAX = (int64_t)1 << 44; /* more than any device has */

struct allocation {
  struct pass_run *run;
  const struct nisa_machine *machine;
  MlirOperation root; /* the function, or the region of a core (nisa/cores.h): each core has its own SBUF and PSUM */
  struct nisa_lifetimes lifetimes;
  struct copies *copies;              /* of each lifetime */
  int64_t sbuf_used, banks, hbm_used; /* the ends of what is used */
  int64_t sbuf_apart;                 /* what all copies would take if none shared a place */
};

static int64_t alignment_of(const struct nisa_lifetime *x) {
  const int64_t least = mem_is_on_chip(x->space) ? CHIP_ALIGNMENT : HBM_ALIGNMENT;
  const int64_t given = ir_int_attr(x->alloc, "alignment", 1);
  return given > least ? given : least;
}

/* ---- on chip ----------------------------------------------------------------------------------------------------- */

/* True if PSUM is used in the loop of x. */
static bool is_with_products(const struct allocation *m, const struct nisa_lifetime *x) {
  for (int k = 0; k < m->lifetimes.n && !mlirOperationIsNull(x->loop); k++) {
    const struct nisa_lifetime *y = &m->lifetimes.v[k];
    if (y->space == MEM_PSUM && y->from >= x->loop_from && y->from < x->loop_to)
      return true;
  }
  return false;
}

static struct place_item item_of(const struct allocation *m, const struct nisa_lifetime *x, int copies) {
  struct nisa_place at = {0};
  return (struct place_item){
      .bytes = x->bytes,
      .align = x->space == MEM_PSUM ? m->machine->psum_bank_bytes : alignment_of(x),
      .from = x->from,
      .to = x->to,
      .loop_from = x->loop_from,
      .loop_to = x->loop_to,
      .copies = copies,
      .is_with_products = is_with_products(m, x),
      .is_fixed = nisa_address_of(x->alloc, &at),
      .offset = at.bank * m->machine->psum_bank_bytes + (x->space == MEM_PSUM ? 0 : at.offset),
  };
}

/* Refuses what is alive at the same time as another one that asks for some of the same bytes. */
static enum status check_fixed(struct allocation *m) {
  const struct nisa_lifetimes *l = &m->lifetimes;
  for (int k = 0; k < l->n; k++)
    for (int i = 0; i < k; i++) {
      const struct nisa_lifetimes other = {.v = &l->v[i], .n = 1};
      if (nisa_lifetimes_meet(&l->v[i], &l->v[k]) && nisa_addresses_meet(l->v[i].alloc, l->v[k].alloc, m->machine))
        return pass_fail(m->run, l->v[k].alloc, "its address is in use here: %s; use another address",
                         nisa_describe_live(m->run->arena, &other, l->v[i].space, l->v[i].from));
    }
  return ST_OK;
}

static enum status refuse(struct allocation *m, enum mem_space s, const struct nisa_lifetime *failed,
                          int64_t capacity) {
  const char *memory = s == MEM_SBUF ? "SBUF" : "PSUM";
  const struct nisa_lifetime *at;
  const int64_t peak = nisa_live_peak(m->run->arena, &m->lifetimes, s, &at);

  if (peak > capacity)
    return pass_fail(m->run, at->alloc,
                     "%" PRId64 " bytes of every %s partition are in use here, and there are %" PRId64
                     "; alive are %s; use smaller tiles",
                     peak, memory, capacity, nisa_describe_live(m->run->arena, &m->lifetimes, s, at->from));
  return pass_fail(m->run, failed->alloc,
                   "there is no room of %" PRId64 " bytes in a row in every %s partition; alive here are %s; use "
                   "smaller tiles",
                   failed->bytes, memory, nisa_describe_live(m->run->arena, &m->lifetimes, s, failed->from));
}

static void set_place(struct allocation *m, const struct nisa_lifetime *x, const struct place_item *item) {
  const int64_t bank = m->machine->psum_bank_bytes, end = item->offset + (item->copies - 1) * item->stride + x->bytes;
  struct nisa_place p = {.offset = item->offset, .copies = item->copies, .stride = item->stride};

  if (x->space == MEM_PSUM) {
    p.bank = item->offset / bank;
    p.offset = 0;
  }
  (void)nisa_address_of(x->alloc, &p);
  if (x->space == MEM_PSUM) {
    m->banks = end / bank > m->banks ? end / bank : m->banks;
  } else {
    m->sbuf_used = end > m->sbuf_used ? end : m->sbuf_used;
    m->sbuf_apart =
        (m->sbuf_apart + item->align - 1) / item->align * item->align + (item->copies - 1) * item->stride + x->bytes;
  }
  pass_step(m->run, x->alloc, "place-buffer");
  nisa_set_place(x->alloc, &p);
}

/* Of HBM no limit is known. */
static void limit_copies(const struct allocation *m, struct remark *r, const struct nisa_lifetime *x, int copies) {
  const int64_t bank = m->machine->psum_bank_bytes, banks = (x->bytes + bank - 1) / bank;
  if (x->space == MEM_SBUF)
    remark_limit(r, "SBUF", "bytes per partition", copies * x->bytes, m->machine->sbuf_bytes);
  if (x->space == MEM_PSUM)
    remark_limit(r, "PSUM", "banks", copies * banks, m->machine->psum_bytes / bank);
}

/* The time of an instruction or a transfer by one of the engines, over all of the memory. */
static double use_ns(const struct allocation *m, const struct nisa_lifetime *x, unsigned engines) {
  enum { F32_BYTES = 4 };
  const bool is_far = mem_is_dram(x->space);
  return engines & 1u << NISA_ENGINE_DMA
             ? price_transfer_ns(m->run->target, is_far ? x->bytes : x->bytes * NISA_PARTITIONS, x->bytes)
         : engines ? price_instructions_ns(m->run->target, SIM_COST_VECTOR_COPY, 1, x->bytes / F32_BYTES)
                   : 0;
}

/* What filling and reading take in a round: one after the other with a single copy, if the same engine does both, or if more copies
 * are of no use. */
static const char *round_text(const struct allocation *m, const struct nisa_lifetime *x, const struct copies *c,
                              int copies) {
  const double fill = use_ns(m, x, c->writers), read = use_ns(m, x, c->readers);
  const bool is_beside = c->wanted > 1 && copies > 1 && (c->readers | c->writers) & ((c->readers | c->writers) - 1);
  return arena_printf(m->run->arena, "%s a round",
                      price_text(m->run->arena, !is_beside    ? fill + read
                                                : fill > read ? fill
                                                              : read));
}

static void remark_copies(struct allocation *m, const struct nisa_lifetime *x, const struct copies *c, int copies) {
  struct remark *r;
  const char *plural = copies == 1 ? "y" : "ies";
  if (!c->why)
    return;
  if (copies < c->wanted)
    r = pass_remark(m->run, x->alloc, RULE_COPIES,
                    "%d cop%s of %" PRId64 " bytes, not %d: there is no room for more in %s", copies, plural, x->bytes,
                    c->wanted, x->space == MEM_PSUM ? "PSUM" : "SBUF");
  else
    r = pass_remark(m->run, x->alloc, RULE_COPIES, "%d cop%s of %" PRId64 " bytes: %s", copies, plural, x->bytes,
                    c->why);
  remark_cost(r, "%s", round_text(m, x, c, copies));
  limit_copies(m, r, x, copies);
  if (copies < c->wanted)
    remark_reject_for(r, arena_printf(m->run->arena, "%d copies", c->wanted), NULL, round_text(m, x, c, c->wanted),
                      "no room is left beside what else is alive");
  else if (copies == 1)
    remark_reject_for(r, "2 copies", NULL, round_text(m, x, c, 2), c->why);
  else
    remark_reject_for(r, "1 copy", NULL, round_text(m, x, c, 1),
                      "what fills it would wait until what reads it has finished the last iteration");
}

static enum status place_on_chip(struct allocation *m, enum mem_space s, int64_t capacity) {
  struct place_item *items = arena_new_array(m->run->arena, struct place_item, (size_t)m->lifetimes.n);
  int *from = arena_new_array(m->run->arena, int, (size_t)m->lifetimes.n); /* items to lifetimes */
  int n = 0, failed;

  for (int k = 0; k < m->lifetimes.n; k++)
    if (m->lifetimes.v[k].space == s) {
      items[n] = item_of(m, &m->lifetimes.v[k], m->copies[k].wanted);
      from[n++] = k;
    }
  if (!place_items(m->run->arena, items, n, capacity, &failed))
    return refuse(m, s, &m->lifetimes.v[from[failed]], capacity);
  for (int k = 0; k < n; k++) {
    set_place(m, &m->lifetimes.v[from[k]], &items[k]);
    remark_copies(m, &m->lifetimes.v[from[k]], &m->copies[from[k]], items[k].copies);
  }
  return ST_OK;
}

/* ---- HBM --------------------------------------------------------------------------------------------------------- */

/* True if v, or a view of it, is used after the block in which it was allocated has ended. */
static bool leaves(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (ir_is(op, "func.return") || ir_is(op, "scf.yield") || ir_is(op, "scf.condition"))
      return true;
    MlirValue next = buffer_passed_on(op, mlirOpOperandGetOperandNumber(u));
    if (!mlirValueIsNull(next) && leaves(next))
      return true;
  }
  return false;
}

static enum status place_in_hbm(struct allocation *m) {
  for (int k = 0; k < m->lifetimes.n; k++) {
    const struct nisa_lifetime *x = &m->lifetimes.v[k];
    const int64_t align = alignment_of(x);
    struct nisa_place p = {.copies = m->copies[k].wanted};

    if (!mem_is_dram(x->space) || nisa_has_place_attr(x->alloc) || leaves(mlirOperationGetResult(x->alloc, 0)))
      continue;
    p.offset = (m->hbm_used + align - 1) / align * align;
    p.stride = (x->bytes + align - 1) / align * align;
    m->hbm_used = p.offset + p.copies * p.stride;
    if (m->hbm_used > BYTES_MAX)
      return pass_fail(m->run, x->alloc, "HBM is too small for what is stored between the steps of the kernel");
    pass_step(m->run, x->alloc, "place-buffer");
    nisa_set_place(x->alloc, &p);
    remark_copies(m, x, &m->copies[k], (int)p.copies);
  }
  return ST_OK;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Refuses sizes and alignments with which the sums of place.c could exceed 64 bits. */
static enum status check_sizes(struct pass_run *run, MlirOperation function) {
  const struct ir_ops allocs = ir_collect_named(run->arena, function, "nisa.alloc");
  for (int k = 0; k < allocs.n; k++) {
    const int64_t bytes = nisa_type_bytes(mlirValueGetType(mlirOperationGetResult(allocs.v[k], 0)));
    const int64_t alignment = ir_int_attr(allocs.v[k], "alignment", 1);
    if (bytes < 0)
      return pass_fail(run, allocs.v[k], "its size is not known");
    if (bytes > BYTES_MAX || alignment > ALIGNMENT_MAX)
      return pass_fail(run, allocs.v[k], "no memory holds %" PRId64 " bytes aligned to %" PRId64, bytes, alignment);
  }
  return ST_OK;
}

static void remark_use(struct allocation *m) {
  const int64_t banks = m->machine->psum_bytes / m->machine->psum_bank_bytes;
  struct remark *r = pass_remark(m->run, m->root, RULE_MEMORY_USE,
                                 "%suses %" PRId64 " of %" PRId64 " bytes of every SBUF partition, %" PRId64
                                 " of %" PRId64 " banks of PSUM, %" PRId64 " bytes of HBM between its steps",
                                 nisa_root_label(m->run->arena, m->root), m->sbuf_used, m->machine->sbuf_bytes,
                                 m->banks, banks, m->hbm_used);
  remark_cost(r, "%" PRId64 " bytes of SBUF", m->sbuf_used);
  remark_reject_for(r, "a place of its own for each buffer", NULL,
                    arena_printf(m->run->arena, "%" PRId64 " bytes of SBUF", m->sbuf_apart),
                    "buffers that are not alive together share a place");
  remark_limit(r, "SBUF", "bytes per partition", m->sbuf_used, m->machine->sbuf_bytes);
  remark_limit(r, "PSUM", "banks", m->banks, banks);
}

static enum status allocate(struct allocation *m) {
  struct arena *a = m->run->arena;
  m->lifetimes = nisa_find_lifetimes(a, m->root, m->machine);
  m->copies = arena_new_array(a, struct copies, (size_t)m->lifetimes.n);
  for (int k = 0; k < m->lifetimes.n; k++)
    m->copies[k] = nisa_address_of(m->lifetimes.v[k].alloc, &(struct nisa_place){0})
                       ? (struct copies){.wanted = 1}
                       : copies_of(m->run, &m->lifetimes.v[k]);
  enum status st = check_fixed(m);
  if (!st)
    st = place_on_chip(m, MEM_SBUF, m->machine->sbuf_bytes);
  if (!st)
    st = place_on_chip(m, MEM_PSUM, m->machine->psum_bytes);
  if (!st)
    st = place_in_hbm(m);
  if (!st && m->lifetimes.n)
    remark_use(m);
  return st;
}

/* All cores, and what stands outside of them, have one scratch space in HBM. */
static enum status allocate_function(struct pass_run *run, MlirOperation function, const struct nisa_machine *machine) {
  const struct ir_ops roots = nisa_roots(run->arena, function);
  struct allocation m = {.run = run, .machine = machine};
  enum status st = check_sizes(run, function);

  if (!st)
    sums_in_place(run, function, machine);
  for (int k = 0; !st && k < roots.n; k++) {
    m = (struct allocation){.run = run, .machine = machine, .root = roots.v[k], .hbm_used = m.hbm_used};
    st = allocate(&m);
  }
  if (!st && nisa_has_cores(function)) {
    m.root = function;
    m.lifetimes = nisa_find_lifetimes(run->arena, function, machine);
    m.copies = arena_new_array(run->arena, struct copies, (size_t)m.lifetimes.n);
    for (int k = 0; k < m.lifetimes.n; k++)
      m.copies[k].wanted = 1;
    st = place_in_hbm(&m);
  }
  return st;
}

static enum status run_pass(struct pass_run *run) {
  const struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  enum target target;
  enum status st = pass_nisa_target(run, &target);

  for (int k = 0; !st && k < functions.n; k++)
    st = allocate_function(run, functions.v[k], nisa_machine(target));
  return st;
}

const struct pass_def allocate_memory = {
    .name = "allocate-memory",
    .run = run_pass,
};
