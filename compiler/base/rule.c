/* rule: see rule.h. */
#include "base/rule.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"

static const struct rule_def rules[] = {
#define RULE(e, name, pass, says, because, knob, forced, via) {name, pass, says, because, knob, forced, via},
#include "base/rule.def"
#undef RULE
};

const struct rule_def *rule_def(enum rule r) {
  assert(r >= 0 && r < RULE_COUNT);
  return &rules[r];
}

const struct rule_def *rule_find(const char *name) {
  for (int r = 0; r < RULE_COUNT; r++)
    if (!strcmp(rules[r].name, name))
      return &rules[r];
  return NULL;
}

void rule_put_all(struct buf *b) {
  buf_putc(b, '[');
  for (int r = 0; r < RULE_COUNT; r++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", rules[r].name);
    json_put_field_str(b, "pass", rules[r].pass);
    json_put_field_str(b, "says", rules[r].says);
    json_put_field_str(b, "because", rules[r].because);
    json_put_field_str(b, "knob", rules[r].knob);
    if (*rules[r].forced)
      json_put_field_str(b, "forced", rules[r].forced);
    if (*rules[r].via)
      json_put_field_str(b, "via", rules[r].via);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}
