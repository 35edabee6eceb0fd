/* GET /api/v1/instructions: what each instruction and each operation of a stage does, for cards on the page.
 *
 * Every fact comes from the table that the compiler itself uses: engines and operands from nisa/ops.def, limits from
 * nisa/kinds.c, costs from sim/cost.def; cards.def adds a sentence and says which costs belong to an instruction.  The
 * operations of the other dialects have a sentence each, in operations.json.  Made at the first request.
 */
#include <assert.h>
#include <pthread.h>

#include "api/info.h"
#include "base/json.h"
#include "nisa/kinds.h"

enum { CARDS_MAX = 1 << 20, RULES_MAX = 4 };

static const char operations[] =
#include "operations.inc"
    ;

/* The rules of cost.def, with the columns that a reader needs. */
enum rule {
  RULE_NONE,
#define SIM_CONSTANT(e, unit, v1, v2, v3, c1, c2, c3, what, source)
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source) e,
#include "sim/cost.def"
#undef SIM_RULE
  RULE_COUNT
};
static const struct {
  const char *name, *formula, *source;
  enum nisa_engine engine;
  const char *confidence[TARGET_COUNT];
} rules[RULE_COUNT] = {
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source) \
  [e] = {name, formula, source, NISA_ENGINE_##engine, {#c1, #c2, #c3}},
#include "sim/cost.def"
#undef SIM_RULE
#undef SIM_CONSTANT
};

#define RULES(...) {__VA_ARGS__}
#define NO_RULES {RULE_NONE}
static const struct {
  const char *what;
  enum rule rule[RULES_MAX]; /* up to RULE_NONE */
} cards[NISA_KIND_COUNT] = {
#define NISA_CARD(kind, what, rules) [kind] = {what, rules},
#include "sim/cards.def"
#undef NISA_CARD
};
#undef RULES
#undef NO_RULES

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static void put_memories(struct buf *b, const char *key, unsigned spaces) {
  json_put_key(b, key);
  buf_putc(b, '[');
  for (int s = MEM_NONE + 1; s < NISA_SPACES; s++)
    if (spaces & 1u << s) {
      json_put_comma(b);
      json_put_cstr(b, nisa_space_name((enum mem_space)s));
    }
  buf_putc(b, ']');
}

static void put_engines(struct buf *b, const struct nisa_op_def *op) {
  json_put_key(b, "engines");
  buf_putc(b, '[');
  for (int e = NISA_ENGINE_NONE + 1; e < NISA_ENGINE_COUNT; e++) {
    if (!(op->engines & 1u << e))
      continue;
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", nisa_engine_name((enum nisa_engine)e));
    put_memories(b, "reads", nisa_reach((enum nisa_engine)e, false));
    put_memories(b, "writes", nisa_reach((enum nisa_engine)e, true));
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static const char *use_of(const struct nisa_operand_def *o) {
  if (!o->reads && !o->writes)
    return "a buffer";
  if (o->writes)
    return o->reads ? "read and written" : "written";
  if (!o->may_be_access)
    return "a number";
  return o->may_be_scalar ? "read, or a number" : "read";
}

static void put_operands(struct buf *b, const struct nisa_op_def *op) {
  json_put_key(b, "operands");
  buf_putc(b, '[');
  for (int k = 0; k < op->n_operands; k++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", op->operand[k].name);
    json_put_field_str(b, "use", use_of(&op->operand[k]));
    json_put_field_bool(b, "optional", op->operand[k].is_optional);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_matmul_limits(struct buf *b) {
  for (int t = 0; t < TARGET_COUNT; t++) {
    const struct nisa_machine *m = nisa_machine((enum target)t);
    struct buf text;
    buf_init(&text, 400);
    buf_printf(&text, "%s: K at most %lld partitions, M at most %lld columns of stationary, N at most %lld of moving%s",
               target_name((enum target)t), (long long)m->matmul_k, (long long)m->matmul_m, (long long)m->matmul_n,
               m->matmul_one_bank ? "; the result stays within one PSUM bank" : "");
    json_put_comma(b);
    json_put_cstr(b, buf_text(&text));
    buf_clear(&text);
  }
}

static void put_limits(struct buf *b, const struct nisa_op_def *op) {
  const struct nisa_machine *m = nisa_machine(TARGET_TRN2);
  json_put_key(b, "limits");
  buf_putc(b, '[');
  if (op->kind == NISA_MATMUL || op->kind == NISA_MATMUL_MX)
    put_matmul_limits(b);
  else if (op->engines && op->usual_engine != NISA_ENGINE_DMA)
    buf_printf(b, "\"at most %lld partitions and %d free dimensions\"", (long long)m->partitions, m->free_dims);
  buf_putc(b, ']');
}

static void put_costs(struct buf *b, const enum rule *rule) {
  json_put_key(b, "costs");
  buf_putc(b, '[');
  for (; *rule != RULE_NONE; rule++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", rules[*rule].name);
    json_put_field_str(b, "engine", nisa_engine_name(rules[*rule].engine));
    json_put_field_str(b, "formula", rules[*rule].formula);
    json_put_field_str(b, "source", rules[*rule].source);
    json_put_key(b, "confidence");
    buf_putc(b, '{');
    for (int t = 0; t < TARGET_COUNT; t++)
      json_put_field_str(b, target_name((enum target)t), rules[*rule].confidence[t]);
    buf_puts(b, "}}");
  }
  buf_putc(b, ']');
}

static struct buf text;

static void make(void) {
  struct buf *b = &text;
  buf_init(b, CARDS_MAX);
  buf_puts(b, "{\"instructions\":[");
  for (int k = 0; k < NISA_KIND_COUNT; k++) {
    const struct nisa_op_def *op = nisa_op_def((enum nisa_kind)k);
    assert(cards[k].what); /* cards.def has a line for each of ops.def */
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", op->full_name);
    json_put_field_str(b, "what", cards[k].what);
    put_engines(b, op);
    put_operands(b, op);
    put_limits(b, op);
    put_costs(b, cards[k].rule);
    buf_putc(b, '}');
  }
  buf_puts(b, "],\"operations\":");
  buf_append(b, operations, sizeof operations - 1);
  buf_puts(b, "}\n");
}

enum MHD_Result api_instructions(struct request *rq) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make);
  if (buf_status(&text))
    return http_problem(rq, PB_INTERNAL, NULL, NULL);
  return http_json(rq, MHD_HTTP_OK, text.data, text.len, true);
}
