/* names: what an instruction, computation or module may be called in HLO text. */
#ifndef HLO_NAMES_H
#define HLO_NAMES_H

#include "base/arena.h"

struct hlo_names;

struct hlo_names *hlo_names_new(struct arena *a);
/* Takes `wanted`, or "wanted.1", "wanted.2", … if it is taken; the result lives in a. */
const char *hlo_names_take(struct arena *a, struct hlo_names *s, const char *wanted);
/* Takes "op<id>", or "op<id>.1" and so on if it is taken.  Each call has a larger id than the one before. */
const char *hlo_names_take_automatic(struct arena *a, struct hlo_names *s, int id);

/* Names that are taken in `older` are taken in s, too: an older form of the module had them. */
void hlo_names_inherit(struct arena *a, struct hlo_names *s, const struct hlo_names *older);

/* `name` in XLA's alphabet ([A-Za-z_][A-Za-z0-9_.-]*); a word that XLA's lexer reads as a keyword or a type gets a
 * '_' as a suffix.  Returns name itself if nothing has to change. */
const char *hlo_sanitize_name(struct arena *a, const char *name);

#endif
