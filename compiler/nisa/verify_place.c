/* verify_place: checks where allocations lie (nisa.h, "Places"): each place is inside its memory and aligned, banks of
 * PSUM are used as the hardware has them, and no two allocations that are alive at once share a byte or, if matmuls
 * accumulate in both, a bank.
 *
 * All copies of an allocation, and what is between them, belong to it as long as one of them is alive. */
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/lifetime.h"
#include "nisa/verify.h"

enum { COPIES_MAX = 1 << 20 };

/* A place as a box: partitions, and bytes in each of them.  PSUM is counted through its banks; HBM has one partition. */
struct box {
  const struct nisa_lifetime *of;
  int64_t partition, partitions;
  int64_t from, to;
  bool accumulates;
};

static int64_t alignment_of(MlirOperation alloc) {
  MlirType element = mlirShapedTypeGetElementType(mlirValueGetType(mlirOperationGetResult(alloc, 0)));
  const int64_t given = ir_int_attr(alloc, "alignment", 1), own = nisa_element_bytes(element);
  return given > own ? given : own;
}

static bool accumulates(MlirOperation alloc) {
  MlirValue v = mlirOperationGetResult(alloc, 0);
  for (MlirOpOperand use = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
    if (mlirOpOperandGetOperandNumber(use) == 0 && ir_is(mlirOpOperandGetOwner(use), "nisa.matmul"))
      return true;
  return false;
}

/* The bytes from the first copy to the end of the last; false if they exceed 64 bits. */
static bool span_of(const struct nisa_lifetime *x, const struct nisa_place *p, int64_t *out) {
  int64_t moved;
  return !__builtin_mul_overflow(p->copies - 1, p->stride, &moved) && !__builtin_add_overflow(moved, x->exact, out);
}

static bool check_copies(struct nisa_check *c, const struct nisa_lifetime *x, const struct nisa_place *p) {
  const bool has_copies = !mlirAttributeIsNull(ir_attr(x->alloc, "copies")),
             has_stride = !mlirAttributeIsNull(ir_attr(x->alloc, "stride"));

  if (has_copies != has_stride)
    nisa_complain(c, x->alloc, "it has only one of copies and stride");
  else if (p->copies < 1 || p->copies > COPIES_MAX)
    nisa_complain(c, x->alloc, "it has %lld copies; between 1 and %d are possible", (long long)p->copies, COPIES_MAX);
  else if (p->copies > 1 && p->stride < x->exact)
    nisa_complain(c, x->alloc, "its copies overlap: each takes %lld bytes, and the stride is %lld", (long long)x->exact,
                  (long long)p->stride);
  else if (p->copies > 1 && p->stride % alignment_of(x->alloc))
    nisa_complain(c, x->alloc, "its stride of %lld is not a multiple of its alignment", (long long)p->stride);
  else
    return true;
  return false;
}

static bool check_bank(struct nisa_check *c, const struct nisa_lifetime *x, const struct nisa_place *p) {
  const int64_t bank = c->machine->psum_bank_bytes;

  if (p->bank < 0 || p->bank >= c->machine->psum_bytes / bank)
    nisa_complain(c, x->alloc, "there is no bank %lld", (long long)p->bank);
  else if (p->offset < 0 || p->offset >= bank || (p->offset && p->offset + x->exact > bank))
    nisa_complain(c, x->alloc, "it crosses the end of its bank of %lld bytes", (long long)bank);
  else if (p->copies > 1 && p->stride % bank)
    nisa_complain(c, x->alloc, "its stride of %lld is not a number of banks", (long long)p->stride);
  else
    return true;
  return false;
}

static bool check_partition(struct nisa_check *c, const struct nisa_lifetime *x, const struct nisa_place *p,
                            int64_t partitions) {
  if (p->partition >= 0 && p->partition <= c->machine->partitions - partitions && p->partition % 32 == 0)
    return true;
  nisa_complain(c, x->alloc, "its %lld partitions cannot begin at partition %lld", (long long)partitions,
                (long long)p->partition);
  return false;
}

/* An allocation that asks for a place has it. */
static bool check_address(struct nisa_check *c, MlirOperation alloc, const struct nisa_place *p) {
  struct nisa_place asked;
  if (!nisa_address_of(alloc, &asked) ||
      (asked.partition == p->partition && asked.bank == p->bank && asked.offset == p->offset && p->copies == 1))
    return true;
  nisa_complain(c, alloc, "its place is not the address that it asks for");
  return false;
}

/* Checks one place and makes its box. */
static bool check_place(struct nisa_check *c, const struct nisa_lifetime *x, struct box *b) {
  const struct nisa_machine *m = c->machine;
  MlirType t = mlirValueGetType(mlirOperationGetResult(x->alloc, 0));
  struct nisa_place p;
  int64_t span;

  *b = (struct box){.of = x, .partitions = 1};
  if (!nisa_place_of(x->alloc, &p)) {
    nisa_complain(c, x->alloc, "its place is not complete: it needs i64 attributes %s",
                  x->space == MEM_SBUF   ? "partition and offset"
                  : x->space == MEM_PSUM ? "bank and offset"
                                         : "offset");
    return false;
  }
  if (mem_is_on_chip(x->space))
    b->partitions = mlirShapedTypeGetDimSize(t, 0);
  b->partition = p.partition;
  b->accumulates = x->space == MEM_PSUM && accumulates(x->alloc);
  if (!check_address(c, x->alloc, &p) || !check_copies(c, x, &p) || (x->space == MEM_PSUM && !check_bank(c, x, &p)) ||
      (x->space == MEM_SBUF && !check_partition(c, x, &p, b->partitions)))
    return false;
  const int64_t size = x->space == MEM_SBUF   ? m->sbuf_bytes
                       : x->space == MEM_PSUM ? m->psum_bytes - p.bank * m->psum_bank_bytes
                                              : INT64_MAX;
  if (!span_of(x, &p, &span) || p.offset < 0 || p.offset > size - span) {
    nisa_complain(c, x->alloc, "from offset %lld on, its %lld copies of %lld bytes do not fit into the memory",
                  (long long)p.offset, (long long)p.copies, (long long)x->exact);
    return false;
  }
  if (p.offset % alignment_of(x->alloc)) {
    nisa_complain(c, x->alloc, "its offset of %lld is not a multiple of its alignment", (long long)p.offset);
    return false;
  }
  b->from = p.bank * m->psum_bank_bytes + p.offset;
  b->to = b->from + span;
  return true;
}

/* Extends the bytes to whole banks. */
static struct box in_banks(const struct nisa_machine *m, struct box b) {
  b.from -= b.from % m->psum_bank_bytes;
  b.to += (m->psum_bank_bytes - b.to % m->psum_bank_bytes) % m->psum_bank_bytes;
  return b;
}

static bool overlap(const struct box *x, const struct box *y) {
  return x->from < y->to && y->from < x->to && x->partition < y->partition + y->partitions &&
         y->partition < x->partition + x->partitions;
}

static bool share_memory(const struct box *x, const struct box *y) {
  return mem_is_dram(x->of->space) ? mem_is_dram(y->of->space) : x->of->space == y->of->space;
}

static void check_pair(struct nisa_check *c, const struct box *x, const struct box *y) {
  const struct nisa_lifetimes both = {.v = (struct nisa_lifetime[]){*x->of}, .n = 1};
  if (!share_memory(x, y) || !nisa_lifetimes_meet(x->of, y->of))
    return;
  if (overlap(x, y)) {
    nisa_complain(c, y->of->alloc, "it shares memory with an allocation that is alive: %s",
                  nisa_describe_live(c->arena, &both, x->of->space, x->of->from));
  } else if (x->accumulates && y->accumulates) {
    const struct box bx = in_banks(c->machine, *x), by = in_banks(c->machine, *y);
    if (overlap(&bx, &by))
      nisa_complain(c, y->of->alloc, "matmuls accumulate in it and in another allocation of its bank: %s",
                    nisa_describe_live(c->arena, &both, x->of->space, x->of->from));
  }
}

void nisa_check_places(struct nisa_check *c, const struct nisa_lifetimes *l, bool in_program_order) {
  struct box *boxes = arena_new_array(c->arena, struct box, (size_t)l->n);
  bool is_allocated = false;
  int n = 0;

  for (int k = 0; k < l->n; k++)
    is_allocated |= !mlirAttributeIsNull(ir_attr(l->v[k].alloc, "offset"));
  for (int k = 0; is_allocated && k < l->n; k++)
    if (mem_is_on_chip(l->v[k].space) || nisa_has_place_attr(l->v[k].alloc))
      n += check_place(c, &l->v[k], &boxes[n]);
  for (int k = 0; k < n && in_program_order; k++)
    for (int i = 0; i < k; i++)
      check_pair(c, &boxes[i], &boxes[k]);
}
