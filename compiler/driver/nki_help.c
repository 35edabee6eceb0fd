/* nki_help: see nki_help.h. */
#include "driver/nki_help.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "driver/cards.h"
#include "nki/nki.h"
#include "nki/refused.h"

enum { KINDS_MAX = 4, LIMITS_MAX = 4, FIELD_MAX = 200 };

#define KINDS(...) \
  sizeof((int[]){__VA_ARGS__}) / sizeof(int), { \
    __VA_ARGS__ \
  }
#define NO_KINDS 0, {0}
#define LIMITS(...) {__VA_ARGS__}
#define NO_LIMITS {NULL}
static const struct {
  size_t n_kinds;
  int kind[KINDS_MAX];           /* enum nisa_kind */
  const char *limit[LIMITS_MAX]; /* NULL after the last */
} instructions[NKI_CALLS] = {
#define NKI_INSTRUCTION(e, ...) [NKI_##e] = {__VA_ARGS__},
#include "nki/instructions.def"
#undef NKI_INSTRUCTION
};
#undef KINDS
#undef NO_KINDS
#undef LIMITS
#undef NO_LIMITS

enum kind { FUNCTION, OPERATOR, NAME, METHOD };
static const struct entry {
  enum kind kind;
  const char *module, *name, *parameters, *calls, *what, *example;
} language[] = {
#define NKI_FUNCTION(name, parameters, calls, what, example) {FUNCTION, "nl", name, parameters, calls, what, example},
#define NKI_OPERATOR(name, what) {OPERATOR, "nl", name, NULL, NULL, what, NULL},
#define NKI_NAME(name, what) {NAME, "nl", name, NULL, NULL, what, NULL},
#define NKI_ISA_FUNCTION(name, parameters, calls, what, example) \
  {FUNCTION, "nisa", name, parameters, calls, what, example},
#define NKI_ISA_NAME(name, what) {NAME, "nisa", name, NULL, NULL, what, NULL},
#define NKI_METHOD(name, parameters, what, example) {METHOD, "tensor", name, parameters, NULL, what, example},
#define NKI_MEMBER(name, what) {NAME, "tensor", name, NULL, NULL, what, NULL},
#include "nki/language.def"
#undef NKI_FUNCTION
#undef NKI_OPERATOR
#undef NKI_NAME
#undef NKI_ISA_NAME
#undef NKI_ISA_FUNCTION
#undef NKI_METHOD
#undef NKI_MEMBER
};

static const struct beta1 {
  const char *name, *parameters;
} beta1[] = {
#define NKI_BETA1(name, parameters) {name, parameters},
#define NKI_BETA1_ONLY(name, parameters, what, example)
#include "nki/beta1.def"
#undef NKI_BETA1
#undef NKI_BETA1_ONLY
};

static const struct entry beta1_only[] = {
#define NKI_BETA1(name, parameters)
#define NKI_BETA1_ONLY(name, parameters, what, example) {FUNCTION, "nl", name, parameters, NULL, what, example},
#include "nki/beta1.def"
#undef NKI_BETA1
#undef NKI_BETA1_ONLY
};

/* ---- parts of an entry ------------------------------------------------------------------------------------------- */

static void open_list(struct buf *b, const char *key) {
  json_put_key(b, key);
  buf_putc(b, '[');
}

static void open_entry(struct buf *b, const char *module, const char *name, const char *kind, const char *what) {
  char full[FIELD_MAX];
  snprintf(full, sizeof full, "%s.%s", module, name);
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", full);
  json_put_field_str(b, "kind", kind);
  json_put_field_str(b, "what", what);
}

/* The words of a text as strings of a list, with a prefix. */
static void put_words(struct buf *b, const char *key, const char *prefix, const char *words) {
  open_list(b, key);
  for (size_t n; *words; words += n + strspn(words + n, " ")) {
    char word[FIELD_MAX];
    n = strcspn(words, " ");
    snprintf(word, sizeof word, "%s%.*s", prefix, (int)n, words);
    json_put_comma(b);
    json_put_cstr(b, word);
  }
  buf_putc(b, ']');
}

/* A list of parameters as the signature writes them, without their parentheses: no comma is within one. */
static void put_signature(struct buf *b, const char *key, const char *parameters) {
  open_list(b, key);
  for (size_t n; *parameters; parameters += n + strspn(parameters + n, ", ")) {
    n = strcspn(parameters, ",");
    json_put_comma(b);
    json_put_string(b, parameters, n);
  }
  buf_putc(b, ']');
}

enum generation { BETA1 = 1, GA = 2 };

static void put_generations(struct buf *b, int generations) {
  open_list(b, "generations");
  if (generations & GA)
    json_put_cstr(b, "nki");
  if (generations & BETA1) {
    json_put_comma(b);
    json_put_cstr(b, "neuronxcc.nki");
  }
  buf_putc(b, ']');
}

/* The generations of a call, and its parameters in beta 1; usual: what they are without a line in beta1.def, or NULL. */
static void put_beta1(struct buf *b, const char *module, const char *name, const char *usual) {
  char full[FIELD_MAX];
  snprintf(full, sizeof full, "%s.%s", module, name);
  for (size_t i = 0; i < sizeof beta1 / sizeof *beta1; i++)
    if (!strcmp(beta1[i].name, full))
      usual = beta1[i].parameters;
  put_generations(b, usual ? GA | BETA1 : GA);
  if (usual)
    put_signature(b, "beta1", usual);
}

static void put_engines(struct buf *b, const struct nki_call_def *def) {
  open_list(b, "engines");
  for (int i = 0; def && i < NKI_ENGINES_MAX && def->engines[i]; i++) {
    json_put_comma(b);
    json_put_cstr(b, nisa_engine_name(def->engines[i]));
  }
  buf_putc(b, ']');
}

/* ---- nki.isa ----------------------------------------------------------------------------------------------------- */

static const char *use_of(const struct nki_param_def *p) {
  static const char *const uses[] = {
      [NKI_PARAM_DST] = "written",
      [NKI_PARAM_SRC] = "read",
      [NKI_PARAM_NUMBER] = "a number, or a tensor with one element in each partition",
      [NKI_PARAM_CONST] = "a number",
      [NKI_PARAM_OP] = "an operator: nl.add, …",
      [NKI_PARAM_ALU] = "an operator: nl.add, …, or nl.abs, square, relu, rsqrt, reciprocal",
      [NKI_PARAM_FUNC] = "a function: nl.exp, …",
      [NKI_PARAM_FLAG] = "True or False",
      [NKI_PARAM_INTS] = "integers",
      [NKI_PARAM_ENGINE] = "the engine: nisa.engine.vector, …",
      [NKI_PARAM_WORD] = "a choice",
  };
  if (!p->memories && p->kind == NKI_PARAM_DST)
    return "a register, written";
  if (!p->memories && p->kind == NKI_PARAM_SRC)
    return "a register";
  if (!p->memories && p->kind == NKI_PARAM_NUMBER)
    return "a register or a number";
  return p->kind < (int)(sizeof uses / sizeof *uses) && uses[p->kind] ? uses[p->kind] : "a value";
}

static void put_parameters(struct buf *b, const struct nki_call_def *def) {
  const int n = nki_n_params(def);
  open_list(b, "parameters");
  for (int i = 0; i < n; i++) {
    char text[FIELD_MAX];
    snprintf(text, sizeof text, "%s%s", def->param[i].name, def->param[i].is_optional ? "=None" : "");
    json_put_comma(b);
    json_put_cstr(b, text);
  }
  json_put_comma(b);
  buf_puts(b, "\"name=None\"]");
  open_list(b, "operands");
  for (int i = 0; i < n; i++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", def->param[i].name);
    json_put_field_str(b, "use", use_of(&def->param[i]));
    cards_put_memories(b, "memories", def->param[i].memories);
    json_put_field_bool(b, "optional", def->param[i].is_optional);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

/* An argument for the example. */
static const char *argument(const struct nki_param_def *p) {
  switch (p->kind) {
  case NKI_PARAM_DST:
  case NKI_PARAM_SRC:
    return p->name;
  case NKI_PARAM_OP:
  case NKI_PARAM_ALU:
    return strstr(p->name, "cmp") ? "nl.greater" : "nl.add";
  case NKI_PARAM_FUNC:
    return "nl.exp";
  case NKI_PARAM_NUMBER:
  case NKI_PARAM_CONST:
    return "2.0";
  case NKI_PARAM_INTS:
    return !strcmp(p->name, "pattern") ? "[[1, 512]]" : "1";
  default:
    return "None";
  }
}

static void put_example(struct buf *b, const struct nki_call_def *def) {
  struct buf line;
  const char *comma = "";
  buf_init(&line, 1000);
  buf_printf(&line, "nisa.%s(", def->name);
  for (int i = 0; i < nki_n_params(def); i++) {
    if (def->param[i].is_optional)
      continue;
    buf_printf(&line, "%s%s=%s", comma, def->param[i].name, argument(&def->param[i]));
    comma = ", ";
  }
  buf_putc(&line, ')');
  json_put_field_str(b, "example", buf_text(&line));
  buf_clear(&line);
}

static void put_limits(struct buf *b, enum nki_call_kind call) {
  open_list(b, "limits");
  const bool is_product = instructions[call].kind[0] == NISA_MATMUL; /* a transpose is one, but of limits of its own */
  const bool is_register = nki_calls[call].engines[0] == NISA_ENGINE_SYNC; /* it has no access pattern */
  if (instructions[call].n_kinds && !is_register && (!is_product || call == NKI_NC_MATMUL))
    cards_put_limits(b, (enum nisa_kind)instructions[call].kind[0]);
  for (int i = 0; i < LIMITS_MAX && instructions[call].limit[i]; i++) {
    json_put_comma(b);
    json_put_cstr(b, instructions[call].limit[i]);
  }
  buf_putc(b, ']');
}

static void put_call(struct buf *b, enum nki_call_kind call) {
  const struct nki_call_def *def = &nki_calls[call];
  open_entry(b, "nisa", def->name, "instruction", def->what);
  put_beta1(b, "nisa", def->name, NULL);
  put_parameters(b, def);
  put_engines(b, def);
  put_limits(b, call);
  open_list(b, "becomes");
  for (size_t i = 0; i < instructions[call].n_kinds; i++) {
    json_put_comma(b);
    json_put_cstr(b, nisa_op_def((enum nisa_kind)instructions[call].kind[i])->full_name);
  }
  buf_putc(b, ']');
  open_list(b, "costs");
  for (size_t i = 0; i < instructions[call].n_kinds; i++)
    cards_put_costs(b, (enum nisa_kind)instructions[call].kind[i]);
  buf_putc(b, ']');
  put_example(b, def);
  buf_putc(b, '}');
}

/* ---- nki.language ------------------------------------------------------------------------------------------------ */

/* What has no place in a function: no operands, engines, limits and costs of its own. */
static void put_nothing(struct buf *b) {
  buf_puts(b, ",\"operands\":[],\"engines\":[],\"limits\":[],\"costs\":[]");
}

static void put_operator(struct buf *b, const struct nki_op *op, const char *what) {
  const bool is_function = op->is == NKI_FUNC;
  char text[FIELD_MAX];
  snprintf(text, sizeof text, "Element by element: %s.", what);
  open_entry(b, "nl", op->name, is_function ? "function" : op->is == NKI_BITS ? "bits" : "operator", text);
  put_beta1(b, "nl", op->name, is_function ? "x, *, dtype=None, mask=None" : "x, y, *, dtype=None, mask=None");
  put_signature(b, "parameters", is_function ? "x, dtype=None" : "x, y, dtype=None");
  put_nothing(b);
  json_put_field_bool(b, "reduces", op->can_reduce);
  put_words(b, "becomes", "nisa.", is_function ? "activation" : "tensor_tensor tensor_scalar");
  snprintf(text, sizeof text, is_function ? "t = nl.%s(x)" : "t = nl.%s(x, y)", op->name);
  json_put_field_str(b, "example", text);
  buf_putc(b, '}');
}

static void put_language(struct buf *b, const struct entry *e) {
  if (e->kind == OPERATOR) {
    const struct nki_op *op = nki_op_find(e->name);
    if (op)
      put_operator(b, op, e->what);
    return;
  }
  static const char *const kinds[] = {[FUNCTION] = "composed", [NAME] = "name", [METHOD] = "method"};
  open_entry(b, e->module, e->name, kinds[e->kind], e->what);
  enum dtype t;
  if (e->kind == NAME) /* types, memories, sizes: both have them, but for packed elements */
    put_generations(b, strcmp(e->module, "tensor") != 0 && !nki_packed_find(e->name, &t) ? GA | BETA1 : GA);
  else
    put_beta1(b, e->module, e->name, NULL);
  if (e->parameters)
    put_signature(b, "parameters", e->parameters);
  put_nothing(b);
  put_words(b, "becomes", "nisa.", e->calls ? e->calls : "");
  json_put_field_str(b, "example", e->example ? e->example : "");
  buf_putc(b, '}');
}

static void put_beta1_only(struct buf *b, const struct entry *e) {
  open_entry(b, e->module, e->name, e->parameters ? "composed" : "name", e->what);
  put_generations(b, BETA1);
  if (e->parameters) {
    put_signature(b, "parameters", e->parameters);
    put_signature(b, "beta1", e->parameters);
  }
  put_nothing(b);
  buf_puts(b, ",\"becomes\":[]");
  json_put_field_str(b, "example", e->example);
  buf_putc(b, '}');
}

static void put_refused(struct buf *b, const struct nki_refused *x) {
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", x->name);
  json_put_field_str(b, "kind", "refused");
  json_put_field_str(b, "what", x->why);
  put_generations(b, (x->newer ? GA : 0) | (x->beta1 ? BETA1 : 0));
  put_nothing(b);
  buf_puts(b, ",\"becomes\":[]");
  json_put_field_str(b, "example", "");
  json_put_field_str(b, "instead", x->instead);
  buf_putc(b, '}');
}

void nki_help_put(struct buf *b) {
  buf_puts(b, "{\"calls\":[");
  for (int k = 0; nki_is_users((enum nki_call_kind)k); k++)
    put_call(b, (enum nki_call_kind)k);
  for (size_t i = 0; i < sizeof language / sizeof *language; i++)
    put_language(b, &language[i]);
  for (size_t i = 0; i < sizeof beta1_only / sizeof *beta1_only; i++)
    put_beta1_only(b, &beta1_only[i]);
  for (int i = 0; i < nki_n_refused; i++)
    put_refused(b, &nki_refused[i]);
  buf_puts(b, "]}");
}
