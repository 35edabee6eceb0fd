/* proto: what the writer and the reader of HloModuleProto share: messages, shapes and literals.  Private to hlo/. */
#ifndef HLO_PROTO_H
#define HLO_PROTO_H

#include "base/diag.h"
#include "hlo.pb-c.h"
#include "hlo/hlo.h"

struct hlo_proto_reader {
  struct arena *a;   /* the module's */
  struct arena *tmp; /* freed when everything has been read */
  struct diags *ds;
  const char *where; /* name of the instruction that is being read, or NULL */
};

/* Adds an error that names the instruction at `where`; always false, so that a reader can return it. */
bool hlo_proto_refuse(struct hlo_proto_reader *r, enum diag_code code, const char *fmt, ...) PRINTF(3, 4);

/* Casts away const: protobuf-c's structs have no const members, but writing a message only reads through them. */
static inline void *hlo_proto_borrow(const void *p) {
  return (void *)(uintptr_t)p;
}

/* Sets out to an array of n pointers to messages of this type, each initialised by init. */
#define HLO_PROTO_MESSAGES(a, n, type, init, out) \
  do { \
    (out) = arena_new_array((a), type *, (size_t)(n)); \
    for (int msg_ = 0; msg_ < (n); msg_++) { \
      (out)[msg_] = arena_new((a), type); \
      init((out)[msg_]); \
    } \
  } while (0)

/* Messages that point into the module. */
Xla__ShapeProto *hlo_proto_put_shape(struct arena *a, const struct hlo_shape *s);
Xla__LiteralProto *hlo_proto_put_literal(struct arena *a, const struct hlo_literal *l);
/* Copy into the module's arena; p may be NULL, which is refused. */
bool hlo_proto_get_shape(struct hlo_proto_reader *r, const Xla__ShapeProto *p, struct hlo_shape *out);
bool hlo_proto_get_literal(struct hlo_proto_reader *r, const Xla__LiteralProto *p, const struct hlo_literal **out);

#endif
