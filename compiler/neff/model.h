/* model: what the members of a NEFF say of the program: tensors, variables, queues, engines and their transfers.
 *
 * Documented are def.json of each subgraph (sgNN), which has variables and DMA queues and names the files of the engines, and
 * the descriptors in the engines' JSON.  Instruction files (.bin) are not documented: only their sizes are known.  Members
 * and keys that are not documented are left alone.
 *
 * The model is checked: a descriptor moves bytes between variables that exist, stays inside of both, and writes no byte
 * twice.
 */
#ifndef NEFF_MODEL_H
#define NEFF_MODEL_H

#include <jansson.h>

#include "neff/neff.h"

enum neff_var_type {
#define NEFF_VAR(e, name, place) NEFF_VAR_##e,
#include "neff/var.def"
#undef NEFF_VAR
  NEFF_VAR_TYPES
};
const char *neff_var_type_name(enum neff_var_type t);
/* Where a variable of the type lies, for readers: "SBUF". */
const char *neff_var_type_place(enum neff_var_type t);

struct neff_var {
  const char *name;
  enum neff_var_type type;
  int64_t id, size;   /* bytes */
  const char *file;   /* of NEFF_VAR_FILE, otherwise NULL */
  const json_t *json; /* its object in def.json */
};

struct neff_queue {
  const char *name, *type, *owner; /* owner: the engine that triggers it; "" if def.json does not say */
  int64_t rings;
  const json_t *json;                    /* its object in def.json */
  int64_t transfers, descriptors, bytes; /* of all engines that trigger it */
};

/* What a queue does to the bytes that it moves. */
enum neff_move_op {
#define NEFF_MOVE_OP(e, name) NEFF_OP_##e,
#include "neff/move_op.def"
#undef NEFF_MOVE_OP
  NEFF_MOVE_OPS
};
const char *neff_move_op_name(enum neff_move_op op);

struct neff_engine {
  const char *key;          /* in def.json: "pe", "act", "dve", "pool", "sp" */
  const char *json, *instr; /* members; NULL if def.json names none */
  const json_t *object;     /* what `json` holds; NULL: there is none */
  int64_t instr_size;       /* bytes of `instr` */
  int64_t instructions;     /* entries of the list "instr" in `json`; -1: there is no list */
  int64_t transfers, descriptors, bytes;
  int64_t ops[NEFF_MOVE_OPS]; /* descriptors of each kind */
};
enum { NEFF_ENGINES = 5 };

struct neff_subgraph {
  const char *name; /* also its folder: "sg00" */
  struct {
    struct neff_var *v;
    int n, cap;
  } vars;
  struct {
    struct neff_queue *v;
    int n, cap;
  } queues;
  struct neff_engine engines[NEFF_ENGINES];
  int n_engines;
};

/* An input or output of the network, from neff.json. */
struct neff_tensor {
  const char *name, *dtype; /* dtype "": not known */
  bool is_output;
  int64_t size;        /* bytes, of the variable of that name; -1: there is none */
  const json_t *shape; /* a list of integers; NULL: not known */
};

struct neff_model {
  struct {
    struct neff_subgraph *v;
    int n, cap;
  } subgraphs;
  struct {
    struct neff_tensor *v;
    int n, cap;
  } tensors;
  bool is_simulation;       /* it has NEFF_FEATURE_SIMULATION */
  const json_t *info;       /* info.json; NULL: there is none */
  struct neff_json *parsed; /* what neff_model_clear frees */
};

/* Reads the model of x into out; texts are borrowed from a and from out->parsed, so call neff_model_clear in the end, also
 * after a failure.  ST_INPUT with the member and the reason. */
MUST_USE enum status neff_model_read(struct arena *a, const struct neff *x, struct neff_model *out, struct error *err);
void neff_model_clear(struct neff_model *m);

enum neff_object { NEFF_OF_VAR, NEFF_OF_QUEUE, NEFF_OF_ENGINE };

/* The documented fields of an object (of def.json, or an engine's own) that the model does not use: as a new object; and the
 * first whose value is of another kind than documented, or NULL. */
json_t *neff_model_fields(const json_t *o, enum neff_object of);
const char *neff_model_wrong_field(const json_t *o, enum neff_object of);

#endif
