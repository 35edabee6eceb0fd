/* addresses: tensors on chip whose place the kernel chooses.
 *
 * Such a tensor keeps its place to the end.  Engines begin at certain partitions only, so that the partition at which a
 * tensor begins depends on how many it has.  A bank of PSUM holds what a product writes.
 */
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
  if (t->space == MEM_PSUM && address % bank && address % bank + bytes > bank)
    return nki_refuse(err, DG_NKI_ADDRESS, "begin at a multiple of the size of a bank",
                      "a tensor of %lld bytes at byte %lld of psum crosses the end of its bank of %lld bytes",
                      (long long)bytes, (long long)address, (long long)bank);
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

static void find_uses(const struct nki_program *p, struct use *uses) {
  for (int i = 0; i < p->tensors.n; i++)
    uses[i].first = -1;
  for (int i = 0; i < p->items.n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (c->value[k].kind == NKI_VIEW) {
        struct use *u = &uses[c->value[k].view->tensor->number];
        u->first = u->first < 0 ? i : u->first;
        u->last = i;
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

/* The tensors at addresses that are in use, as far as the walk over the record has come. */
struct active {
  const struct nki_tensor **v;
  int n;
};

/* t is used first at this item. */
static bool begin(struct active *now, const struct use *uses, const struct nki_tensor *t, int item,
                  struct nki_error *err) {
  int n = 0;
  for (int i = 0; i < now->n; i++)
    if (uses[now->v[i]->number].last >= item)
      now->v[n++] = now->v[i];
  now->n = n;
  for (int i = 0; i < n; i++)
    if (share_bytes(now->v[i], t))
      return refuse(now->v[i], t, err);
  now->v[now->n++] = t;
  return true;
}

bool nki_check_addresses(const struct nki_program *p, struct nki_error *err, const struct nki_tensor **at) {
  struct use *uses = arena_new_array(err->arena, struct use, (size_t)p->tensors.n);
  struct active now = {arena_new_array(err->arena, const struct nki_tensor *, (size_t)p->tensors.n), 0};
  find_uses(p, uses);
  for (int i = 0; i < p->items.n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++) {
      *at = c->value[k].kind == NKI_VIEW ? c->value[k].view->tensor : NULL;
      if (!*at || !(*at)->has_address || uses[(*at)->number].first != i)
        continue;
      uses[(*at)->number].first = -1; /* it may be several operands of the call */
      if (!begin(&now, uses, *at, i, err))
        return false;
    }
  }
  return true;
}
