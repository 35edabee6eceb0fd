/* inspect: the contents of a NEFF, as JSON for the API and for `nkx neff info --json`, and the differences between two. */
#ifndef NEFF_INSPECT_H
#define NEFF_INSPECT_H

#include "neff/model.h"

/* The sentence that says whether a device can run the file. */
const char *neff_what(const struct neff_model *m);

/* Returns an object, which the caller owns; NULL without memory:
 *
 *     {"kind": "vendor" | "simulation", "what": sentence,
 *      "header": {"package_version", "header_size", "data_size", "format": "1.0", "build", "name", "cores",
 *                 "requested_cores", "lnc", "features": [bits], "hash", "hash_matches": true | false | null, "uuid"},
 *      "compressed": bool, "members": [{"name", "size"}], "info": {…} | null,
 *      "tensors": [{"name", "usage": "input" | "output", "dtype", "shape" | null, "size" | null}],
 *      "subgraphs": [{"name",
 *        "variables": [{"name", "type", "place", "id", "size", "file"?}],
 *        "queues": [{"name", "type", "owner", "rings", "transfers", "descriptors", "bytes"}],
 *        "engines": [{"key", "json", "instr", "instr_size", "instructions" | null, "transfers", "descriptors", "bytes"}]}]}
 */
json_t *neff_inspect(const struct neff *x, const struct neff_model *m);

/* Returns a list, which the caller owns; NULL without memory.  An entry is {"what": "header.name" or a member's name, "change":
 * "added" | "removed" | "changed", "before", "after"}; before and after are a header's values, or {"size", "sha256"} of a
 * member.  The hash, sizes and uuid of the header are left out: they follow from the rest. */
json_t *neff_diff(const struct neff *before, const struct neff *after);

#endif
