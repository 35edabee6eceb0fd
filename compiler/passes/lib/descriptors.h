/* descriptors: how many descriptors a transfer has. */
#ifndef PASSES_LIB_DESCRIPTORS_H
#define PASSES_LIB_DESCRIPTORS_H

#include "nisa/nisa.h"

/* Of a copy between these. */
int64_t descriptors_of(const struct nisa_access *dst, const struct nisa_access *src);
/* Of a transpose to the chip, which reads rows of src. */
int64_t descriptors_of_transpose(const struct nisa_access *dst, const struct nisa_access *src);

#endif
