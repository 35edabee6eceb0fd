/* addresses: tensors on chip whose place the kernel chooses.
 *
 * Such a tensor keeps its place to the end.  Engines begin at certain partitions only, so that the partition at which a
 * tensor begins depends on how many it has.  A bank of PSUM holds what a product writes.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "nki/nki.h"

static int64_t bytes_of(const struct nki_tensor *t) {
  return nki_tensor_extent(t) * (int64_t)dtype_size(t->dtype);
}

static bool check_partition(const struct nki_tensor *t, int64_t partition, struct nki_error *err) {
  const int64_t n = t->dims[0], unit = n > 64 ? 128 : n > 32 ? 64 : 32;
  if (t->space == MEM_PSUM && partition)
    return nki_refuse(err, DG_NKI_ADDRESS, "use another bank", "a tensor in psum begins at partition 0, not %lld",
                      (long long)partition);
  return (partition >= 0 && partition % unit == 0 && partition + n <= NISA_PARTITIONS) ||
         nki_refuse(err, DG_NKI_ADDRESS, NULL, "a tensor of %lld partitions begins at partition %s, not %lld",
                    (long long)n,
                    n > 64   ? "0"
                    : n > 32 ? "0 or 64"
                             : "0, 32, 64 or 96",
                    (long long)partition);
}

bool nki_tensor_place(struct nki_program *p, struct nki_tensor *t, int64_t partition, int64_t address,
                      struct nki_error *err) {
  const struct nisa_machine *m = nisa_machine(p->target);
  const int64_t bytes = bytes_of(t), unit = (int64_t)dtype_size(t->dtype), bank = m->psum_bank_bytes;
  const int64_t room = t->space == MEM_SBUF ? m->sbuf_bytes : m->psum_bytes;
  if (!mem_is_on_chip(t->space))
    return nki_refuse(err, DG_NKI_ADDRESS, "leave the address out", "a tensor in %s has no address",
                      nisa_space_name(t->space));
  if (!check_partition(t, partition, err))
    return false;
  if (address < 0 || address > room - bytes)
    return nki_refuse(err, DG_NKI_ADDRESS, "use a lower address or a smaller tensor",
                      "a tensor of %lld bytes in each partition of %s cannot begin at byte %lld of %lld",
                      (long long)bytes, nisa_space_name(t->space), (long long)address, (long long)room);
  if (address % unit)
    return nki_refuse(err, DG_NKI_ADDRESS, NULL, "the address %lld is not a multiple of the size of an element, %lld",
                      (long long)address, (long long)unit);
  if (t->space == MEM_PSUM && address % bank)
    return nki_refuse(err, DG_NKI_MEMORY_FULL,
                      "write a multiple of nl.tile_size.psum_fmax * 4, as many bytes as a bank has",
                      "the tensor begins at byte %lld of PSUM, but tensors there begin with a bank, every %lld bytes",
                      (long long)address, (long long)bank);
  t->has_address = true;
  t->partition = partition;
  t->address = address;
  return true;
}

/* ---- what is in use at the same time ----------------------------------------------------------------------------- */

/* The items of the record that use a tensor first and last; first -1: none does. */
struct use {
  int first, last;
};

static bool share_bytes(const struct nki_tensor *x, const struct nki_tensor *y) {
  return x->space == y->space && x->core == y->core && x->address < y->address + bytes_of(y) &&
         y->address < x->address + bytes_of(x) && x->partition < y->partition + y->dims[0] &&
         y->partition < x->partition + x->dims[0];
}

struct finder {
  struct use *uses;
  int *made; /* of each tensor: its item */
  int open[NKI_REGIONS_MAX], ends[NKI_REGIONS_MAX],
      n_open; /* loops and branches on the device around the present item */
  int item;
};

/* What was made before a loop on the device, and is used in it, is in use in all of its rounds. */
static void note_use(void *user, struct nki_tensor *t, bool is_written) {
  struct finder *f = user;
  struct use *u = &f->uses[t->number];
  int first = f->item, last = f->item;
  (void)is_written;
  for (int k = 0; k < f->n_open && first == f->item; k++)
    if (f->made[t->number] < f->open[k]) {
      first = f->open[k];
      last = f->ends[k];
    }
  u->first = u->first < 0 ? first : u->first;
  u->last = last > u->last ? last : u->last;
}

static void find_uses(const struct nki_program *p, struct arena *a, struct use *uses) {
  struct finder f = {.uses = uses, .made = arena_new_array(a, int, (size_t)p->tensors.n)};
  int middle;
  for (int i = 0; i < p->tensors.n; i++)
    uses[i] = (struct use){-1, -1};
  for (f.item = 0; f.item < p->items.n; f.item++) {
    const struct nki_item *x = &p->items.v[f.item];
    while (f.n_open && f.ends[f.n_open - 1] < f.item)
      f.n_open--;
    if (x->tensor)
      f.made[x->tensor->number] = f.item;
    if (!x->call)
      continue;
    nki_each_tensor(x->call, note_use, &f);
    if (nki_region_of(x->call) == NKI_BEGINS) {
      f.open[f.n_open] = f.item;
      nki_region_find(&p->items, f.item, &middle, &f.ends[f.n_open++]);
    }
  }
}

static bool refuse(const struct nki_tensor *x, const struct nki_tensor *y, struct nki_error *err) {
  const struct src_loc *at = x->locs.n ? x->locs.v[0] : NULL;
  const char *place = at ? arena_printf(err->arena, " of line %d", at->range.line) : "";
  return nki_refuse(
      err, DG_NKI_ADDRESS, "use another address, or use one after the last use of the other",
      "%s has bytes of %s at %lld … %lld, and %s%s, which is in use at the same time, has bytes %lld … %lld", y->name,
      nisa_space_name(y->space), (long long)y->address, (long long)(y->address + bytes_of(y) - 1), x->name, place,
      (long long)x->address, (long long)(x->address + bytes_of(x) - 1));
}

/* A tensor at an address, by its first use. */
struct placed {
  const struct nki_tensor *tensor;
  struct use use;
};

static int by_first(const void *x, const void *y) {
  const struct placed *a = x, *b = y;
  return a->use.first != b->use.first
             ? (a->use.first > b->use.first) - (a->use.first < b->use.first)
             : (a->tensor->number > b->tensor->number) - (a->tensor->number < b->tensor->number);
}

bool nki_check_addresses(const struct nki_program *p, struct nki_error *err, const struct nki_tensor **at) {
  struct use *uses = arena_new_array(err->arena, struct use, (size_t)p->tensors.n);
  struct placed *v = arena_new_array(err->arena, struct placed, (size_t)p->tensors.n);
  int n = 0, first = 0; /* v[first … i - 1]: those that may still be in use, and others */
  find_uses(p, err->arena, uses);
  for (int k = 0; k < p->tensors.n; k++)
    if (p->tensors.v[k]->has_address && uses[k].first >= 0)
      v[n++] = (struct placed){p->tensors.v[k], uses[k]};
  if (n)
    qsort(v, (size_t)n, sizeof *v, by_first);
  for (int i = 0; i < n; i++) {
    int kept = i; /* moves those in use to the end of the part */
    for (int k = i - 1; k >= first; k--)
      if (v[k].use.last >= v[i].use.first)
        v[--kept] = v[k];
    first = kept;
    for (int k = first; k < i; k++)
      if (share_bytes(v[k].tensor, v[i].tensor)) {
        *at = v[i].tensor;
        return refuse(v[k].tensor, v[i].tensor, err);
      }
  }
  return true;
}
