/* view: what view.c and view_shape.c share. */
#ifndef NKI_VIEW_H
#define NKI_VIEW_H

#include "nki/nki.h"

/* The number of leading dimensions that count partitions. */
static inline int nki_n_partition_dims(const struct nki_view *v) {
  return nki_is_on_chip(v) ? 1 : 0;
}
static inline bool nki_is_partition(const struct nki_view *v, int d) {
  return d < nki_n_partition_dims(v);
}
void nki_remove_dim(struct nki_view *v, int d);
/* False with *err if v has all dimensions that a view can have. */
bool nki_insert_dim(struct nki_view *v, int d, struct nki_dim dim, struct nki_error *err);
/* Checks a dimension's number; negative numbers count from the end. */
bool nki_find_dim(const struct nki_view *v, int64_t dim, int *out, struct nki_error *err);
/* Refuses a method that would change the dimension that counts partitions.  Returns false. */
bool nki_refuse_partition(const char *method, struct nki_error *err);

#endif
