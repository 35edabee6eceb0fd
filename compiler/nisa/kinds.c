/* kinds: the tables of nisa/kinds.h. */
#include "nisa/kinds.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static const char *const space_names[NISA_SPACES] = {"", "hbm", "psum", "sbuf", "shared_hbm"};
static const char *const engine_names[NISA_ENGINE_COUNT] = {"", "tensor", "vector", "scalar", "gpsimd", "dma", "sync"};

const char *nisa_space_name(enum mem_space s) {
  assert((int)s < NISA_SPACES);
  return space_names[s];
}

const char *nisa_engine_name(enum nisa_engine e) {
  assert(e < NISA_ENGINE_COUNT);
  return engine_names[e];
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

#define NONE 0
#define TENSOR (1u << NISA_ENGINE_TENSOR)
#define VECTOR (1u << NISA_ENGINE_VECTOR)
#define SCALAR (1u << NISA_ENGINE_SCALAR)
#define GPSIMD (1u << NISA_ENGINE_GPSIMD)
#define DMA (1u << NISA_ENGINE_DMA)
#define SYNC (1u << NISA_ENGINE_SYNC)

#define R(n) {.name = n, .reads = true, .may_be_access = true}
#define W(n) {.name = n, .writes = true, .may_be_access = true}
#define U(n) {.name = n, .reads = true, .writes = true, .may_be_access = true}
#define X(n) {.name = n}
#define S(n) {.name = n, .reads = true, .may_be_scalar = true}
#define E(n) {.name = n, .reads = true, .may_be_access = true, .may_be_scalar = true}
/* OPT(E("x")) is OPT_E("x") */
#define OPT(x) OPT_##x
#define OPT_E(n) {.name = n, .reads = true, .may_be_access = true, .may_be_scalar = true, .is_optional = true}
#define OPT_S(n) {.name = n, .reads = true, .may_be_scalar = true, .is_optional = true}
#define OPT_W(n) {.name = n, .writes = true, .may_be_access = true, .is_optional = true}

/* ENGINES gives a list of bits; the first one is the default engine. */
#define ENGINES(...) {__VA_ARGS__}
#define OPERANDS(...) {__VA_ARGS__}
enum { ENGINES_MAX = 5 }; /* that one operation may run on */
static const struct {
  enum nisa_kind kind;
  const char *name, *full_name;
  size_t full_name_len;
  unsigned engines[ENGINES_MAX];
  struct nisa_operand_def operand[NISA_OPERANDS_MAX];
} table[NISA_KIND_COUNT] = {
#define NISA_OP(e, n, engine_list, operand_list) {e, n, "nisa." n, sizeof "nisa." n - 1, engine_list, operand_list},
#include "nisa/ops.def"
#undef NISA_OP
};

static struct nisa_op_def defs[NISA_KIND_COUNT];

static enum nisa_engine engine_of_bit(unsigned bit) {
  for (int e = 1; e < NISA_ENGINE_COUNT; e++)
    if (bit == 1u << e)
      return (enum nisa_engine)e;
  return NISA_ENGINE_NONE;
}

const struct nisa_op_def *nisa_op_def(enum nisa_kind k) {
  struct nisa_op_def *d = &defs[k];
  if (d->name)
    return d;
  assert(table[k].kind == k); /* ops.def also makes the enum, so the order is the same */
  for (int i = 0; i < NISA_OPERANDS_MAX && table[k].operand[i].name; i++) {
    d->operand[i] = table[k].operand[i];
    d->operand[i].name_len = strlen(d->operand[i].name);
    d->n_operands++;
  }
  for (int i = 0; i < ENGINES_MAX; i++)
    d->engines |= table[k].engines[i];
  d->usual_engine = engine_of_bit(table[k].engines[0]);
  d->kind = table[k].kind;
  d->full_name = table[k].full_name;
  d->name = table[k].name;
  return d;
}

/* A slot has one more than the number of a kind, 0 if it is free.  Passes ask for the kind of every operation that they
 * walk over, so that a search through all names would be a part of the time of a compile. */
enum { NAME_SLOTS = 256 };
static_assert(NISA_KIND_COUNT < NAME_SLOTS / 2, "a probe of the names must find a free slot soon");
static uint8_t name_slots[NAME_SLOTS];

/* Some characters tell most names apart, and are read faster than all. */
static unsigned slot_of(const char *name, size_t len) {
  const uint32_t first = (unsigned char)name[sizeof "nisa." - 1], middle = (unsigned char)name[len / 2],
                 last = (unsigned char)name[len - 1];
  const uint32_t h = ((first * 31 + middle) * 31 + last) * 31 + (uint32_t)len;
  return (h * 2654435761u >> 16) % NAME_SLOTS;
}

static void fill_name_slots(void) {
  for (int k = 0; k < NISA_KIND_COUNT; k++) {
    unsigned at = slot_of(table[k].full_name, strlen(table[k].full_name));
    while (name_slots[at])
      at = (at + 1) % NAME_SLOTS;
    name_slots[at] = (uint8_t)(k + 1);
  }
}

const struct nisa_op_def *nisa_op_named(const char *name, size_t len) {
  static bool is_filled;
  if (len < sizeof "nisa." || memcmp(name, "nisa.", sizeof "nisa." - 1) != 0)
    return NULL;
  if (!is_filled) {
    fill_name_slots();
    is_filled = true;
  }
  for (unsigned at = slot_of(name, len); name_slots[at]; at = (at + 1) % NAME_SLOTS) {
    const enum nisa_kind k = (enum nisa_kind)(name_slots[at] - 1);
    if (table[k].full_name_len == len && !memcmp(table[k].full_name, name, len))
      return nisa_op_def(k);
  }
  return NULL;
}

/* ---- the machine ------------------------------------------------------------------------------------------------ */

#define BIT(s) (1u << (s))

/* From the architecture guides of trn1 and trn2: which memories each engine reads and writes. */
unsigned nisa_reach(enum nisa_engine e, bool writes) {
  const unsigned chip = BIT(MEM_SBUF) | BIT(MEM_PSUM), hbm = BIT(MEM_HBM) | BIT(MEM_SHARED_HBM);
  switch (e) {
  case NISA_ENGINE_TENSOR:
    return writes ? BIT(MEM_PSUM) : BIT(MEM_SBUF);
  case NISA_ENGINE_VECTOR:
  case NISA_ENGINE_SCALAR:
    return chip;
  case NISA_ENGINE_GPSIMD:
    return BIT(MEM_SBUF);
  case NISA_ENGINE_DMA:
    return hbm | BIT(MEM_SBUF);
  case NISA_ENGINE_SYNC:
    return BIT(MEM_SBUF);
  default:
    return 0;
  }
}

const struct nisa_machine *nisa_machine(enum target t) {
  /* A result of v4 may use all banks: 4096 f32 or 8192 bf16. */
  static const struct nisa_machine machines[] = {
      [TARGET_TRN1] = {NISA_PARTITIONS, 180224, 16384, 2048, 128, 128, 512, true, false, 4},
      [TARGET_TRN2] = {NISA_PARTITIONS, 212984, 16384, 2048, 128, 128, 512, true, false, 4},
      [TARGET_TRN3] = {NISA_PARTITIONS, 245752, 16384, 2048, 128, 128, 8192, false, true, 4},
  };
  assert(t < sizeof machines / sizeof *machines && machines[t].partitions);
  return &machines[t];
}
