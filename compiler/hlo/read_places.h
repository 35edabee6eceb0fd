/* read_places: the places that HLO text gives its instructions. */
#ifndef HLO_READ_PLACES_H
#define HLO_READ_PLACES_H

#include "base/src.h"
#include "hlo/read_text.h"

struct hlo_text_strings {
  const char **v;
  int n, cap;
};
struct hlo_text_records { /* of named numbers, -1 where the text has none */
  struct hlo_text_record {
    int64_t v[6];
  } *v;
  int n, cap;
};
/* The sections before the computations: entry k has number k + 1 in the text. */
struct hlo_text_places {
  struct hlo_text_strings files, functions;
  struct hlo_text_records locations, frames;
  const struct src_loc **frame_locs; /* by place in frames */
};

/* Reads a section if one begins here; *found: it does.  False with a diagnostic of the cursor. */
bool hlo_text_section(struct hlo_cursor *c, struct hlo_text_places *x, bool *found);
/* Makes places of the frames, after the last section. */
void hlo_text_link_frames(struct hlo_cursor *c, struct hlo_text_places *x);
/* Reads metadata={op_type="…" op_name="…" source_file="…" source_line=3 … stack_frame_id=2} from its braces on.  *out is the
 * place that it names, or NULL.  False with a diagnostic. */
bool hlo_text_metadata(struct hlo_cursor *outer, const struct hlo_text_places *x, struct hlo_span value,
                       const struct src_loc **out);

#endif
