/* cards: see cards.h. */
#include "driver/cards.h"

#include "base/json.h"
#include "sim/cards.h"

void cards_put_memories(struct buf *b, const char *key, unsigned spaces) {
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
    cards_put_memories(b, "reads", nisa_reach((enum nisa_engine)e, false));
    cards_put_memories(b, "writes", nisa_reach((enum nisa_engine)e, true));
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

void cards_put_limits(struct buf *b, enum nisa_kind kind) {
  const struct nisa_op_def *op = nisa_op_def(kind);
  const struct nisa_machine *m = nisa_machine(TARGET_TRN2);
  if (kind == NISA_MATMUL) {
    put_matmul_limits(b);
  } else if (op->engines && op->usual_engine != NISA_ENGINE_DMA) {
    json_put_comma(b);
    buf_printf(b, "\"at most %lld partitions and %d free dimensions\"", (long long)m->partitions, m->free_dims);
  }
}

void cards_put_costs(struct buf *b, enum nisa_kind kind) {
  const struct sim_cost_card *cost;
  for (int n = 0; (cost = sim_card_cost(kind, n)); n++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", cost->name);
    json_put_field_str(b, "engine", nisa_engine_name(cost->engine));
    json_put_field_str(b, "formula", cost->formula);
    json_put_field_str(b, "source", cost->source);
    json_put_key(b, "confidence");
    buf_putc(b, '{');
    for (int t = 0; t < TARGET_COUNT; t++)
      json_put_field_str(b, target_name((enum target)t), cost->confidence[t]);
    buf_puts(b, "}}");
  }
}

void cards_put_instructions(struct buf *b) {
  buf_putc(b, '[');
  for (int k = 0; k < NISA_KIND_COUNT; k++) {
    const struct nisa_op_def *op = nisa_op_def((enum nisa_kind)k);
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", op->full_name);
    json_put_field_str(b, "what", sim_card_what((enum nisa_kind)k));
    put_engines(b, op);
    put_operands(b, op);
    json_put_key(b, "limits");
    buf_putc(b, '[');
    cards_put_limits(b, (enum nisa_kind)k);
    buf_putc(b, ']');
    json_put_key(b, "costs");
    buf_putc(b, '[');
    cards_put_costs(b, (enum nisa_kind)k);
    buf_puts(b, "]}");
  }
  buf_putc(b, ']');
}
