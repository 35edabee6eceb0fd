/* attrs: the walks over the table of attributes (attrs.def), and the kinds of attributes.
 *
 * Private to hlo/.  A kind is one way to write a value: as a number, as a list of numbers, as a window.  It belongs to a
 * member of struct hlo_attrs, or of a part of it, and every function of a kind gets the address of that member.
 */
#ifndef HLO_ATTRS_H
#define HLO_ATTRS_H

#include "base/buf.h"
#include "hlo/hlo.h"
#include "hlo/proto.h"
#include "hlo/read_text.h"

/* Where HloInstructionProto keeps an attribute: a field of the instruction's message or of one of its parts. */
struct hlo_proto_place {
  Xla__HloInstructionProto *instr;
  void *field;
  size_t *n; /* the count of a repeated field; of others it means nothing */
};

/* The instruction i is the one that has the attribute.  Its opcode, operands and shape are known.  A function that is
 * NULL does nothing; each line says what that means. */
struct hlo_attr_kind {
  void (*start)(void *v);         /* the value of an instruction that does not write the attribute; NULL: zero */
  bool (*is_none)(const void *v); /* whether v is that value; needed by HLO_GIVEN */
  /* Copies what v points to into the arena.  NULL: v points to nothing, or to something that is never freed earlier. */
  void (*dup)(struct arena *a, const struct hlo_instr *i, void *v);
  bool (*equal)(const struct hlo_instr *i, const void *x, const void *y); /* NULL: compares the bytes */
  uint64_t (*hash)(const struct hlo_instr *i, const void *v, uint64_t h); /* NULL: too rare to be worth it */
  void (*put)(struct buf *out, const struct hlo_instr *i, const void *v); /* the value as text */
  bool (*read)(struct hlo_cursor *c, const struct hlo_instr *i, void *v); /* from the text; false: refused, see c */
  /* NULL: the proto has no field for it. */
  void (*to_proto)(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to);
  bool (*from_proto)(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from, void *v);
};

/* attr_plain.c */
extern const struct hlo_attr_kind hlo_kind_number, hlo_kind_count, hlo_kind_flag, hlo_kind_not_flag, hlo_kind_ints,
    hlo_kind_one_int, hlo_kind_text, hlo_kind_config, hlo_kind_direction, hlo_kind_total_order,
    hlo_kind_collectives_flag, hlo_kind_literal;
/* attr_words.c */
extern const struct hlo_attr_kind hlo_kind_small_number, hlo_kind_rng, hlo_kind_fft_type, hlo_kind_call_api,
    hlo_kind_transpose;
/* attr_dims.c */
extern const struct hlo_attr_kind hlo_kind_slices, hlo_kind_paddings, hlo_kind_window, hlo_kind_dim_labels;
/* attr_groups.c */
extern const struct hlo_attr_kind hlo_kind_groups, hlo_kind_pairs, hlo_kind_aliases;

/* ---- walks over all attributes of an instruction --------------------------------------------------------------- */

/* The attributes of draft's opcode with everything that they point to, except a literal's data, in m's arena. */
struct hlo_attrs hlo_attrs_dup(struct hlo_module *m, const struct hlo_instr *draft);
/* Whether x and y, of one opcode and one shape, have equal attributes. */
bool hlo_attrs_equal(const struct hlo_instr *x, const struct hlo_instr *y);
/* h mixed with the attributes that often tell instructions of one opcode apart. */
uint64_t hlo_attrs_hash(const struct hlo_instr *i, uint64_t h);

/* Appends ", name=value" for each attribute, called computations last. */
void hlo_attrs_print(struct buf *out, const struct hlo_instr *i);
/* Gives i the attributes that t has in the text, called computations aside.  False: refused, and the cursor says why. */
bool hlo_attrs_read(struct hlo_cursor *c, const struct hlo_text_instr *t, struct hlo_instr *i);
/* The names of the computations that t calls, in the order of hlo_instr.called, in the reader's scratch arena. */
bool hlo_attrs_read_called(struct hlo_cursor *c, const struct hlo_text_instr *t, int *n, struct hlo_span **out);

/* Fills p, a message that was just initialised.  It points into the module. */
void hlo_attrs_to_proto(struct arena *a, const struct hlo_instr *i, Xla__HloInstructionProto *p);
/* Gives i the attributes that p has, called computations aside.  False: refused through r. */
bool hlo_attrs_from_proto(struct hlo_proto_reader *r, Xla__HloInstructionProto *p, struct hlo_instr *i);

/* ---- for the kinds ---------------------------------------------------------------------------------------------- */

void hlo_put_string(struct buf *out, const char *s);         /* in quotes, escaped as absl's CEscape does */
void hlo_put_list(struct buf *out, const int64_t *v, int n); /* 1,2,3 */
void hlo_put_ints(struct buf *out, struct hlo_ints v);       /* {1,2,3} */

#endif
